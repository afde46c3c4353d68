//! Joins by inequality give the rows that the reference interpreter gives: every kind, with and without keys, over integers
//! and floats with nulls, NaN, both zeros and extremes, for builds of which entries repeat and of which none do.

use std::sync::Arc;

use tandem_column::{Bitmap, Column, Field, Part, Table, Type};
use tandem_pipeline::{
    JoinKind,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{QueryInputs, RunOptions, Runtime, Switches};

/// Queries for each kind of join.
const QUERIES: u64 = 40;

/// Makes a table of a key, an integer, an integer beyond it, and a float, with nulls or without.
fn table(next: &mut dyn FnMut(u64) -> u64, rows: usize, keys: u64, nulls: bool) -> Arc<Table> {
    let kinds = [("k", Type::Int64), ("a", Type::Int64), ("b", Type::Int64), ("x", Type::Float64)];
    let schema: Arc<[Field]> = kinds.into_iter().map(|(name, kind)| Field::new(name, kind, nulls)).collect();
    let (mut key, mut low, mut high, mut float) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        key.push(next(keys) as i64 * 1_000_003);
        let value = match next(12) {
            0 => i64::MAX,
            1 => i64::MIN,
            _ => next(30) as i64,
        };
        low.push(value);
        high.push(value.saturating_add(next(4) as i64));
        float.push([f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, -1.5, 1.5, 2.5][next(8) as usize]);
    }
    let mut valid = || nulls.then(|| (0..rows).map(|_| next(5) > 0).collect::<Bitmap>());
    let columns = vec![
        Column::from_i64(Type::Int64, key, valid()),
        Column::from_i64(Type::Int64, low, valid()),
        Column::from_i64(Type::Int64, high, valid()),
        Column::from_f64(float, valid()),
    ];
    Arc::new(Table::with_statistics(schema, vec![Arc::new(Part::new(rows, columns))]))
}

#[test]
fn inequalities_agree_with_the_interpreter() {
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    // Of the row: $1, $2 and $3; of the build: $5, $6 and $7.
    let conditions = [
        "$1 < $5",
        "$1 <= $5",
        "$5 < $2",
        "$5 <= $1",
        "$6 >= $1",
        "$2 > $6",
        "$7 < $3",
        "$3 <= $7",
        "$5 <> $1",
        // Fulfilled by null as well, of the build or of the row.
        "(($1 < $6) or ($6 is null))",
        "(($6 is null) or ($6 <= $1))",
        "(($5 is null) or ($5 > $1))",
        "(($2 is null) or ($5 < $2))",
        "(($1 >= $6) or ($1 is null))",
    ];
    let (mut searched, runtime) = (0, Runtime::new(2));
    for (at, kind) in JoinKind::all().enumerate() {
        for seed in first..first + QUERIES {
            let mut state = seed.wrapping_mul(100).wrapping_add(at as u64);
            let mut next = |limit: u64| {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                (state >> 33) % limit
            };
            let (keyed, nulls) = (next(2) == 0, next(2) == 0);
            let (left, right, keys) = (next(60) as usize, next(60) as usize, 1 + next(6));
            let tables: Vec<random::NamedTable> = vec![
                ("l".to_owned(), table(&mut next, left, keys, nulls)),
                ("r".to_owned(), table(&mut next, right, keys, nulls)),
            ];
            let chosen = (0..1 + next(3)).map(|_| conditions[next(conditions.len() as u64) as usize]);
            let condition = chosen.collect::<Vec<_>>().join(" and ");
            let null = if nulls { "?" } else { "" };
            let columns = format!("[k@0: int64{null}, a@1: int64{null}, b@2: int64{null}, x@3: float64{null}]");
            let key = if keyed { "$0" } else { "" };
            let (adds, output) = match kind {
                JoinKind::Semi | JoinKind::Anti => (String::new(), "$0, $1, $2, $3"),
                JoinKind::Mark => (" adds ($4 mark: boolean)".to_owned(), "$0, $1, $2, $3, $4"),
                _ => {
                    let null = if matches!(kind, JoinKind::Left | JoinKind::Full) { "?" } else { null };
                    (format!(" adds ($4 rk@0: int64{null}, $5 ra@1: int64{null})"), "$0, $1, $2, $3, $4, $5")
                }
            };
            let text = format!(
                "pipeline 0 scan r {columns} build keys ({key}) payload ($0, $1, $2, $3) pipeline 1 scan l {columns} \
                 probe {} 0 on ({key}) where {condition}{adds} materialize output ({output})",
                kind.name()
            );
            let query = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            verify(&query).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let expected = interpret(&query, &random::inputs(&tables)).expect("the interpreter runs it");
            let inputs = QueryInputs { tables: tables.iter().cloned().collect(), ..QueryInputs::default() };
            for (vector_rows, force_collisions) in [(4096, false), (1, false), (7, false), (64, true)] {
                let switches = Switches { vector_rows, force_collisions };
                let options = RunOptions { settings: switches.into(), ..RunOptions::default() };
                let execution = runtime.execute(&query, &inputs, &options).expect("it runs");
                let found = rows(&execution.table);
                let same = random::same_rows(&expected, &found);
                assert!(same, "seed {seed}, vectors of {vector_rows}\n{query}\nexpected {expected:?}\nfound {found:?}");
                let notes = execution.metrics.pipelines.iter().flat_map(|pipeline| pipeline.outline.choices());
                searched += notes.filter(|note| note.contains("searched by inequality")).count();
            }
        }
    }
    assert!(searched > 0, "no build was searched");
}
