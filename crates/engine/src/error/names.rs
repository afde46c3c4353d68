//! Finding the name that was meant.

/// Candidates named in full in a message; longer lists give only the nearest name.
const LISTED: usize = 12;

/// Returns the candidate nearest to `name`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let scored = candidates.into_iter().map(|candidate| {
        let lower = candidate.to_lowercase();
        (strsim::damerau_levenshtein(&name, &lower), strsim::jaro_winkler(&name, &lower), candidate)
    });
    // A third of the letters may be wrong (one of two), or the beginnings agree well; of one letter nothing is near.
    let length = name.chars().count();
    let wrong = if length < 2 { 0 } else { (length / 3).max(1) };
    scored
        .filter(|(distance, similarity, _)| *distance <= wrong || *similarity > 0.88)
        .min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)))
        .map(|(_, _, candidate)| candidate)
}

/// Returns a suggestion to append to a message about an unknown `name`: the nearest candidate, else all if few.
pub(crate) fn suggestion(name: &str, candidates: &[String], plural: &str) -> String {
    let near = nearest(name, candidates.iter().map(String::as_str));
    match near {
        Some(near) if candidates.len() > LISTED => format!("did you mean '{near}'?"),
        Some(near) => format!("did you mean '{near}'? ({plural}: {})", candidates.join(", ")),
        None if candidates.is_empty() => format!("there are no {plural}"),
        None if candidates.len() > LISTED => {
            format!("{plural} include {} and {} more", candidates[..LISTED].join(", "), candidates.len() - LISTED)
        }
        None => format!("{plural}: {}", candidates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_forgives_typing_errors_only() {
        let names = ["lineorder", "customer", "supplier", "part", "date"];
        assert_eq!(nearest("linorder", names), Some("lineorder"));
        assert_eq!(nearest("CUSTOMERS", names), Some("customer"));
        assert_eq!(nearest("prat", names), Some("part"));
        assert_eq!(nearest("warehouse", names), None);
    }

    #[test]
    fn suggestion_lists_few_names() {
        let names = vec!["a".to_string(), "b".to_string()];
        assert_eq!(suggestion("zzz", &names, "columns"), "columns: a, b");
        assert_eq!(suggestion("x", &[], "tables"), "there are no tables");
    }
}
