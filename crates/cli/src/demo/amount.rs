//! How much a query reads, so that its time can be judged by what the machine's memory could do.

use std::sync::Arc;

use tandem_engine::Table;

use crate::bench::suite::{BenchQuery, mentioned};

/// The resident tables by name.
pub type Tables = Vec<(String, Arc<Table>)>;

/// What a query has to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// Rows of the tables that it names.
    pub rows: usize,
    /// Bytes of the columns that it names, as they are held.
    pub bytes: usize,
}

impl Amount {
    /// Adds up the tables and columns that a query names.
    pub fn of(query: &BenchQuery, tables: &Tables) -> Amount {
        let query = std::slice::from_ref(query);
        let names: Vec<String> = tables.iter().map(|(name, _)| name.clone()).collect();
        let named = mentioned(&names, query);
        let mut amount = Amount::default();
        for (_, table) in tables.iter().filter(|(name, _)| named.contains(name)) {
            let fields: Vec<String> = table.schema.iter().map(|field| field.name.clone()).collect();
            let columns = mentioned(&fields, query);
            for part in &table.parts {
                amount.rows += part.rows;
                let held = fields.iter().zip(&part.columns).filter(|(name, _)| columns.contains(name));
                amount.bytes += held.map(|(_, column)| column.byte_len()).sum::<usize>();
            }
        }
        amount
    }
}

#[cfg(test)]
mod tests {
    use tandem_column::{Column, Field, Part, Type};

    use super::*;

    #[test]
    fn what_a_query_names_counts() {
        let table = |names: [&str; 2], rows: i64| {
            let fields = names.map(|name| Field::new(name, Type::Int64, false));
            let columns = names.map(|_| Column::from_i64(Type::Int64, (0..rows).collect::<Vec<i64>>(), None));
            Arc::new(Table::with_statistics(
                Arc::new(fields),
                vec![Arc::new(Part::new(rows as usize, columns.to_vec()))],
            ))
        };
        let tables = vec![
            ("fact".to_owned(), table(["a", "b"], 200)),
            ("one".to_owned(), table(["c", "d"], 100)),
            ("two".to_owned(), table(["e", "f"], 50)),
        ];
        let query = BenchQuery { name: "1", sql: "select sum(a) from fact, one where b = d" };
        let bytes = |table: usize, column: usize| tables[table].1.parts[0].columns[column].byte_len();
        let bytes = bytes(0, 0) + bytes(0, 1) + bytes(1, 1);
        assert_eq!(Amount::of(&query, &tables), Amount { rows: 300, bytes });
    }
}
