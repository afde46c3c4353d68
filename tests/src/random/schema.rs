//! Tables: their columns, and their rows as statements that make them in any engine.

use super::{
    Choices, Kind,
    kind::{Column, KINDS, SMALL},
};

/// A table of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns; the first is a key.
    pub(super) columns: Vec<Column>,
    /// How many rows it has.
    pub(super) rows: usize,
}

/// The largest number of tables, columns and rows: small, so that many statements run and a failure can be read.
const TABLES: usize = 5;
const COLUMNS: usize = 6;
const ROWS: usize = 30;

/// Draws tables: `t0`, with a key `k`, has a row at least for every choice that asks for one.
pub fn columns(choices: &mut Choices) -> Vec<Table> {
    let count = 1 + choices.below(TABLES);
    (0..count)
        .map(|at| {
            let mut columns = vec![Column { unique: true, ..Column::within("k", Kind::Integer(32, true), 100.0) }];
            for number in 0..choices.below(COLUMNS) {
                let kind = *choices.pick(&KINDS);
                // Half of the columns can be computed with, the others have extremes.
                let wild = choices.chance(50) && kind != Kind::Boolean;
                let bound = if wild { f64::INFINITY } else { SMALL };
                columns.push(Column::within(format!("x{number}"), kind, bound));
            }
            // Empty tables are rare enough that joins find something.
            let rows = if choices.chance(7) { 0 } else { 1 + choices.below(ROWS) };
            Table { name: format!("t{at}"), columns, rows }
        })
        .collect()
}

/// Draws the rows of tables: the statements that make and fill them. Fewer rows come out where the choices end.
pub fn fill(choices: &mut Choices, tables: &[Table]) -> Vec<String> {
    let mut statements = Vec::new();
    for table in tables {
        let columns: Vec<String> = table.columns.iter().map(|c| format!("{} {}", c.sql, c.kind.name())).collect();
        statements.push(format!("create table {} ({})", table.name, columns.join(", ")));
        // Several inserts make several parts.
        let mut lines = Vec::new();
        // Nulls are rare, common or everywhere, by column.
        let nulls: Vec<usize> = table.columns.iter().map(|_| *choices.pick(&[10, 0, 50, 100])).collect();
        for row in 0..table.rows {
            if choices.below(1000) == 0 {
                continue;
            }
            let value = |(column, nulls): (&Column, &usize)| match () {
                () if column.unique => row.to_string(),
                () if choices.chance(*nulls) => "null".to_string(),
                () => column.kind.literal(choices, column.bound.is_finite()),
            };
            lines.push(format!("({})", table.columns.iter().zip(&nulls).map(value).collect::<Vec<_>>().join(", ")));
        }
        let cut = choices.below(lines.len() + 1);
        for part in [&lines[cut..], &lines[..cut]] {
            if !part.is_empty() {
                statements.push(format!("insert into {} values {}", table.name, part.join(", ")));
            }
        }
    }
    statements
}
