//! A case: tables and statements, made from lists of choices, and again from these.

use std::fmt;

use crate::random::{self, Choices, Dialect, Statement, Table};

/// Statements over the same tables: making tables costs about as much as some statements.
pub const STATEMENTS: usize = 25;

/// Tables with their rows, and one statement over them.
#[derive(Clone, Debug)]
pub struct Case {
    /// The choices of the columns, the rows and the statement.
    choices: [Vec<u32>; 3],
    /// The statements that make the tables, in both dialects.
    pub setup: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
    /// What is asked.
    pub statement: Statement,
}

impl Case {
    /// Makes the cases of a round, which have their tables in common, from a seed.
    pub fn round(seed: u64) -> Vec<Case> {
        let mut columns = Choices::random(seed);
        let tables = random::columns(&mut columns);
        let mut rows = Choices::random(seed ^ 0x5eed);
        let setup = random::fill(&mut rows, &tables);
        let case = |number: u64| {
            let mut choices = Choices::random(seed.wrapping_mul(1_000_003).wrapping_add(number));
            let statement = random::statement(&mut choices, &tables);
            let choices = [columns.made().to_vec(), rows.made().to_vec(), choices.made().to_vec()];
            Case { choices, setup: setup.clone(), tables: tables.clone(), statement }
        };
        (0..STATEMENTS as u64).map(case).collect()
    }

    /// Makes the case of some choices.
    pub fn replay(choices: [Vec<u32>; 3]) -> Case {
        let [columns, rows, statement] = choices.map(Choices::replay).map(Box::new);
        let (mut columns, mut rows, mut statement) = (columns, rows, statement);
        let tables = random::columns(&mut columns);
        let setup = random::fill(&mut rows, &tables);
        let asked = random::statement(&mut statement, &tables);
        let choices = [columns.made().to_vec(), rows.made().to_vec(), statement.made().to_vec()];
        Case { choices, setup, tables, statement: asked }
    }

    /// Returns the choices that it is made of.
    pub fn choices(&self) -> &[Vec<u32>; 3] {
        &self.choices
    }

    /// Returns the statements that make the tables.
    pub fn setup(&self, dialect: Dialect) -> Vec<String> {
        self.setup.iter().map(|sql| dialect.spell(sql)).collect()
    }

    /// Returns the statement.
    pub fn sql(&self, dialect: Dialect) -> String {
        dialect.spell(&self.statement.sql)
    }
}

/// Writes the case as a script.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sql in self.setup(Dialect::DataFusion) {
            writeln!(f, "{sql};")?;
        }
        let (ours, theirs) = (self.sql(Dialect::DataFusion), self.sql(Dialect::DuckDb));
        writeln!(f, "{ours};")?;
        if ours != theirs {
            writeln!(f, "-- as DuckDB has it: {theirs};")?;
        }
        Ok(())
    }
}
