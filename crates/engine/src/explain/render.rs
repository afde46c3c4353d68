//! The text of EXPLAIN and EXPLAIN ANALYZE for a captured sub-plan: its pipelines, where each runs, and how it went.

use std::{borrow::Cow, fmt::Write, time::Duration};

use tandem_pipeline::{Pipeline, Query, Sink, Source};
use tandem_runtime::{
    DeviceMetrics, Outline, OutlineItem, OutlineLine, PipelineMetrics, ProgramMetrics, QueryMetrics, StepMetrics,
};

use crate::planning::captured::Captured;

/// The factor up to which an estimate is as good as can be asked for.
const TOLERATED: f64 = 10.0;

/// Writes the pipelines of a captured sub-plan, one line per source, step and sink, in the order in which they run, each with
/// what was chosen for it; with metrics, what each did. Of a pipeline without an outline, nothing is decided yet.
pub(crate) fn render(
    captured: &Captured,
    outlines: &[Option<Outline>],
    metrics: Option<&QueryMetrics>,
    device: Option<&str>,
) -> String {
    let mut text = String::new();
    let place = match device {
        None => "cpu".to_string(),
        Some(name) => format!("{name} where a kernel computes a pipeline, else cpu"),
    };
    line(&mut text, 0, &format!("device: {place}"));
    let query = &captured.query;
    // Where sides were swapped, one more has run than there were.
    for index in 0..query.pipelines.len().max(outlines.len()) {
        let measured = metrics.and_then(|metrics| metrics.pipelines.get(index));
        let mut remarks = vec![format!("on {}", place_of(measured.map(std::slice::from_ref), device))];
        let estimate = captured.estimates.get(index).copied();
        remarks.extend(estimate.map(approximate));
        if let Some(measured) = measured {
            let off = estimate.and_then(|rows| misestimate(rows, measured.rows_out));
            remarks.extend(off.map(|factor| format!("OFF BY {factor:.0} ×")));
            remarks.push(totals(measured));
            remarks.extend(measured.device.as_ref().map(device_totals));
            remarks.extend(measured.reason.iter().map(|reason| format!("on the CPU: {reason}")));
        }
        line(&mut text, 0, &format!("pipeline {index} ({})", remarks.join(", ")));
        let given = outlines.get(index).and_then(Option::as_ref);
        let decided = given.is_some();
        let outline = match (given, query.pipelines.get(index)) {
            (Some(outline), _) => Cow::Borrowed(outline),
            (None, Some(pipeline)) => Cow::Owned(not_yet(query, pipeline)),
            (None, None) => continue,
        };
        for described in &outline.lines {
            let choice = match (&described.choice, described.of, measured, device) {
                (None, ..) | (_, OutlineItem::Source, Some(_), _) => String::new(),
                (Some(choice), OutlineItem::Source, None, Some(_)) if decided => {
                    format!(": {choice} on the CPU; a device skips whole parts")
                }
                (Some(choice), ..) => format!(": {choice}"),
            };
            let remark = match (described.of, measured) {
                (OutlineItem::Removed, _) => Some("removed: statistics".to_string()),
                (OutlineItem::Step(at), Some(measured)) => measured.steps.get(at).and_then(remark),
                (OutlineItem::Sink, Some(measured)) => measured.steps.last().and_then(remark),
                _ => None,
            };
            let remark = remark.map_or(String::new(), |remark| format!("  [{remark}]"));
            line(&mut text, 1, &format!("{}{choice}{remark}", described.text));
        }
    }
    text
}

/// Outlines a pipeline whose rows are not there yet.
fn not_yet(query: &Query, pipeline: &Pipeline) -> Outline {
    let when = match &pipeline.source {
        Source::Table { .. } => "the rest is decided when these columns are read",
        _ => "the rest is decided when these rows are there",
    };
    let open = !pipeline.steps.is_empty() || matches!(&pipeline.sink, Sink::Aggregate { keys, .. } if !keys.is_empty());
    let line = |(at, text)| {
        let of = if at == 0 { OutlineItem::Source } else { OutlineItem::Waiting };
        OutlineLine { of, text, choice: (at == 0 && open).then(|| when.to_string()) }
    };
    Outline { lines: pipeline.describe(query).into_iter().enumerate().map(line).collect() }
}

/// Writes a number of rows with two digits that mean something: estimates are no better.
fn approximate(rows: f64) -> String {
    if !rows.is_finite() || rows < 1.5 {
        return "about 1 row".to_string();
    }
    let unit = 10f64.powf((rows.log10().floor() - 1.0).max(0.0));
    format!("about {} rows", ((rows / unit).round() * unit) as u64)
}

