//! What a device keeps is merged with what others contribute, whatever their number and kind.

use std::sync::Arc;

use tandem_column::{AlignedVec, Bitmap, Column, Field, Part, Table, Type};
use tandem_cpu::{Contents, Contribution, Job, PipelineOutput};
use tandem_device::{Backend, Search};
use tandem_pipeline::{Query, interpret, interpret::rows, parse, random};

use super::{Accelerator, kernel_sink};
use crate::{Cancel, QueryInputs, RunOptions, Runtime, Settings};

const PARTS: usize = 4;
const PART_ROWS: i64 = 700;

/// First pipelines, all of whose rows a second one reads: groups by places of an array, by hash and without a key, rows, rows
/// in order, and the first of them.
const FIRST: [(&str, &str); 6] = [
    (
        "aggregate by ($0) (count_rows(): int64, sum($1): int64, max($1): int64, average($1): float64)",
        "k: int64, n: int64, s: int64?, m: int64?, a: float64?",
    ),
    (
        "let $3 w: int64 = $0 * 1000000007:int64
  aggregate by ($3) (count($1): int64, sum($1): int64, min($2): int64, average($1): float64)",
        "k: int64, n: int64, s: int64?, m: int64?, a: float64?",
    ),
    ("aggregate by () (count($1): int64, average($1): float64)", "n: int64, a: float64?"),
    ("filter $1 > 10:int64\n  let $3 w: int64? = $1 + $0\n  materialize output ($0, $3)", "k: int64, w: int64?"),
    ("sort by ($1 desc, $2) output ($2, $0)", "i: int64, k: int64"),
    ("sort by ($0, $1 desc, $2) fetch 900 output ($2, $1)", "i: int64, v: int64?"),
];

/// Who computes which parts.
#[derive(Clone, Copy, Debug)]
enum Place {
    Cpu,
    Device(usize),
}

fn table(seed: i64) -> Table {
    let part = |part: usize| {
        let all = (0..PART_ROWS).map(|row| part as i64 * PART_ROWS + row);
        let all: Vec<i64> = all.collect();
        let column = |value: &dyn Fn(i64) -> i64, validity| {
            let values = all.iter().map(|row| value(*row)).collect::<AlignedVec<i64>>();
            Arc::new(Column::from_i64(Type::Int64, values, validity))
        };
        let validity: Bitmap = all.iter().map(|row| (row * 13 + seed) % 11 != 0).collect();
        let columns = vec![
            column(&|row| (row * 7919 + seed) % 500, None),
            column(&|row| (row * 31 + seed) % 1009 - 5, Some(validity)),
            column(&|row| row, None),
        ];
        Arc::new(Part { rows: all.len(), columns })
    };
    let schema: Arc<[Field]> = ["k", "v", "i"].map(|name| Field::new(name, Type::Int64, true)).into();
    Table::with_statistics(schema, (0..PARTS).map(part).collect())
}

fn query((first, columns): (&str, &str)) -> Query {
    let output: Vec<String> = (0..columns.split(',').count()).map(|slot| format!("${slot}")).collect();
    let output = output.join(", ");
    let text = format!(
        "pipeline 0\n  scan t [k@0: int64, v@1: int64?, i@2: int64]\n  {first}\npipeline 1\n  result 0 [{columns}]\n  \
         materialize output ({output})\n"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn contribute(job: &Job, place: Place, parts: &[usize], devices: &[Arc<Accelerator>]) -> Contribution {
    match place {
        Place::Cpu => {
            let mut worker = job.worker();
            for (index, morsel) in job.physical().morsels.iter().enumerate() {
                if parts.contains(&morsel.part) {
                    job.run(&mut worker, index).expect("the CPU runs it");
                }
            }
            worker.finish()
        }
        Place::Device(device) => {
            let sink = kernel_sink(job.physical(), job.table()).expect("a kernel computes it");
            let ran = devices[device].run(job, &sink, parts.to_vec(), &Cancel::new());
            ran.expect("the device runs it").0
        }
    }
}

#[test]
fn kept_rows_merge_with_all_others() {
    let found = Search { simulate: Some("titan-rtx,titan-rtx".to_owned()), ..Search::default() }.run();
    let simulated = found.devices.into_iter().filter(|device| device.info().backend == Backend::Sim);
    let devices: Vec<_> = simulated.map(|device| Arc::new(Accelerator::new(device).keep_all())).collect();
    assert_eq!(devices.len(), 2, "devices that are asked for are simulated");
    let (cpu, one, other) = (Place::Cpu, Place::Device(0), Place::Device(1));
    let mixes: [&[(Place, &[usize])]; 6] = [
        &[(one, &[0, 1]), (cpu, &[2, 3])],
        &[(cpu, &[0]), (one, &[1, 2]), (cpu, &[3])],
        &[(one, &[0, 1]), (other, &[2, 3])],
        &[(cpu, &[2]), (one, &[0]), (other, &[3]), (one, &[1])],
        &[(one, &[0, 1, 2, 3]), (cpu, &[])],
        &[(cpu, &[]), (other, &[0, 1, 2, 3]), (one, &[])],
    ];
    let runtime = Runtime::new(1);
    for (seed, first) in FIRST.iter().enumerate() {
        let query = query(*first);
        let table = Arc::new(table(seed as i64));
        let inputs = QueryInputs { tables: [("t".to_string(), table.clone())].into(), ..QueryInputs::default() };
        let mut alone = query.clone();
        alone.pipelines.truncate(1);
        let expected =
            interpret(&alone, &random::inputs(&[("t".to_string(), table.clone())])).expect("the interpreter runs it");
        for mix in mixes {
            let options = RunOptions::default();
            let physical = runtime.planning(&query, &inputs, &options, &|_| None, |planning| {
                tandem_plan::plan(&query, 0, &table, planning)
            });
            let job = Job::new(Arc::new(physical.expect("it is planned")), table.clone(), &Settings::default());
            let mut contributions = Vec::new();
            for (place, parts) in mix {
                let contribution = contribute(&job, *place, parts, &devices);
                let kept = matches!(contribution.contents, Contents::Kept(_));
                // One group may come back.
                if !first.0.contains("aggregate by ()") {
                    assert_eq!(kept, matches!(place, Place::Device(_)) && !parts.is_empty(), "{mix:?}\n{query}");
                }
                contributions.push(contribution);
            }
            let serially = |tasks: usize, task: &(dyn Fn(usize) -> tandem_column::Result<()> + Sync)| {
                (0..tasks).try_for_each(task)
            };
            let (output, _) = job.finish(contributions, &serially).expect("all are merged");
            let PipelineOutput::Rows(output) = output else { panic!("rows come out") };
            let found = rows(&output);
            let same = match first.0.starts_with("aggregate") || first.0.contains("\n  aggregate") {
                true => random::same_rows(&expected, &found),
                false => expected == found,
            };
            assert!(same, "{mix:?}\n{query}\nexpected {expected:?}\nfound {found:?}");
        }
    }
}
