//! The loops against a plain computation, row by row, over generated tables.

use std::collections::{BTreeMap, HashMap};

use tandem_column::Table;
use tandem_generator::{GeneratorOptions, ssb_tables};
use tandem_limit::{Arrays, Cell, QUERIES, run};

/// The tables as rows of text and numbers, slow and obvious.
struct Plain<'a>(&'a HashMap<String, Table>);

impl Plain<'_> {
    fn ints(&self, table: &str, column: &str) -> Vec<i64> {
        self.each(table, column, |column, row| column.int(row))
    }

    fn texts(&self, table: &str, column: &str) -> Vec<String> {
        self.each(table, column, |column, row| String::from_utf8(column.bytes_at(row).to_vec()).unwrap())
    }

    fn each<T>(&self, table: &str, column: &str, value: impl Fn(&tandem_column::Column, usize) -> T) -> Vec<T> {
        let table = &self.0[table];
        let at = table.column_index(column).expect("a column of SSB");
        let parts = table.parts.iter().map(|part| &part.columns[at]);
        parts.flat_map(|column| (0..column.rows).map(|row| value(column, row)).collect::<Vec<_>>()).collect()
    }
}

fn expected(plain: &Plain<'_>, query: &str) -> Vec<Vec<Cell>> {
    let fact = |name: &str| plain.ints("lineorder", name);
    let at = |key: i64| key as usize - 1;
    let (customer, supplier, part) = (fact("lo_custkey"), fact("lo_suppkey"), fact("lo_partkey"));
    let year: HashMap<i64, i64> =
        plain.ints("date", "d_datekey").into_iter().zip(plain.ints("date", "d_year")).collect();
    let (date, quantity, discount) = (fact("lo_orderdate"), fact("lo_quantity"), fact("lo_discount"));
    let (price, revenue, cost) = (fact("lo_extendedprice"), fact("lo_revenue"), fact("lo_supplycost"));
    let (c_region, c_nation) = (plain.texts("customer", "c_region"), plain.texts("customer", "c_nation"));
    let (s_region, s_nation) = (plain.texts("supplier", "s_region"), plain.texts("supplier", "s_nation"));
    let (maker, category, brand) =
        (plain.texts("part", "p_mfgr"), plain.texts("part", "p_category"), plain.texts("part", "p_brand1"));
    let text = |value: &String| Cell::Text(value.clone());

    let mut groups: BTreeMap<Vec<Cell>, i64> = BTreeMap::new();
    for row in 0..date.len() {
        let (c, s, p, y) = (at(customer[row]), at(supplier[row]), at(part[row]), year[&date[row]]);
        let (keys, value) = match query {
            "1.1" if y == 1993 && (1..=3).contains(&discount[row]) && quantity[row] < 25 => {
                (vec![], price[row] * discount[row])
            }
            "2.1" if category[p] == "MFGR#12" && s_region[s] == "AMERICA" => {
                (vec![Cell::Integer(y), text(&brand[p])], revenue[row])
            }
            "3.1" if c_region[c] == "ASIA" && s_region[s] == "ASIA" && (1992..=1997).contains(&y) => {
                (vec![text(&c_nation[c]), text(&s_nation[s]), Cell::Integer(y)], revenue[row])
            }
            "4.1"
                if c_region[c] == "AMERICA"
                    && s_region[s] == "AMERICA"
                    && (maker[p] == "MFGR#1" || maker[p] == "MFGR#2") =>
            {
                (vec![Cell::Integer(y), text(&c_nation[c])], revenue[row] - cost[row])
            }
            _ => continue,
        };
        *groups.entry(keys).or_default() += value;
    }
    let mut rows: Vec<Vec<Cell>> = groups
        .into_iter()
        .map(|(mut keys, sum)| {
            // The sum comes first in 2.1 and last in the others.
            keys.insert(if query == "2.1" { 0 } else { keys.len() }, Cell::Integer(sum));
            keys
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn loops_agree_with_a_plain_computation() {
    let options = GeneratorOptions { sf: 0.02, seed: 11, threads: 2, ..GeneratorOptions::default() };
    let tables: HashMap<String, Table> = ssb_tables(&options, &|_, _| ()).unwrap().into_iter().collect();
    let arrays = Arrays::from_tables(|name| tables.get(name)).unwrap();
    for query in QUERIES {
        let expected = expected(&Plain(&tables), query);
        assert!(!expected.is_empty(), "{query}");
        for threads in [1, 3] {
            let (rows, _) = run(query, &arrays, threads).expect("a loop");
            assert_eq!(rows, expected, "{query} on {threads} threads");
        }
    }
    assert!(run("1.2", &arrays, 1).is_none());
}

#[test]
fn missing_tables_are_named() {
    let error = Arrays::from_tables(|_| None).err().expect("no tables");
    assert!(error.message.contains("lineorder"), "{error}");
}
