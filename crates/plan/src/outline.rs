//! A physical pipeline in words: the lines that EXPLAIN prints, with what was chosen for each step, in the order in which
//! steps run. A plan that waits for builds has an outline, too: it says what waits.

use tandem_pipeline::{Expr, PipelineId, Slot, Value, scalar::cast};

use crate::{Domain, filter::Filter};

/// A physical pipeline in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The source, the steps in the order in which they run, and the sink.
    pub lines: Vec<OutlineLine>,
}

/// One line of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineLine {
    /// What it describes.
    pub of: OutlineItem,
    /// What it does, in the words of the pipeline.
    pub text: String,
    /// What was chosen for it, where there was a choice.
    pub choice: Option<String>,
}

/// What a line of an outline describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineItem {
    /// Where rows come from.
    Source,
    /// A step, by its place in [`crate::Body::steps`].
    Step(usize),
    /// A step that does not run: statistics made it superfluous.
    Removed,
    /// A step that is decided when its build is there.
    Waiting,
    /// Where rows go.
    Sink,
}

impl Outline {
    /// Returns the choices, each with the line that it was made for.
    pub fn choices(&self) -> Vec<String> {
        let made = self.lines.iter().filter_map(|line| Some(format!("{}: {}", line.text, line.choice.as_ref()?)));
        made.collect()
    }
}

/// Says what waits for builds.
pub(crate) fn waits_for(builds: &[PipelineId]) -> String {
    let names: Vec<String> = builds.iter().map(usize::to_string).collect();
    match names.as_slice() {
        [one] => format!("decided when build {one} is there"),
        all => format!("decided when builds {} are there", all.join(", ")),
    }
}

/// Says what a filter on the values or codes of a column keeps; nothing of other filters.
pub(crate) fn kept(filter: &Filter, slots: &[Slot], domains: &[Domain]) -> Option<String> {
    let value = |column: usize, value: i64| match slots[column].kind {
        tandem_pipeline::Type::Boolean => (value != 0).to_string(),
        ref kind => cast::describe(&Value::Integer(value.into()), kind),
    };
    let codes = |column: usize| domains[column].dictionary.as_ref().map(|dictionary| dictionary.len());
    Some(match filter {
        Filter::General(_) => return None,
        Filter::Between { column, low, high } => match codes(*column) {
            Some(all) if low == high => format!("code {low} of {all}"),
            Some(all) => format!("codes {low} to {high} of {all}"),
            None if low == high => format!("the value {}", value(*column, *low)),
            None => format!("values {} to {}", value(*column, *low), value(*column, *high)),
        },
        Filter::Member { column, set } => match codes(*column) {
            Some(all) => format!("a set of {} codes of {all}", set.len()),
            None => format!("a set of {} values", set.len()),
        },
    })
}

/// Says that checks were left out of expressions, if some were.
pub(crate) fn dropped_checks(before: &[Expr], after: &[Expr]) -> Option<String> {
    (before != after).then(|| "no overflow check, all results fit".to_string())
}
