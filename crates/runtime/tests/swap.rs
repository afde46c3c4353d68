//! Joins whose build turns out to be the larger side run with their sides swapped, and give the rows that the reference
//! interpreter gives: every kind, with and without further conditions, keys that repeat and nulls, and whatever follows the join.

use std::sync::Arc;

use tandem_column::{Bitmap, Column, Field, Part, Table, Type};
use tandem_pipeline::{
    JoinKind,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{QueryInputs, RunOptions, Runtime, Switches};

/// Rows of the build: enough for its sides to be swapped.
const MANY: usize = 70_000;

/// Makes a table of a key and a number, either of which may be null. Most keys are far from all others.
fn table(seed: u64, rows: usize, nulls: bool) -> Arc<Table> {
    let mut state = seed;
    let mut next = |limit: u64| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) % limit
    };
    let schema: Arc<[Field]> = Arc::new([Field::new("k", Type::Int64, nulls), Field::new("v", Type::Int64, nulls)]);
    let far = rows > 1000;
    let mut key = |_| if far && next(500) > 0 { 1_000_000 + next(1 << 40) as i64 } else { next(20) as i64 };
    let keys: Vec<i64> = (0..rows).map(&mut key).collect();
    let numbers: Vec<i64> = (0..rows).map(|_| next(9) as i64).collect();
    let mut valid = || nulls.then(|| (0..rows).map(|_| next(7) > 0).collect::<Bitmap>());
    let columns = vec![Column::from_i64(Type::Int64, keys, valid()), Column::from_i64(Type::Int64, numbers, valid())];
    Arc::new(Table::with_statistics(schema, vec![Arc::new(Part::new(rows, columns))]))
}

#[test]
fn swapped_joins_agree_with_the_interpreter() {
    let runtime = Runtime::new(2);
    for (at, kind) in JoinKind::all().enumerate() {
        for case in 0..4u64 {
            let nulls = case % 2 == 1;
            let seed = 1 + 10 * at as u64 + case;
            let tables: Vec<random::NamedTable> =
                vec![("l".to_owned(), table(seed, 40, nulls)), ("r".to_owned(), table(seed + 1000, MANY, nulls))];
            let null = if nulls { "?" } else { "" };
            let columns = format!("[k@0: int64{null}, v@1: int64{null}]");
            let condition = if case < 2 { "" } else { " where $1 < $4" };
            let (adds, behind) = match kind {
                JoinKind::Semi | JoinKind::Anti => (String::new(), 3),
                JoinKind::Mark => (" adds ($3 mark: boolean)".to_owned(), 4),
                _ => {
                    let null = if matches!(kind, JoinKind::Left | JoinKind::Full) { "?" } else { null };
                    (format!(" adds ($3 rk@0: int64{null}, $4 rv@1: int64{null})"), 5)
                }
            };
            // What is read behind the join: of the row, of what a step before it adds, of the build, of a step behind it.
            let read = match kind {
                JoinKind::RightSemi | JoinKind::RightAnti => "$3, $4".to_owned(),
                _ => (0..behind).map(|slot| format!("${slot}")).collect::<Vec<_>>().join(", "),
            };
            let of = if behind == 5 { "$4" } else { "$2" };
            let sinks = [
                format!("materialize output ({read})"),
                format!(
                    "let ${behind} y: int64? = {of} + 1 filter ${behind} > 3 aggregate by (${behind}) (count_rows(): int64)"
                ),
            ];
            for sink in sinks {
                let text = format!(
                    "pipeline 0 scan r {columns} build keys ($0) payload ($0, $1) pipeline 1 scan l {columns} \
                     filter $1 < 8 let $2 x: int64{null} = $1 + 10 probe {} 0 on ($0){condition}{adds} {sink}",
                    kind.name()
                );
                let query = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
                verify(&query).unwrap_or_else(|e| panic!("{e}\n{text}"));
                let expected = interpret(&query, &random::inputs(&tables)).expect("the interpreter runs it");
                let inputs = QueryInputs { tables: tables.iter().cloned().collect(), ..QueryInputs::default() };
                for (vector_rows, force_collisions) in [(4096, false), (7, false)] {
                    let switches = Switches { vector_rows, force_collisions };
                    let options = RunOptions { settings: switches.into(), ..RunOptions::default() };
                    let execution = runtime.execute(&query, &inputs, &options).expect("it runs");
                    let found = rows(&execution.table);
                    let same = random::same_rows(&expected, &found);
                    assert!(
                        same,
                        "seed {seed}, vectors of {vector_rows}\n{query}\n{} rows, {} found",
                        expected.len(),
                        found.len()
                    );
                    let swapped = execution.metrics.pipelines.len() == 3;
                    assert_eq!(swapped, kind != JoinKind::Mark, "{query}");
                    let notes = execution.metrics.pipelines[0].outline.choices();
                    assert_eq!(notes.iter().any(|note| note.contains("sides swapped")), swapped, "{notes:?}");
                }
            }
        }
    }
}

/// Sides stay as they are where the build is not much larger, and where several joins look it up.
#[test]
fn other_builds_stay() {
    let columns = "[k@0: int64, v@1: int64]";
    let tables: Vec<random::NamedTable> = vec![
        ("few".to_owned(), table(1, 40, false)),
        ("some".to_owned(), table(2, MANY / 3, false)),
        ("many".to_owned(), table(3, MANY, false)),
    ];
    let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
    let build = format!("pipeline 0 scan many {columns} build keys ($0) payload ($1)");
    let probe = |of: &str| format!("scan {of} {columns} probe inner 0 on ($0) adds ($2 w@0: int64)");
    let count = "aggregate by () (count_rows(): int64)";
    for text in [
        format!("{build} pipeline 1 {} {count}", probe("some")),
        format!(
            "{build} pipeline 1 {} materialize output ($2) pipeline 2 {} materialize output ($2) \
             pipeline 3 result 1, 2 [w: int64] {count}",
            probe("few"),
            probe("few")
        ),
    ] {
        let query = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&query).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let execution = Runtime::new(2).execute(&query, &inputs, &RunOptions::default()).expect("it runs");
        assert_eq!(execution.metrics.pipelines.len(), query.pipelines.len(), "{text}");
    }
}
