//! Cardinalities, hierarchies, foreign keys, derived columns, selectivities and determinism of the SSB tables.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::{Array, Int32Array, RecordBatch, StringArray, cast::AsArray, types::Int32Type};

use super::*;
use crate::source::in_order;

const SEED: u64 = 7;

fn generate(sf: f64, seed: u64, threads: usize, table: &str) -> Vec<RecordBatch> {
    let sources = sources(&GeneratorOptions { sf, seed, threads, ..GeneratorOptions::default() });
    let source = sources.iter().find(|s| s.name() == table).expect("a table of SSB");
    let mut all = Vec::new();
    in_order(
        source.groups(),
        threads,
        |group| {
            let mut batches = Vec::new();
            source.generate(group, &mut |batch| {
                batches.push(batch);
                Ok(())
            })?;
            Ok(batches)
        },
        |batches| {
            all.extend(batches);
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(rows(&all), source.rows() as usize);
    all
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn ints(batches: &[RecordBatch], name: &str) -> Vec<i64> {
    let column = |b: &RecordBatch| b.column_by_name(name).expect(name).as_primitive::<Int32Type>().values().to_vec();
    batches.iter().flat_map(column).map(i64::from).collect()
}

fn texts(batches: &[RecordBatch], name: &str) -> Vec<String> {
    let column = |b: &RecordBatch| -> Vec<String> {
        let array = b.column_by_name(name).expect(name).as_string::<i32>();
        array.iter().map(|v| v.expect("no nulls").to_string()).collect()
    };
    batches.iter().flat_map(column).collect()
}

/// Asserts that `share` of the rows is within five standard deviations of a binomial of `expected`.
fn assert_share(what: &str, share: usize, of: usize, expected: f64) {
    let (n, seen) = (of as f64, share as f64 / of as f64);
    let tolerance = 5.0 * (expected * (1.0 - expected) / n).sqrt();
    assert!((seen - expected).abs() <= tolerance, "{what}: {seen} of {of} rows, expected {expected} ± {tolerance}");
}

/// Asserts that `child` determines `parent`, and returns how many children each parent has.
fn assert_determines(child: &[String], parent: &[String]) -> BTreeMap<String, usize> {
    let mut of: HashMap<&str, &str> = HashMap::new();
    for (child, parent) in child.iter().zip(parent) {
        assert_eq!(*of.entry(child).or_insert(parent), parent, "{child} has two parents");
    }
    let mut children = BTreeMap::new();
    of.values().for_each(|parent| *children.entry(parent.to_string()).or_default() += 1);
    children
}

#[test]
fn cardinalities_follow_the_specification() {
    let expect = |orders, customers, suppliers, parts| Cardinality { orders, customers, suppliers, parts };
    assert_eq!(Cardinality::new(0.01), expect(15_000, 300, 20, 2_000));
    assert_eq!(Cardinality::new(0.5), expect(750_000, 15_000, 1_000, 100_000));
    assert_eq!(Cardinality::new(1.0), expect(1_500_000, 30_000, 2_000, 200_000));
    assert_eq!(Cardinality::new(10.0), expect(15_000_000, 300_000, 20_000, 800_000));
    assert_eq!(Cardinality::new(20.0), expect(30_000_000, 600_000, 40_000, 1_000_000));
    let lines = sources(&GeneratorOptions { sf: 1.0, seed: SEED, ..GeneratorOptions::default() })
        .last()
        .expect("lineorder")
        .rows();
    assert!((5_990_000..6_010_000).contains(&lines), "{lines}");
    assert_eq!(rows(&generate(1.0, SEED, 1, "date")), 2556);
}

#[test]
fn schemas_have_all_columns() {
    let widths: Vec<_> = sources(&GeneratorOptions { sf: 0.01, seed: SEED, ..GeneratorOptions::default() })
        .iter()
        .map(|s| (s.name(), s.schema().fields().len()))
        .collect();
    assert_eq!(widths, [("date", 17), ("supplier", 7), ("customer", 8), ("part", 9), ("lineorder", 17)]);
}

#[test]
fn threads_do_not_change_the_data_and_seeds_do() {
    for table in ["lineorder", "customer", "supplier", "part", "date"] {
        // 0.2 gives lineorder two groups, with an order across their border.
        let one = generate(0.2, SEED, 1, table);
        assert_eq!(one, generate(0.2, SEED, 3, table), "{table}");
        assert_eq!(one == generate(0.2, SEED + 1, 2, table), table == "date", "{table}");
    }
}

#[test]
fn groups_are_full_and_orders_whole() {
    let lineorder = generate(0.2, SEED, 2, "lineorder");
    let (keys, numbers) = (ints(&lineorder, "lo_orderkey"), ints(&lineorder, "lo_linenumber"));
    let mut orders = 0;
    for row in 0..keys.len() {
        let begins = row == 0 || keys[row] != keys[row - 1];
        orders += usize::from(begins);
        assert_eq!(numbers[row], if begins { 1 } else { numbers[row - 1] + 1 }, "row {row}");
        assert!((1..=7).contains(&numbers[row]));
        assert!(row == 0 || keys[row] >= keys[row - 1]);
        assert!(keys[row] % 32 < 8, "order keys use 8 of every 32 numbers: {}", keys[row]);
    }
    assert_eq!(orders, 300_000);
    let source = lineorder::LineOrder::new(SEED, Cardinality::new(0.2));
    let mut first = 0;
    source
        .generate(0, &mut |batch| {
            first += batch.num_rows();
            Ok(())
        })
        .unwrap();
    assert_eq!((source.groups(), first), (2, 1 << 20));
}

#[test]
fn places_and_brands_form_hierarchies() {
    for (table, prefix) in [("customer", "c"), ("supplier", "s")] {
        let rows = generate(1.0, SEED, 2, table);
        let level = |name: &str| texts(&rows, &format!("{prefix}_{name}"));
        let (city, nation, region) = (level("city"), level("nation"), level("region"));
        assert!(assert_determines(&city, &nation).values().all(|&cities| cities == 10));
        assert!(assert_determines(&nation, &region).values().all(|&nations| nations == 5));
        for (city, nation) in city.iter().zip(&nation) {
            assert_eq!(city.len(), 10);
            assert_eq!(city[..9].trim_end(), &nation[..nation.len().min(9)]);
        }
        assert!(city.contains(&"UNITED KI1".to_string()) && city.contains(&"CHINA    3".to_string()));
        let asia = region.iter().filter(|r| *r == "ASIA").count();
        assert_share("region", asia, region.len(), 0.2);
    }
    let part = generate(1.0, SEED, 2, "part");
    let (brand, category, maker) = (texts(&part, "p_brand1"), texts(&part, "p_category"), texts(&part, "p_mfgr"));
    assert!(assert_determines(&brand, &category).values().all(|&brands| brands == 40));
    assert!(assert_determines(&category, &maker).values().all(|&categories| categories == 5));
    assert!(brand.iter().zip(&category).all(|(brand, category)| brand.starts_with(category.as_str())));
    let within = brand.iter().filter(|b| ("MFGR#2221"..="MFGR#2228").contains(&b.as_str())).count();
    assert_share("brands of 2.2", within, brand.len(), 8.0 / 1000.0);
    let distinct = |name| texts(&part, name).into_iter().collect::<HashSet<_>>().len();
    assert_eq!((distinct("p_color"), distinct("p_type"), distinct("p_container")), (92, 150, 40));
    assert!(texts(&part, "p_name").iter().all(|name| name.split(' ').collect::<HashSet<_>>().len() == 2));
}

#[test]
fn foreign_keys_exist() {
    let lineorder = generate(0.05, SEED, 2, "lineorder");
    for (column, table, key) in [
        ("lo_custkey", "customer", "c_custkey"),
        ("lo_suppkey", "supplier", "s_suppkey"),
        ("lo_partkey", "part", "p_partkey"),
        ("lo_orderdate", "date", "d_datekey"),
        ("lo_commitdate", "date", "d_datekey"),
    ] {
        let keys: Vec<i64> = ints(&generate(0.05, SEED, 1, table), key);
        assert!(keys.is_sorted_by(|a, b| a < b), "{key} is unique and ascending");
        let keys: HashSet<i64> = keys.into_iter().collect();
        let used: HashSet<i64> = ints(&lineorder, column).into_iter().collect();
        assert!(used.is_subset(&keys), "{column}");
        assert!(table == "date" || used.len() * 10 > keys.len() * 9, "{column} uses nearly every {table}");
    }
}

#[test]
fn derived_columns_follow_from_the_others() {
    let lineorder = generate(0.02, SEED, 2, "lineorder");
    let column = |name| ints(&lineorder, name);
    let (part, quantity, discount, tax) =
        (column("lo_partkey"), column("lo_quantity"), column("lo_discount"), column("lo_tax"));
    let (price, revenue, cost) = (column("lo_extendedprice"), column("lo_revenue"), column("lo_supplycost"));
    let (order, total) = (column("lo_orderkey"), column("lo_ordtotalprice"));
    let mut totals: HashMap<i64, i64> = HashMap::new();
    for row in 0..part.len() {
        let retail = i64::from(part::retail_price(part[row] as u64));
        assert_eq!(price[row], retail * quantity[row]);
        assert_eq!(revenue[row], price[row] * (100 - discount[row]) / 100);
        assert_eq!(cost[row], 6 * retail / 10);
        *totals.entry(order[row]).or_default() += revenue[row] * (100 + tax[row]) / 100;
    }
    assert!(order.iter().zip(&total).all(|(order, total)| totals[order] == *total));
    let (taken, committed) = (column("lo_orderdate"), column("lo_commitdate"));
    let day: HashMap<i64, usize> = date::days().enumerate().map(|(at, d)| (i64::from(d.key()), at)).collect();
    assert!(taken.iter().zip(&committed).all(|(t, c)| (30..=90).contains(&(day[c] - day[t]))));
}

#[test]
fn selectivities_are_those_of_the_specification() {
    let lineorder = generate(0.2, SEED, 2, "lineorder");
    let (quantity, discount, date) =
        (ints(&lineorder, "lo_quantity"), ints(&lineorder, "lo_discount"), ints(&lineorder, "lo_orderdate"));
    let n = quantity.len();
    let count = |f: &dyn Fn(usize) -> bool| (0..n).filter(|&row| f(row)).count();
    assert_share("quantity < 25", count(&|r| quantity[r] < 25), n, 24.0 / 50.0);
    assert_share("discount 1 to 3", count(&|r| (1..=3).contains(&discount[r])), n, 3.0 / 11.0);
    // Orders are per day of 2406, and lines of one order share its day: compare with the share of days, loosely.
    let year = count(&|r| date[r] / 10_000 == 1993) as f64 / n as f64;
    assert!((year - 365.0 / 2406.0).abs() < 0.005, "{year}");
    let both = count(&|r| quantity[r] < 25 && (1..=3).contains(&discount[r]) && date[r] / 10_000 == 1993) as f64;
    assert!((both / n as f64 - 0.48 * 3.0 / 11.0 * 365.0 / 2406.0).abs() < 0.001, "{both}");
    let modes: HashSet<String> = texts(&lineorder, "lo_shipmode").into_iter().collect();
    let priorities: HashSet<String> = texts(&lineorder, "lo_orderpriority").into_iter().collect();
    assert_eq!((modes.len(), priorities.len()), (7, 5));
}

#[test]
fn dates_are_those_of_the_calendar() {
    let dates = &generate(1.0, SEED, 1, "date")[0];
    let text = |name: &str, row: usize| -> String {
        let array = dates.column_by_name(name).expect(name);
        match array.as_any().downcast_ref::<StringArray>() {
            Some(array) => array.value(row).to_string(),
            None => array.as_any().downcast_ref::<Int32Array>().expect("an integer").value(row).to_string(),
        }
    };
    let row = |at| dates.schema().fields().iter().map(|f| text(f.name(), at)).collect::<Vec<_>>().join("|");
    assert_eq!(row(0), "19920101|January 1, 1992|Wednesday|January|1992|199201|Jan1992|4|1|1|1|1|Winter|0|0|1|1");
    assert_eq!(row(59), "19920229|February 29, 1992|Saturday|February|1992|199202|Feb1992|7|29|60|2|9|Winter|1|1|0|0");
    assert_eq!(
        row(2184),
        "19971224|December 24, 1997|Wednesday|December|1997|199712|Dec1997|4|24|358|12|52|Christmas|0|0|1|1"
    );
    assert_eq!(text("d_datekey", 2555), "19981230");
    let weeks = ints(std::slice::from_ref(dates), "d_weeknuminyear");
    assert_eq!(weeks.iter().max(), Some(&53));
}
