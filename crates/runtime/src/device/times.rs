//! Times of a device's commands, by its own clock.

use std::time::Duration;

use tandem_device::Event;

/// Spans of time in nanoseconds, each from its start to its end.
type Spans = Vec<(u64, u64)>;

/// Returns when commands ran that have ended, where the device tells.
pub(super) fn spans(events: &[Event]) -> Spans {
    events.iter().filter_map(Event::times).map(|times| (times.started, times.ended)).collect()
}

/// Adds spans up; what ran at once counts once.
pub(super) fn sum(spans: &[(u64, u64)]) -> Duration {
    Duration::from_nanos(union(spans).iter().map(|(started, ended)| ended - started).sum())
}

/// Returns how long some of one kind and some of another ran at once.
pub(super) fn overlap(one: &[(u64, u64)], other: &[(u64, u64)]) -> Duration {
    let (one, other) = (union(one), union(other));
    let (mut at, mut shared) = (0, 0);
    for (started, ended) in one {
        while at < other.len() && other[at].1 <= started {
            at += 1;
        }
        let during = other[at..].iter().take_while(|span| span.0 < ended);
        shared += during.map(|span| span.1.min(ended) - span.0.max(started)).sum::<u64>();
    }
    Duration::from_nanos(shared)
}

/// Joins spans that meet.
fn union(spans: &[(u64, u64)]) -> Spans {
    let mut sorted: Spans = spans.iter().copied().filter(|(started, ended)| started < ended).collect();
    sorted.sort_unstable();
    let mut joined: Spans = Vec::with_capacity(sorted.len());
    for (started, ended) in sorted {
        match joined.last_mut() {
            Some(last) if started <= last.1 => last.1 = last.1.max(ended),
            _ => joined.push((started, ended)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_counted_once() {
        let nanoseconds = |one: &[(u64, u64)], other: &[(u64, u64)]| overlap(one, other).as_nanos();
        assert_eq!(nanoseconds(&[], &[(0, 9)]), 0);
        assert_eq!(nanoseconds(&[(0, 10)], &[(10, 20)]), 0);
        assert_eq!(nanoseconds(&[(0, 10), (5, 15)], &[(8, 30), (9, 12)]), 7);
        assert_eq!(nanoseconds(&[(0, 2), (4, 6), (8, 10)], &[(1, 9)]), 4);
        assert_eq!(nanoseconds(&[(0, 100)], &[(90, 110), (10, 20), (5, 5), (7, 3)]), 20);
        assert_eq!(sum(&[(1, 4), (2, 5), (7, 8)]), Duration::from_nanos(5));
    }
}
