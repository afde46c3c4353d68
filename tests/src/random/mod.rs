//! Random SQL over random schemas, for comparison between engines (`random_sql.rs`): one file for each kind of clause.
//!
//! A case is drawn from three lists of [`Choices`]: the columns of its tables, their rows, and the statement. Whatever the
//! lists hold, the case is well-formed and has one right result; the choice 0 is the simplest one everywhere. So a case is made
//! smaller by making its lists smaller, and no clause needs a shrinker of its own (`oracle/shrink.rs`).
//!
//! What engines may answer differently is not generated, or written so that it means the same; each such place says why.
//! Where only the spelling differs, the text has both: see [`Dialect`].

mod aggregate;
mod choices;
mod expression;
mod from;
mod kind;
mod predicate;
mod query;
mod schema;
mod select;
mod subquery;
mod wide;
mod window;

pub use choices::Choices;
pub use kind::{Family, Kind};
pub use schema::{Table, columns, fill};

use kind::Column;

/// Whose spelling a text is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// DataFusion's, and so ours.
    DataFusion,
    /// DuckDB's.
    DuckDb,
}

impl Dialect {
    /// Chooses among the spellings `⟦DataFusion's|DuckDB's⟧` in a text.
    pub fn spell(self, text: &str) -> String {
        let mut spelled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('⟦') {
            let (both, behind) = behind.split_once('⟧').expect("spellings are closed");
            let (first, second) = both.split_once('|').expect("there are two spellings");
            spelled.push_str(before);
            spelled.push_str(if self == Dialect::DataFusion { first } else { second });
            rest = behind;
        }
        spelled + rest
    }
}

/// A statement and what its result is compared by.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its text, in both dialects.
    pub sql: String,
    /// Which columns of the result are right up to rounding only.
    pub inexact: Vec<bool>,
    /// The columns that the rows are ordered by: these come in the same order from every engine.
    pub order: Vec<usize>,
}

/// Draws a statement over tables.
pub fn statement(choices: &mut Choices, tables: &[Table]) -> Statement {
    let mut writer = Writer { choices, tables, names: 0, shared: Vec::new() };
    if writer.choices.chance(2) {
        return writer.wide_join();
    }
    writer.top()
}

/// Writes the clauses of one statement.
struct Writer<'a> {
    choices: &'a mut Choices,
    tables: &'a [Table],
    /// How many names were given.
    names: usize,
    /// The queries of `WITH` that can be named.
    shared: Vec<Relation>,
}

/// Something to select from.
#[derive(Clone, Debug)]
struct Relation {
    /// What stands behind `FROM`.
    sql: String,
    /// Its columns, qualified where they are in scope.
    columns: Vec<Column>,
    /// About how many rows it has at most.
    rows: f64,
    /// Some of it are grouping sets, over which there is no filter: DataFusion 55 moves one that is never true below the sum of all
    /// rows, which then is a row of nothing.
    sets: bool,
}

impl Writer<'_> {
    /// Makes a name that the statement does not have yet.
    fn name(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_choices_make_the_same_case() {
        let mut choices = Choices::random(7);
        let tables = columns(&mut choices);
        let made = choices.made().to_vec();
        assert_eq!(columns(&mut Choices::replay(made)), tables);
        let mut choices = Choices::random(8);
        let first = statement(&mut choices, &tables);
        assert_eq!(statement(&mut Choices::replay(choices.made().to_vec()), &tables), first);
    }

    #[test]
    fn any_choices_make_a_case_and_none_the_simplest() {
        let tables = columns(&mut Choices::replay(Vec::new()));
        let simplest = statement(&mut Choices::replay(Vec::new()), &tables);
        assert_eq!(simplest.sql, "select a1.k as c0 from t0 a1");
        for seed in 0..200 {
            let mut choices = Choices::random(seed);
            let tables = columns(&mut choices);
            let statement = statement(&mut choices, &tables);
            assert!(statement.sql.len() < 200_000, "seed {seed} makes {} bytes", statement.sql.len());
        }
    }

    #[test]
    fn each_dialect_has_its_spelling() {
        let text = "select x::⟦tinyint unsigned|utinyint⟧ from t where b = ⟦X'00'|'\\x00'::blob⟧";
        assert_eq!(Dialect::DataFusion.spell(text), "select x::tinyint unsigned from t where b = X'00'");
        assert_eq!(Dialect::DuckDb.spell(text), "select x::utinyint from t where b = '\\x00'::blob");
    }
}
