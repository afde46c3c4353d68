//! Queries from arrays to rows: the lookup tables, the loop, and the names of the groups that came out.

use crate::{
    Arrays,
    arrays::Names,
    loops::{ABSENT, sum_1_1, sum_2_1, sum_3_1, sum_4_1},
    parallel::{fold, sum_groups},
};

/// A value of a result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// An integer.
    Integer(i64),
    /// Text.
    Text(String),
}

/// Years in the date table.
const YEARS: usize = 8;
const FIRST_YEAR: i64 = 1992;

/// Keeps the codes that are in `region` and makes the others absent.
fn only(codes: &[u8], nation_region: &[u8], region: Option<u8>) -> Vec<u8> {
    let kept: Vec<u8> = (0..=u8::MAX)
        .map(|code| match nation_region.get(usize::from(code)) {
            Some(of) if Some(*of) == region => code,
            _ => ABSENT,
        })
        .collect();
    codes.iter().map(|&code| kept[usize::from(code)]).collect()
}

/// Sets the bit of every key whose code is accepted.
fn bitmap<T: Copy>(codes: &[T], accept: impl Fn(T) -> bool) -> Vec<u8> {
    codes.chunks(8).map(|keys| keys.iter().rev().fold(0, |byte, &code| byte << 1 | u8::from(accept(code)))).collect()
}

fn name(names: &Names, code: usize) -> Cell {
    Cell::Text(names.get(code).to_string())
}

fn year(index: usize) -> Cell {
    Cell::Integer(FIRST_YEAR + index as i64)
}

/// Runs 1.1.
pub fn query_1_1(a: &Arrays, threads: usize) -> Vec<Vec<Cell>> {
    let sums = fold(
        a.rows(),
        threads,
        || 0,
        |sum, rows| *sum += sum_1_1(rows, &a.discount, &a.quantity, &a.date, &a.price, &a.days_of_year(1993)),
    );
    vec![vec![Cell::Integer(sums.iter().sum())]]
}

/// Runs 2.1.
pub fn query_2_1(a: &Arrays, threads: usize) -> Vec<Vec<Cell>> {
    let category = a.category_names.find("MFGR#12").map(|code| code as u8);
    let parts = bitmap(&a.part_category, |code| Some(code) == category);
    let suppliers = only(&a.supplier_nation, &a.nation_region, a.region_names.find("AMERICA").map(|code| code as u8));
    let groups = sum_groups(fold(
        a.rows(),
        threads,
        || vec![0; YEARS * 1024],
        |groups, rows| {
            sum_2_1(
                rows,
                &a.part,
                &a.supplier,
                &a.date,
                &a.revenue,
                &parts,
                &a.part_brand,
                &suppliers,
                &a.day_year,
                groups,
            )
        },
    ));
    let mut rows: Vec<_> = nonzero(&groups)
        .map(|(group, sum)| vec![Cell::Integer(sum), year(group / 1024), name(&a.brand_names, group % 1024)])
        .collect();
    rows.sort();
    rows
}

/// Runs 3.1.
pub fn query_3_1(a: &Arrays, threads: usize) -> Vec<Vec<Cell>> {
    let asia = a.region_names.find("ASIA").map(|code| code as u8);
    let customers = only(&a.customer_nation, &a.nation_region, asia);
    let suppliers = only(&a.supplier_nation, &a.nation_region, asia);
    let groups = sum_groups(fold(
        a.rows(),
        threads,
        || vec![0; YEARS * 1024],
        |groups, rows| {
            sum_3_1(rows, &a.customer, &a.supplier, &a.date, &a.revenue, &customers, &suppliers, &a.day_year, groups)
        },
    ));
    let mut rows: Vec<_> = nonzero(&groups[..6 * 1024])
        .map(|(group, sum)| {
            let (customer, supplier) = (group % 1024 / 32, group % 32);
            vec![
                name(&a.nation_names, customer),
                name(&a.nation_names, supplier),
                year(group / 1024),
                Cell::Integer(sum),
            ]
        })
        .collect();
    rows.sort();
    rows
}

/// Runs 4.1.
pub fn query_4_1(a: &Arrays, threads: usize) -> Vec<Vec<Cell>> {
    let america = a.region_names.find("AMERICA").map(|code| code as u8);
    let customers = only(&a.customer_nation, &a.nation_region, america);
    let suppliers = only(&a.supplier_nation, &a.nation_region, america);
    let makers = ["MFGR#1", "MFGR#2"].map(|maker| a.maker_names.find(maker).map(|code| code as u8));
    let parts = bitmap(&a.part_maker, |code| makers.contains(&Some(code)));
    let groups = sum_groups(fold(
        a.rows(),
        threads,
        || vec![0; YEARS * 32],
        |groups, rows| {
            sum_4_1(
                rows,
                &a.customer,
                &a.supplier,
                &a.part,
                &a.date,
                &a.revenue,
                &a.cost,
                &customers,
                &suppliers,
                &parts,
                &a.day_year,
                groups,
            )
        },
    ));
    let mut rows: Vec<_> = nonzero(&groups)
        .map(|(group, sum)| vec![year(group / 32), name(&a.nation_names, group % 32), Cell::Integer(sum)])
        .collect();
    rows.sort();
    rows
}

/// Lists the groups that have rows: revenue and profit of a line are never zero.
fn nonzero(groups: &[i64]) -> impl Iterator<Item = (usize, i64)> + '_ {
    groups.iter().copied().enumerate().filter(|(_, sum)| *sum != 0)
}
