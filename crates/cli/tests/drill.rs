//! The drill: processes killed at random points of COPY, `-o` and INSERT leave the old contents or the new, whole.
//!
//! `TANDEM_DRILL_ROUNDS` sets how often, `TANDEM_DRILL_SEED` replays a run.

mod common;

use std::{
    collections::BTreeMap,
    env, fs,
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use common::*;

/// Rounds of each way to write, unless told otherwise: some twenty seconds in all.
const ROUNDS: u64 = 5;
/// Rows of a statement, and bytes of each: enough for several buffers of every writer.
const ROWS: u64 = 100_000;
const WIDTH: u64 = 120;
const PARTITIONS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Copy,
    CopyToDirectory,
    Output,
    Insert,
    InsertIntoPartitions,
}

const WAYS: [Way; 5] = [Way::Copy, Way::CopyToDirectory, Way::Output, Way::Insert, Way::InsertIntoPartitions];

/// Returns numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Starts a process that writes the rows of a round, or a few of them.
fn start(way: Way, directory: &Path, round: u64, rows: u64) -> Child {
    let root = directory.to_str().expect("the path is text");
    let query = format!(
        "SELECT value AS v, {round} AS r, repeat('x', {WIDTH}) AS s, value % {PARTITIONS} AS p FROM generate_series(1, {rows}) AS g(value)"
    );
    let external = |partitioned: &str| {
        format!(
            "CREATE EXTERNAL TABLE e (v BIGINT, r BIGINT, s VARCHAR, p BIGINT) STORED AS CSV {partitioned} LOCATION '{root}/'"
        )
    };
    let mut command = tandem();
    command.args(["--format", "csv", "--on-fallback", "silent"]);
    let statements = match way {
        Way::Copy => vec![format!("COPY ({query}) TO '{root}/t.csv'")],
        Way::CopyToDirectory => vec![format!("COPY ({query}) TO '{root}' STORED AS CSV")],
        Way::Insert => vec![external(""), format!("INSERT INTO e {query}")],
        Way::InsertIntoPartitions => vec![external("PARTITIONED BY (p)"), format!("INSERT INTO e {query}")],
        Way::Output => {
            command.args(["-o", &format!("{root}/t.csv")]);
            vec![query]
        }
    };
    for statement in &statements {
        command.args(["-c", statement]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs")
}

/// Returns all files below a directory that are not hidden.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names(directory).iter().filter(|name| !name.starts_with('.')) {
        let path = directory.join(name);
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Returns the rows and the sum of values that are visible of each round; every file must be whole lines.
fn visible(directory: &Path) -> BTreeMap<u64, (u64, u64)> {
    let mut rounds = BTreeMap::new();
    for file in files(directory) {
        let text = fs::read_to_string(&file).expect("it is readable text");
        assert!(text.ends_with('\n'), "{} is cut off", file.display());
        for line in text.lines().skip(1) {
            let mut values = line.split(',');
            let mut next = || values.next().and_then(|value| value.parse::<u64>().ok()).expect("a whole number");
            let (value, round) = (next(), next());
            assert_eq!(values.next().map(str::len), Some(WIDTH as usize), "a whole line");
            let entry: &mut (u64, u64) = rounds.entry(round).or_default();
            *entry = (entry.0 + 1, entry.1 + value);
        }
    }
    rounds
}

fn whole(rows: u64) -> (u64, u64) {
    (rows, rows * (rows + 1) / 2)
}

#[test]
fn killed_at_any_point_nothing_is_half_written() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("TANDEM_DRILL_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish() | 1);
    let rounds = number("TANDEM_DRILL_ROUNDS").unwrap_or(ROUNDS);
    println!("TANDEM_DRILL_SEED={seed} TANDEM_DRILL_ROUNDS={rounds}");
    let mut numbers = Numbers(seed);
    for way in WAYS {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let started = Instant::now();
        assert!(start(way, place.path(), 0, ROWS).wait().expect("the binary ends").success(), "{way:?}");
        let length = started.elapsed().as_micros() as u64;
        let replaces = matches!(way, Way::Copy | Way::Output);
        let mut expected = visible(place.path());
        assert_eq!(expected, BTreeMap::from([(0, whole(ROWS))]), "{way:?}");
        for round in 1..=rounds {
            let mut child = start(way, place.path(), round, ROWS);
            sleep(Duration::from_micros(numbers.below(length + length / 4)));
            let terminated = numbers.below(2) == 0;
            match child.try_wait().expect("it is our child") {
                Some(_) => {}
                None if terminated => signal(&child, "TERM"),
                None => child.kill().expect("it is our child"),
            }
            let status = child.wait().expect("the binary ends");
            let what = format!("{way:?}, round {round}, {status}");
            if status.code().is_some() {
                assert_eq!(staged(place.path()), [""; 0], "it ended in order: {what}");
            }
            // The next run sweeps, and finishes what was complete: a small statement of the same kind, in other names.
            let several = matches!(way, Way::CopyToDirectory | Way::InsertIntoPartitions);
            if !several {
                check(&mut expected, &visible(place.path()), round, replaces, &what);
            }
            let small = start(way, place.path(), 1_000_000 + round, 0).wait().expect("the binary ends");
            assert!(small.success(), "{what}");
            if replaces {
                expected = visible(place.path());
            } else {
                check(&mut expected, &visible(place.path()), round, replaces, &what);
            }
            assert_eq!(staged(place.path()), [""; 0], "it was swept: {what}");
        }
    }
}

/// Checks that a round is there whole or not at all, and that nothing else changed.
fn check(
    expected: &mut BTreeMap<u64, (u64, u64)>,
    found: &BTreeMap<u64, (u64, u64)>,
    round: u64,
    replaces: bool,
    what: &str,
) {
    if found.contains_key(&round) {
        if replaces {
            expected.clear();
        }
        expected.insert(round, whole(ROWS));
    }
    assert_eq!(found, expected, "{what}");
}
