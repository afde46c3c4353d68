//! Whether two engines gave the same rows.

use std::cmp::Ordering;

use crate::random::Statement;

/// Rows, with every value spelled.
pub type Rows = Vec<Vec<String>>;

/// Tells whether rows are the same; if not, where.
///
/// # Errors
/// A sentence that names the first difference.
pub fn compare(statement: &Statement, left: &Rows, right: &Rows) -> Result<(), String> {
    if left.len() != right.len() {
        return Err(format!("{} rows instead of {}", left.len(), right.len()));
    }
    // What the rows are ordered by comes in the same order, whatever rows of equal keys do.
    for (at, (a, b)) in left.iter().zip(right).enumerate() {
        if let Some(column) = statement.order.iter().find(|column| a[**column] != b[**column]) {
            return Err(format!(
                "row {at} is ordered otherwise: c{column} is {} instead of {}",
                a[*column], b[*column]
            ));
        }
    }
    let (left, right) = (sorted(statement, left), sorted(statement, right));
    let same = |(a, b): &(&&Vec<String>, &&Vec<String>)| {
        (0..a.len()).all(|column| a[column] == b[column] || statement.inexact[column] && near(&a[column], &b[column]))
    };
    match left.iter().zip(&right).find(|pair| !same(pair)) {
        None => Ok(()),
        Some((a, b)) => Err(format!("row ({}) instead of ({})", a.join(", "), b.join(", "))),
    }
}

/// Sorts by exact values first, so that inexact ones meet their counterparts.
fn sorted<'a>(statement: &Statement, rows: &'a Rows) -> Vec<&'a Vec<String>> {
    let mut rows: Vec<&Vec<String>> = rows.iter().collect();
    let columns = |inexact: bool| (0..statement.inexact.len()).filter(move |at| statement.inexact[*at] == inexact);
    rows.sort_by(|a, b| {
        let exact = columns(false).map(|at| a[at].cmp(&b[at])).find(|order| order.is_ne());
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        let inexact = || columns(true).map(|at| number(&a[at]).total_cmp(&number(&b[at]))).find(|order| order.is_ne());
        exact.or_else(inexact).unwrap_or(Ordering::Equal)
    });
    rows
}

/// Numbers that differ by rounding: of sums in another order, and of averages with fewer digits. What has no value, such as
/// a correlation with a constant, is null in one engine and NaN in another.
fn near(a: &str, b: &str) -> bool {
    let none = |text: &str| text == "NULL" || text == "NaN";
    if none(a) || none(b) {
        return none(a) && none(b);
    }
    let (Ok(a), Ok(b)) = (a.parse::<f64>(), b.parse::<f64>()) else { return false };
    (a - b).abs() <= 1e-5 + 1e-6 * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        text.split('|').map(|row| row.split(',').map(String::from).collect()).collect()
    }

    #[test]
    fn order_counts_where_there_is_one_and_rounding_where_it_may() {
        let mut statement = Statement { sql: String::new(), inexact: vec![false, true], order: Vec::new() };
        let agree = |statement: &Statement, a, b| compare(statement, &rows(a), &rows(b)).is_ok();
        assert!(agree(&statement, "a,1.5|b,NULL", "b,NULL|a,1.5000001"));
        assert!(!agree(&statement, "a,1.5", "a,1.6") && !agree(&statement, "a,1.5", "b,1.5"));
        assert!(!agree(&statement, "a,NULL", "a,0") && agree(&statement, "a,NULL", "a,NaN"));
        assert!(!agree(&statement, "a,1|a,1", "a,1"));
        statement.order = vec![0];
        assert!(!agree(&statement, "a,1.5|b,NULL", "b,NULL|a,1.5"));
        assert!(agree(&statement, "a,1|a,2", "a,2|a,1"));
    }
}
