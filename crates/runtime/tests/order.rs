//! Orders by plain text on devices: the rows of the interpreter, in its order, with nothing left to the CPU.

use std::sync::Arc;

use tandem_column::{Column, Field, Part, Table, Type};
use tandem_device::{Backend, testing};
use tandem_pipeline::{
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, QueryInputs, RunOptions, Runtime};

/// Makes a table of bytes, null in every seventh row, and a number that tells rows apart, in three parts.
fn table(longest: usize) -> Arc<Table> {
    let words: [&[u8]; 9] =
        [b"", b"\0", b"a", b"a\0", b"a\0b", b"ab", b"abcdefgh", b"abcdefgh\0", "日本éclair".as_bytes()];
    let part = |part: usize| {
        let text = |row: usize| match row % 4 {
            0 => vec![row as u8; longest.min(row)],
            1 => [words[row % 9], words[row / 3 % 9]].concat(),
            _ => words[row % 9].to_vec(),
        };
        let all = part * 50..(part + 1) * 50;
        let text = all.clone().map(|row| (row % 7 != 0).then(|| text(row)));
        let numbers: Vec<i64> = all.map(|row| row as i64).collect();
        let columns = vec![Column::from_values(Type::Binary, text), Column::from_i64(Type::Int64, numbers, None)];
        Arc::new(Part::new(50, columns))
    };
    let schema: Arc<[Field]> = Arc::new([Field::new("b", Type::Binary, true), Field::new("n", Type::Int64, false)]);
    Arc::new(Table::with_statistics(schema, (0..3).map(part).collect()))
}

#[test]
fn plain_text_is_sorted_on_the_device() {
    let found = tandem_device::Search::from_environment().run();
    if !testing::has(&found, Backend::OpenCl) {
        return;
    }
    let device = found.devices[0].clone();
    let accelerators = [Accelerator::new(device.clone()), Accelerator::new(device).in_turn()].map(Arc::new);
    for order in ["$0, $1", "$0 nulls first, $1 desc", "$0 desc, $1", "$0 desc nulls first, $1"] {
        for (longest, sorted) in [(64, true), (65, false)] {
            let text = format!("pipeline 0 scan t [b@0: binary?, n@1: int64] sort by ({order}) output ($1, $0)");
            let query = parse(&text).expect("the query is right");
            verify(&query).expect("the query is well-formed");
            let tables = [("t".to_owned(), table(longest))];
            let expected = interpret(&query, &random::inputs(&tables)).expect("the interpreter runs it");
            let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
            for accelerator in &accelerators {
                let options = RunOptions { devices: vec![accelerator.clone()], ..RunOptions::default() };
                let execution = Runtime::new(1).execute(&query, &inputs, &options).expect("it runs");
                assert_eq!(rows(&execution.table), expected, "{text}, {longest} bytes");
                let reason = execution.metrics.pipelines[0].reason.clone();
                let expected = "an order by text of 65 bytes is not on the device yet".to_owned();
                assert_eq!(reason, (!sorted).then_some(expected), "{text}");
            }
        }
    }
}
