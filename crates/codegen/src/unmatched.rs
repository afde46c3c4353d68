//! Build rows that come out of a join at the end: a loop over entries in place of rows, then the steps behind the join.
//!
//! What steps before the join define is null for them. Which entries come out is told by the flags that the rows' kernels
//! set. All that comes behind the join, the sink included, is what rows go through.

use tandem_column::{Error, Repr, Result};
use tandem_pipeline::{JoinKind, SlotId, Value};
use tandem_plan::{Action, Origin, PhysicalProbe, Way};

use crate::{
    Binding, ColumnLayout, Form, GeneratedKernel, KernelInput,
    expression::Term,
    kernel::{Generator, generate_from},
};

/// Generates the kernel of the build rows that a probe, one of the pipeline's steps, emits after the last row.
///
/// # Errors
/// Unsupported, with the reason, for what kernels or the device cannot do.
pub fn generate_unmatched(input: KernelInput<'_>, step: usize) -> Result<GeneratedKernel> {
    match &input.body.steps[step].action {
        Action::Probe(probe) if probe.kind.emits_build_rows() => generate_from(input, Some(step)),
        _ => Err(Error::internal("no build rows come out of this step")),
    }
}

impl<'f> Generator<'f> {
    /// Returns the probe whose build rows the kernel is of.
    fn emitter(&self) -> Option<&'f PhysicalProbe> {
        match &self.input.body.steps[self.unmatched?].action {
            Action::Probe(probe) => Some(probe),
            _ => None,
        }
    }

    /// Opens the loop over the entries that come out of the probe.
    pub(crate) fn open_entry(&mut self, entries: &str, step: usize) -> Result<()> {
        let probe = self.emitter().ok_or_else(|| Error::internal("no build rows come out of this step"))?;
        let body = self.input.body;
        // No row led to the builds before.
        let before = body.steps[..step].iter().filter_map(|step| match &step.action {
            Action::Probe(probe) => Some(probe.lookup),
            _ => None,
        });
        let direct = (0..body.lookups.len()).filter(|at| matches!(body.lookups[*at].way, Way::Column { .. }));
        for lookup in before.chain(direct) {
            self.entries[lookup] = Some("0".into());
            self.absent[lookup] = Some("1".into());
        }
        self.text.open(&format!("FOR_ROWS(row, {entries}) {{"));
        let matched = self.matched(probe);
        let dropped = if probe.kind == JoinKind::RightSemi { "!" } else { "" };
        self.text.line(format!("if ({dropped}{matched}[row]) continue;"));
        if let Way::Unique { .. } = body.lookups[probe.lookup].way {
            let bits = self.lookup_argument(Binding::KeyBits(probe.lookup), "u32", "bits", probe.lookup);
            self.text.line(format!("if (!IN_SET({bits}, row)) continue;"));
        }
        self.entries[probe.lookup] = Some("row".into());
        Ok(())
    }

    /// Returns the null that a slot is for a build row: all those before the join's own. `None` for other slots, and for
    /// rows.
    pub(crate) fn nothing(&mut self, slot: SlotId) -> Result<Option<Term>> {
        if self.emitter().is_none_or(|probe| slot >= probe.first) {
            return Ok(None);
        }
        let (kind, origin) = (self.input.body.slots[slot].kind.clone(), self.input.body.origins[slot]);
        let layout = match origin {
            Origin::Column(column) => Some(&self.input.columns[column]),
            Origin::Payload { lookup, payload } => Some(&self.input.payloads[lookup][payload]),
            Origin::Computed => None,
        };
        // Text with a dictionary is a code everywhere.
        let coded = matches!(layout, Some(Ok(ColumnLayout { form: Form::Code(_), .. })));
        if kind.repr() == Repr::Bytes && coded {
            return Ok(Some(Term { words: Some(origin), ..Term::new("0", Some("1".into()), kind) }));
        }
        self.literal(&Value::Null, &kind).map(Some)
    }
}
