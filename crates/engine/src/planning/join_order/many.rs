//! The order of more relations than a mask holds: one line of joins, each with the relation that leaves the fewest rows.
//!
//! Pure, as `graph`. Regions of such a size are made by programs; what matters is that no cross product comes before a join,
//! that small results come first, and that the work is a polynomial.

/// Returns an order of all relations: their rows, and the classes of what must be equal, as `Graph` has them.
pub(super) fn line(rows: &[f64], classes: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let mut of: Vec<Vec<(usize, f64)>> = vec![Vec::new(); rows.len()];
    for (class, members) in classes.iter().enumerate() {
        members.iter().for_each(|(relation, distinct)| of[*relation].push((class, distinct.max(1.0))));
    }
    // The distinct values of each class that those on the line have, once one of them is a member.
    let mut reached: Vec<Option<f64>> = vec![None; classes.len()];
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut line = Vec::with_capacity(rows.len());
    while !left.is_empty() {
        // By which factor joining a relation changes the rows; one that nothing connects comes last.
        let growth = |relation: usize| {
            let shared = of[relation].iter().filter_map(|(class, distinct)| Some(reached[*class]?.max(*distinct)));
            let (mut connected, mut divided) = (false, 0.0);
            for domain in shared {
                connected = true;
                divided += domain.ln();
            }
            (!connected && !line.is_empty(), rows[relation].max(1.0).ln() - divided)
        };
        let weighed = left.iter().map(|relation| growth(*relation)).enumerate();
        let least = weighed.min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let next = left.remove(least.map_or(0, |(position, _)| position));
        for (class, distinct) in &of[next] {
            reached[*class] = Some(reached[*class].map_or(*distinct, |known| known.min(*distinct)));
        }
        line.push(next);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_come_before_cross_products_and_small_results_first() {
        // A chain whose last relation is small, and one relation apart.
        let classes = [vec![(0, 100.0), (1, 100.0)], vec![(1, 10.0), (2, 10.0)], vec![(2, 50.0), (3, 5.0)]];
        assert_eq!(line(&[1000.0, 900.0, 800.0, 5.0, 7.0], &classes), [3, 2, 1, 0, 4]);
        assert_eq!(line(&[], &[]), Vec::<usize>::new());
    }

    #[test]
    fn a_star_of_many_is_joined_by_its_centre() {
        let count = 200;
        let rows: Vec<f64> =
            (0..count).map(|relation| if relation == 0 { 1e9 } else { 100.0 + relation as f64 }).collect();
        let classes: Vec<Vec<(usize, f64)>> = (1..count).map(|dimension| vec![(0, 1e3), (dimension, 1e3)]).collect();
        let line = line(&rows, &classes);
        assert_eq!(line[..2], [1, 0]);
        assert_eq!(line[2..], (2..count).collect::<Vec<_>>());
    }
}