/// Returns by which factor an estimate was wrong, if that is more than [`TOLERATED`]. No rows count as one: a plan for one
/// row is a plan for none.
pub(crate) fn misestimate(estimated: f64, actual: u64) -> Option<f64> {
    let (estimated, actual) = (estimated.max(1.0), actual.max(1) as f64);
    let factor = f64::max(estimated / actual, actual / estimated);
    (factor > TOLERATED).then_some(factor)
}

/// Names what pipelines ran on; what is planned, before they have run: a device takes those it has a kernel for.
pub(crate) fn place_of(measured: Option<&[PipelineMetrics]>, device: Option<&str>) -> String {
    let Some(measured) = measured else {
        return device.map_or("cpu".to_string(), |device| format!("{device}, else cpu"));
    };
    let mut places: Vec<&str> = Vec::new();
    for pipeline in measured {
        let devices = pipeline.device.iter().flat_map(|device| &device.names).map(String::as_str);
        // With a reason it ran there in part.
        let cpu = pipeline.device.is_none() || pipeline.reason.is_some();
        for place in devices.chain(cpu.then_some("cpu")) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places.join(" and ")
}

fn line(text: &mut String, depth: usize, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{:indent$}{line}", "", indent = depth * 2);
}

fn totals(measured: &PipelineMetrics) -> String {
    let mut text = format!("{} rows in, {} out, {}", measured.rows_in, measured.rows_out, time(measured.elapsed));
    if measured.rows_skipped > 0 {
        let _ = write!(text, ", {} rows skipped", measured.rows_skipped);
    }
    text
}

/// Says what a step, or the sink, did. What nobody counted, as devices do not count rows of single steps, has no remark.
fn remark(step: &StepMetrics) -> Option<String> {
    let mut text = format!("{} → {} rows, {}", step.rows_in, step.rows_out, time(step.time));
    if step.bytes > 0 {
        let _ = write!(text, ", {} bytes", step.bytes);
    }
    step.counted.then_some(text)
}

fn time(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

/// Says what a device did for a pipeline.
fn device_totals(device: &DeviceMetrics) -> String {
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let mut text = format!(
        "{} launches, {:.3} ms in kernels, {:.3} ms in copies ({:.3} ms during kernels), {:.3} ms compiling, {} bytes there, \
         {} read in place, {} back",
        device.launches,
        milliseconds(device.kernels),
        milliseconds(device.copies),
        milliseconds(device.overlapped),
        milliseconds(device.programs.iter().map(ProgramMetrics::time).sum()),
        device.bytes_to,
        device.bytes_shared,
        device.bytes_back
    );
    for remark in &device.remarks {
        let _ = write!(text, "; {remark}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_say_what_they_did() {
        let (rows_in, rows_out, time) = (90, 80, Duration::from_millis(1));
        let mut step = StepMetrics { rows_in, rows_out, time, counted: true, ..StepMetrics::default() };
        assert_eq!(remark(&step).as_deref(), Some("90 → 80 rows, 1.000 ms"));
        step.bytes = 8;
        assert_eq!(remark(&step).as_deref(), Some("90 → 80 rows, 1.000 ms, 8 bytes"));
        step.counted = false;
        assert_eq!(remark(&step), None);
    }

    #[test]
    fn estimates_are_marked_beyond_a_factor_of_ten() {
        assert_eq!(misestimate(100.0, 10), None);
        assert_eq!(misestimate(101.0, 10), Some(10.1));
        assert_eq!(misestimate(10.0, 250), Some(25.0));
        assert_eq!(misestimate(0.0, 0), None);
        assert_eq!(misestimate(0.001, 1), None);
        assert_eq!(misestimate(50.0, 0), Some(50.0));
        assert_eq!(approximate(f64::INFINITY), "about 1 row");
        assert_eq!(approximate(1234.0), "about 1200 rows");
    }

    #[test]
    fn places_are_those_that_ran_or_may() {
        let on = |names: &[&str], reason: Option<&str>| PipelineMetrics {
            device: (!names.is_empty()).then(|| DeviceMetrics {
                names: names.iter().map(ToString::to_string).collect(),
                ..DeviceMetrics::default()
            }),
            reason: reason.map(str::to_string),
            ..PipelineMetrics::default()
        };
        assert_eq!(place_of(None, None), "cpu");
        assert_eq!(place_of(None, Some("opencl:0")), "opencl:0, else cpu");
        assert_eq!(place_of(Some(&[on(&[], None)]), None), "cpu");
        assert_eq!(place_of(Some(&[on(&["opencl:0"], None)]), Some("opencl:0")), "opencl:0");
        assert_eq!(place_of(Some(&[on(&["opencl:0"], Some("it is full"))]), Some("opencl:0")), "opencl:0 and cpu");
        let all = [on(&["a"], None), on(&["a", "b"], None), on(&[], Some("it sorts"))];
        assert_eq!(place_of(Some(&all), Some("a and b")), "a and b and cpu");
    }
}
