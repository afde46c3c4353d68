//! Whether results agree: the same rows, in any order, integers and text exactly, other numbers within a tolerance.
//!
//! Engines differ in the scale of decimal averages and quotients and in the order of float sums; two numbers agree if they
//! differ by less than a millionth, or by less than a unit in the last digit that the shorter one shows.

use std::cmp::Ordering;

use super::contender::Rows;

/// Tells whether two results agree; if not, where.
///
/// # Errors
/// A sentence that names the first difference.
pub fn compare(left: &Rows, right: &Rows) -> Result<(), String> {
    if left.len() != right.len() {
        return Err(format!("{} rows instead of {}", right.len(), left.len()));
    }
    if left.iter().zip(right).all(|(a, b)| same_row(a, b)) {
        return Ok(());
    }
    let (left, right) = (sorted(left), sorted(right));
    match left.iter().zip(&right).find(|(a, b)| !same_row(a, b)) {
        None => Ok(()),
        Some((a, b)) => Err(format!("row ({}) instead of ({})", show(b), show(a))),
    }
}

type Row = Vec<Option<String>>;

fn show(row: &Row) -> String {
    let text = row.iter().map(|value| value.as_deref().unwrap_or("null")).collect::<Vec<_>>().join(", ");
    if text.chars().count() > 120 { text.chars().take(120).chain("…".chars()).collect() } else { text }
}

/// Sorts by exact values first, so that inexact ones meet their counterparts.
fn sorted(rows: &Rows) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| {
        let exact = |row: &Row| row.iter().filter(|v| !inexact(v)).map(normal).collect::<Vec<_>>();
        exact(a).cmp(&exact(b)).then_with(|| numbers(a).partial_cmp(&numbers(b)).unwrap_or(Ordering::Equal))
    });
    rows
}

fn numbers(row: &Row) -> Vec<f64> {
    row.iter().filter(|v| inexact(v)).filter_map(|v| v.as_ref()?.parse().ok()).collect()
}

/// A number with a fraction or an exponent.
fn inexact(value: &Option<String>) -> bool {
    value.as_ref().is_some_and(|text| text.contains(['.', 'e', 'E', 'N', 'i']) && text.parse::<f64>().is_ok())
}

fn normal(value: &Option<String>) -> Option<String> {
    value.as_ref().map(|text| text.strip_suffix(".0").unwrap_or(text).to_string())
}

fn same_row(a: &Row, b: &Row) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a.as_deref(), b.as_deref()))
}

fn same(a: Option<&str>, b: Option<&str>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    if a == b {
        return true;
    }
    if a.parse::<i128>().is_ok() && b.parse::<i128>().is_ok() {
        return a.parse::<i128>() == b.parse::<i128>();
    }
    let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) else { return false };
    if x.is_nan() || y.is_nan() {
        return x.is_nan() && y.is_nan();
    }
    let digits = decimals(a).min(decimals(b));
    // An integer's last digit is exact; a fraction's may be rounded either way.
    let unit = if digits == 0 { 0.0 } else { 1.01 * 10f64.powi(-(digits.min(300) as i32)) };
    x == y || (x - y).abs() <= (1e-6 * x.abs().max(y.abs())).max(unit)
}

/// How many digits follow the point; many for numbers with an exponent, whose digits are all significant.
fn decimals(text: &str) -> usize {
    if text.contains(['e', 'E']) {
        return 300;
    }
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        let value = |v: &str| if v == "null" { None } else { Some(v.to_string()) };
        text.split('|').map(|row| row.split(',').map(value).collect()).collect()
    }

    fn agree(a: &str, b: &str) -> bool {
        compare(&rows(a), &rows(b)).is_ok()
    }

    #[test]
    fn order_does_not_matter_but_values_do() {
        assert!(agree("a,1|b,2", "b,2|a,1"));
        assert!(agree("a,1.50|a,2.5", "a,2.500|a,1.5"));
        assert!(!agree("a,1|b,2", "a,2|b,1"));
        assert!(!agree("a,1", "a,1|a,1"));
        assert!(!agree("a,null", "a,0"));
        assert!(agree("null,x", "null,x"));
    }

    #[test]
    fn integers_are_exact_and_fractions_are_not() {
        assert!(!agree("9007199254740993", "9007199254740992"));
        assert!(agree("25.522005", "25.522005853257337"));
        assert!(agree("0.03", "0.0344359"));
        assert!(!agree("0.05", "0.0344359"));
        assert!(agree("38273.13", "38273.129734621674"));
        assert!(agree("7", "7.0"));
        assert!(!agree("7", "8.0"));
        assert!(agree("NaN", "nan") && !agree("NaN", "1.0"));
        assert!(!agree("abc", "1.0"));
    }

    #[test]
    fn differences_are_named() {
        let error = compare(&rows("a,1"), &rows("a,2")).unwrap_err();
        assert_eq!(error, "row (a, 2) instead of (a, 1)");
    }
}
