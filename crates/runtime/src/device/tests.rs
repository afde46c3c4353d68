//! What a device keeps is merged with what others contribute, whatever their number and kind.

use std::sync::Arc;

use tandem_column::{AlignedVec, Bitmap, Column, Field, Part, Table, Type};
use tandem_cpu::{Contents, Contribution, Job, PipelineOutput};
use tandem_device::{Backend, Search};
use tandem_pipeline::{JoinKind, Query, interpret, interpret::rows, parse, random};
use tandem_plan::Build;

use super::{Accelerator, Share, device_sink};
use crate::{QueryInputs, RunOptions, Runtime, Settings};

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

/// A table of no rows.
fn none() -> Table {
    Table::with_statistics(table(0).schema.clone(), Vec::new())
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
            let sink = device_sink(job.physical(), job.table()).expect("a kernel computes it");
            let ran = devices[device].run(job, &sink, Share::Parts(parts.to_vec()));
            ran.expect("the device runs it").0
        }
    }
}

fn two_devices() -> Vec<Arc<Accelerator>> {
    let found = Search { simulate: Some("titan-rtx,titan-rtx".to_owned()), ..Search::default() }.run();
    let simulated = found.devices.into_iter().filter(|device| device.info().backend == Backend::Sim);
    let devices: Vec<_> = simulated.map(|device| Arc::new(Accelerator::new(device).keep_all())).collect();
    assert_eq!(devices.len(), 2, "devices that are asked for are simulated");
    devices
}

fn serially(tasks: usize, task: &(dyn Fn(usize) -> tandem_column::Result<()> + Sync)) -> tandem_column::Result<()> {
    (0..tasks).try_for_each(task)
}

#[test]
fn kept_rows_merge_with_all_others() {
    let devices = two_devices();
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

/// Whoever computes the parts of a join, the build rows that none of them has matched come out once: by the CPU at the end,
/// or by a device that is asked for them.
#[test]
fn unmatched_rows_come_out_once() {
    let devices = two_devices();
    let (cpu, one, other) = (Place::Cpu, Place::Device(0), Place::Device(1));
    let mixes: [&[(Place, &[usize])]; 5] = [
        &[(cpu, &[0, 1]), (cpu, &[2, 3])],
        &[(one, &[0, 1]), (cpu, &[2, 3])],
        &[(one, &[0, 1]), (other, &[2, 3])],
        &[(one, &[0, 1, 2, 3])],
        &[(cpu, &[])],
    ];
    let runtime = Runtime::new(1);
    let (rows_left, rows_right) = (Arc::new(table(1)), Arc::new(table(5)));
    let tables = [("t".to_string(), rows_left.clone()), ("u".to_string(), rows_right)];
    let inputs = QueryInputs { tables: tables.iter().cloned().collect(), ..QueryInputs::default() };
    for kind in JoinKind::all().filter(|kind| kind.emits_build_rows()) {
        let text = format!(
            "pipeline 0 scan u [k@0: int64, v@1: int64?, i@2: int64] filter $0 < 300:int64 build keys ($1) payload ($0, $2) \
             pipeline 1 scan t [k@0: int64, v@1: int64?, i@2: int64] filter $0 > 200:int64 probe {} 0 on ($1) \
             adds ($3 k@0: int64?, $4 i@1: int64?) aggregate by ($3) (count_rows(): int64, sum($4): int64, count($0): int64)",
            kind.name()
        );
        let query = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let job = |id: usize, builds: &dyn Fn(usize) -> Option<Arc<Build>>| {
            let name = if id == 0 { "u" } else { "t" };
            let source = inputs.tables[name].clone();
            let physical = runtime.planning(&query, &inputs, &RunOptions::default(), builds, |planning| {
                tandem_plan::plan(&query, id, &source, planning)
            });
            Job::new(Arc::new(physical.expect("it is planned")), source, &Settings::default())
        };
        let first = job(0, &|_| None);
        let built = contribute(&first, cpu, &[0, 1, 2, 3], &devices);
        let (PipelineOutput::Build(build), _) = first.finish(vec![built], &serially).expect("it is built") else {
            panic!("a build comes out")
        };
        for mix in mixes {
            let every = mix.iter().flat_map(|(_, parts)| *parts).count() == PARTS;
            // Without all parts, what is expected is that of an empty table.
            let rows_of =
                |name: &str| if every || name == "u" { inputs.tables[name].clone() } else { Arc::new(none()) };
            let expected = random::inputs(&["t", "u"].map(|name| (name.to_string(), rows_of(name))));
            let expected = interpret(&query, &expected).expect("the interpreter runs it");
            for asked in [None, Some(0)] {
                let job = job(1, &|_| Some(build.clone()));
                let mut all: Vec<_> =
                    mix.iter().map(|(place, parts)| contribute(&job, *place, parts, &devices)).collect();
                assert!(all.iter().all(|contribution| !contribution.unmatched), "{mix:?}");
                if let Some(device) = asked {
                    let sink = device_sink(job.physical(), job.table()).expect("a kernel computes it");
                    let ran: &Arc<Accelerator> = &devices[device];
                    all.push(ran.run(&job, &sink, Share::Unmatched).expect("the device runs it").0);
                }
                let (PipelineOutput::Rows(output), _) = job.finish(all, &serially).expect("all are merged") else {
                    panic!("rows come out")
                };
                let found = rows(&output);
                let shown = format!("{mix:?} {asked:?}\n{query}\nexpected {expected:?}\nfound {found:?}");
                assert!(random::same_rows(&expected, &found), "{shown}");
            }
        }
    }
}
