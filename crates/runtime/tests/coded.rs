//! Joins by text whose rows have a dictionary look its values up once, and give the rows that the reference interpreter gives:
//! every kind, over builds with other dictionaries, the same one and none, with nulls, residuals and repeated keys.

use std::sync::Arc;

use tandem_column::{Bitmap, Codes, Column, Dictionary, Field, Part, Table, Type};
use tandem_device::{Backend, testing};
use tandem_pipeline::{
    JoinKind,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, QueryInputs, RunOptions, Runtime, Switches};

/// Queries for each kind of join.
const QUERIES: u64 = 30;
/// Of which so many run on a device, whose driver compiles for long.
const DEVICE_QUERIES: u64 = 3;

/// How a table holds its text.
#[derive(Clone, Debug)]
enum Text {
    Plain,
    Coded(Arc<Dictionary>),
}

fn word(number: u64) -> String {
    if number == 0 { String::new() } else { format!("{}é{number}", "w".repeat(number as usize % 20)) }
}

/// Makes a dictionary of the words from a number on, some of which no row may have.
fn dictionary(first: u64, count: u64) -> Arc<Dictionary> {
    let words: Vec<String> = (first..first + count).map(word).collect();
    Arc::new(Dictionary::from_unsorted(&Type::String, &words).expect("a dictionary").0)
}

/// Makes a table of a text and a number, in parts, with nulls or without; each text comes once if it is `unique`.
fn table(
    next: &mut dyn FnMut(u64) -> u64,
    (parts, rows): (usize, u64),
    text: &Text,
    nulls: bool,
    unique: bool,
) -> Arc<Table> {
    let schema: Arc<[Field]> = Arc::new([Field::new("k", Type::String, nulls), Field::new("v", Type::Int64, nulls)]);
    let mut taken = 0;
    let parts = (0..parts).map(|_| {
        let count = 1 + next(rows) as usize;
        let mut key = |all: u64| {
            taken += 1;
            if unique { taken - 1 } else { next(all) }
        };
        let (mut words, mut codes) = (Vec::new(), Vec::new());
        for _ in 0..count {
            match text {
                Text::Plain => words.push(word(key(30))),
                Text::Coded(dictionary) => codes.push(key(dictionary.len() as u64) as u32 % dictionary.len() as u32),
            }
        }
        let mut valid = || nulls.then(|| (0..count).map(|_| next(5) > 0).collect::<Bitmap>());
        let key = match text {
            Text::Plain => {
                let valid = valid();
                let word = |(row, word)| valid.as_ref().is_none_or(|valid| valid.get(row)).then_some(word);
                Column::from_values(Type::String, words.into_iter().enumerate().map(word))
            }
            Text::Coded(dictionary) => {
                Column::from_codes(Type::String, Codes::U32(codes.into()), dictionary.clone(), valid())
            }
        };
        let numbers: Vec<i64> = (0..count).map(|row| row as i64 % 7).collect();
        let columns = vec![key, Column::from_i64(Type::Int64, numbers, valid())];
        Arc::new(Part::new(count, columns))
    });
    let parts = parts.collect();
    Arc::new(Table::with_statistics(schema, parts))
}

/// Returns the options of each way to run.
fn ways(device: &Option<Arc<Accelerator>>, query: u64) -> Vec<RunOptions> {
    let with = |(vector_rows, force_collisions)| RunOptions {
        settings: Switches { vector_rows, force_collisions }.into(),
        ..RunOptions::default()
    };
    let mut ways: Vec<RunOptions> = [(4096, false), (1, false), (7, false), (64, true)].map(with).into();
    let devices = device.iter().filter(|_| query < DEVICE_QUERIES).cloned().collect::<Vec<_>>();
    if !devices.is_empty() {
        ways.push(RunOptions { devices, ..RunOptions::default() });
    }
    ways
}

#[test]
fn joins_by_codes_agree_with_the_interpreter() {
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    let found = tandem_device::Search::from_environment().run();
    let device = testing::has(&found, Backend::OpenCl).then(|| Arc::new(Accelerator::new(found.devices[0].clone())));
    let (mut coded, mut on_device, runtime) = (0, 0, Runtime::new(2));
    for (at, kind) in JoinKind::all().enumerate() {
        for seed in first..first + QUERIES {
            let mut state = seed.wrapping_mul(100).wrapping_add(at as u64);
            let mut next = |limit: u64| {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                (state >> 33) % limit
            };
            let (nulls, unique) = (next(2) == 0, next(2) == 0);
            let mine = dictionary(next(10), 1 + next(20));
            let other = match next(3) {
                0 => Text::Plain,
                1 => Text::Coded(mine.clone()),
                _ => Text::Coded(dictionary(next(15), 1 + next(30))),
            };
            let (left, right) = (1 + next(3) as usize, next(3) as usize);
            let tables: Vec<random::NamedTable> = vec![
                ("l".to_owned(), table(&mut next, (left, 120), &Text::Coded(mine), nulls, false)),
                ("r".to_owned(), table(&mut next, (right, 30), &other, nulls, unique)),
            ];
            let null = if nulls { "?" } else { "" };
            let columns = format!("[k@0: string{null}, v@1: int64{null}]");
            let condition = ["", "", " where $1 < $3", " where $3 <> $1", " where $3 <= $1"][next(5) as usize];
            let (adds, output) = match kind {
                JoinKind::Semi | JoinKind::Anti => (String::new(), "$0, $1"),
                JoinKind::Mark => (" adds ($2 mark: boolean)".to_owned(), "$0, $1, $2"),
                _ => {
                    let null = if matches!(kind, JoinKind::Left | JoinKind::Full) { "?" } else { null };
                    (format!(" adds ($2 rk@0: string{null}, $3 rv@1: int64{null})"), "$0, $1, $2, $3")
                }
            };
            let text = format!(
                "pipeline 0 scan r {columns} build keys ($0) payload ($0, $1) pipeline 1 scan l {columns} \
                 probe {} 0 on ($0){condition}{adds} materialize output ({output})",
                kind.name()
            );
            let query = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            verify(&query).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let expected = interpret(&query, &random::inputs(&tables)).expect("the interpreter runs it");
            let inputs = QueryInputs { tables: tables.iter().cloned().collect(), ..QueryInputs::default() };
            for options in ways(&device, seed - first) {
                let execution = runtime.execute(&query, &inputs, &options).expect("it runs");
                let found = rows(&execution.table);
                let same = random::same_rows(&expected, &found);
                assert!(same, "seed {seed}, {options:?}\n{query}\nexpected {expected:?}\nfound {found:?}");
                let probed = &execution.metrics.pipelines[1];
                let by_code = probed.outline.choices().iter().any(|note| note.contains(" codes"));
                coded += usize::from(by_code);
                on_device += usize::from(by_code && probed.device.is_some());
            }
        }
    }
    assert!(coded > 0, "no build was laid out by codes");
    assert!(device.is_none() || on_device > 0, "no join by codes ran on the device");
}
