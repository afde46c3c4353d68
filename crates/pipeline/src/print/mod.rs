//! The text form of a query: what goldens and EXPLAIN show.
//!
//! The exact form, `Display` of [`Query`], has one line per source, step and sink and names slots by number; reading it
//! with [`crate::parse()`] gives the same query. The form for people, [`Pipeline::describe`] and [`Expr::display`], names
//! slots by name and leaves out what only a machine needs. Both are written by the same code.

mod expression;
mod function;

use std::{
    fmt::{self, Write},
    sync::Arc,
};

use tandem_column::{TimeUnit, Type};

pub use expression::DisplayExpr;
pub(crate) use expression::{level, natural_type};

use crate::{
    Aggregate, Expr, FrameBound, FrameExclusion, FrameUnit, JoinKind, Overflow, Phase, Pipeline, Probe, Query, Sink,
    Slot, SlotId, SortKey, Source, Step, UserFunction, WindowFrame, WindowFunction, value::write_quoted,
};

/// Writes one form or the other.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    /// What slots mean here.
    pub slots: &'a [Slot],
    /// The query's functions.
    pub functions: &'a [Arc<UserFunction>],
    /// For reading back, rather than for people.
    pub exact: bool,
}

/// Writes a name: bare if it is a plain word, else in double quotes.
pub(crate) fn write_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(plain) {
        out.write_str(name)
    } else {
        let mut text = String::new();
        write_quoted(&mut text, name, '"')?;
        out.write_str(&text)
    }
}

/// Writes a type so that any time zone can be read back.
pub(crate) fn write_type(out: &mut dyn Write, kind: &Type) -> fmt::Result {
    match kind {
        Type::Timestamp(unit, Some(zone)) => {
            let unit = match unit {
                TimeUnit::Second => "s",
                TimeUnit::Millisecond => "ms",
                TimeUnit::Microsecond => "us",
                TimeUnit::Nanosecond => "ns",
            };
            let mut text = String::new();
            write_quoted(&mut text, zone, '\'')?;
            write!(out, "timestamp({unit},{text})")
        }
        Type::List(of) => {
            out.write_str("list(")?;
            write_type(out, of)?;
            out.write_str(")")
        }
        other => write!(out, "{other}"),
    }
}

/// Writes items between parentheses, with commas.
pub(crate) fn write_list<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut dyn Write, T) -> fmt::Result,
) -> fmt::Result {
    out.write_str("(")?;
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write(out, item)?;
    }
    out.write_str(")")
}

/// Writes a slot's name, type and, if it may be null, a question mark.
fn write_declaration(out: &mut dyn Write, slot: &Slot, column: Option<usize>) -> fmt::Result {
    write_name(out, &slot.name)?;
    if let Some(column) = column {
        write!(out, "@{column}")?;
    }
    out.write_str(": ")?;
    write_type(out, &slot.kind)?;
    out.write_str(if slot.nullable { "?" } else { "" })
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, function) in self.functions.iter().enumerate() {
            function::write_function(f, index, function, &self.functions)?;
        }
        for (index, pipeline) in self.pipelines.iter().enumerate() {
            writeln!(f, "pipeline {index}")?;
            for line in pipeline.lines(self, true)? {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}

impl Pipeline {
    /// Returns one line for people for the source, each step and the sink, in order.
    pub fn describe(&self, query: &Query) -> Vec<String> {
        self.lines(query, false).expect("writing to a string does not fail")
    }

    /// Writes the lines of either form.
    fn lines(&self, query: &Query, exact: bool) -> Result<Vec<String>, fmt::Error> {
        let writer = Writer { slots: &self.slots, functions: &query.functions, exact };
        let mut lines = Vec::with_capacity(self.steps.len() + 2);
        let mut line = String::new();
        writer.source(&mut line, &self.source, &self.slots[..self.source_columns().min(self.slots.len())])?;
        lines.push(std::mem::take(&mut line));
        for (index, step) in self.steps.iter().enumerate() {
            let defined = self.defined_before(index).min(self.slots.len());
            match step {
                Step::Filter(condition) => {
                    line.push_str("filter ");
                    writer.expr(&mut line, condition, 0)?;
                }
                Step::Let(exprs) => writer.bindings(&mut line, exprs, defined)?,
                Step::Probe(probe) => writer.probe(&mut line, probe, query, defined)?,
            }
            lines.push(std::mem::take(&mut line));
        }
        writer.sink(&mut line, &self.sink)?;
        lines.push(line);
        Ok(lines)
    }
}

impl Writer<'_> {
    /// Writes a slot: by number, or for people by name.
    pub fn slot(&self, out: &mut dyn Write, slot: SlotId) -> fmt::Result {
        match self.slots.get(slot) {
            Some(known) if !self.exact && !known.name.is_empty() => out.write_str(&known.name),
            _ => write!(out, "${slot}"),
        }
    }

    /// Writes slots between parentheses.
    fn slot_list(&self, out: &mut dyn Write, slots: &[SlotId]) -> fmt::Result {
        write_list(out, slots, |out, slot| self.slot(out, *slot))
    }

    /// Writes expressions between parentheses.
    fn exprs(&self, out: &mut dyn Write, exprs: &[Expr]) -> fmt::Result {
        write_list(out, exprs, |out, expr| self.expr(out, expr, 0))
    }

    /// Writes a source and its columns.
    fn source(&self, out: &mut dyn Write, source: &Source, slots: &[Slot]) -> fmt::Result {
        let mut numbers: Option<&[usize]> = None;
        match source {
            Source::Table { table, columns } => {
                out.write_str("scan ")?;
                write_name(out, table)?;
                numbers = Some(columns);
            }
            Source::Result { pipelines } => {
                out.write_str("result ")?;
                let text: Vec<String> = pipelines.iter().map(usize::to_string).collect();
                out.write_str(&text.join(", "))?;
            }
            Source::Block { name } => {
                out.write_str("block ")?;
                write_name(out, name)?;
            }
            Source::Values { .. } => out.write_str("values")?,
        }
        out.write_str(" [")?;
        for (index, slot) in slots.iter().enumerate() {
            out.write_str(if index > 0 { ", " } else { "" })?;
            match self.exact {
                true => write_declaration(out, slot, numbers.and_then(|numbers| numbers.get(index)).copied())?,
                false => out.write_str(&slot.name)?,
            }
        }
        out.write_str("]")?;
        if let Source::Values { rows } = source {
            if !self.exact {
                return write!(out, " {} rows", rows.len());
            }
            for (index, row) in rows.iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { " " })?;
                write_list(out, row, |out, value| write!(out, "{value}"))?;
            }
        }
        Ok(())
    }

    /// Writes the slots that a step adds.
    fn bindings(&self, out: &mut dyn Write, exprs: &[Expr], defined: usize) -> fmt::Result {
        out.write_str("let")?;
        for (index, expr) in exprs.iter().enumerate() {
            out.write_str(if index > 0 { ", " } else { " " })?;
            if self.exact {
                write!(out, "${} ", defined + index)?;
                match self.slots.get(defined + index) {
                    Some(slot) => write_declaration(out, slot, None)?,
                    None => out.write_str("?")?,
                }
            } else {
                self.slot(out, defined + index)?;
            }
            out.write_str(" = ")?;
            self.expr(out, expr, 0)?;
        }
        Ok(())
    }

    /// Writes a probe.
    fn probe(&self, out: &mut dyn Write, probe: &Probe, query: &Query, defined: usize) -> fmt::Result {
        write!(out, "probe {} {} on ", probe.kind.name(), probe.build)?;
        self.exprs(out, &probe.keys)?;
        if probe.null_equals_null {
            out.write_str(" null equals null")?;
        }
        if probe.null_aware {
            out.write_str(" null aware")?;
        }
        if let Some(residual) = &probe.residual {
            let scope = query.residual_scope(self.slots, defined, probe.build);
            out.write_str(" where ")?;
            Writer { slots: &scope, ..*self }.expr(out, residual, 0)?;
        }
        let adds = if probe.kind == JoinKind::Mark { 1 } else { probe.adds.len() };
        if adds > 0 {
            out.write_str(" adds ")?;
            write_list(out, 0..adds, |out, index| match (self.exact, self.slots.get(defined + index)) {
                (true, Some(slot)) => {
                    write!(out, "${} ", defined + index)?;
                    write_declaration(out, slot, probe.adds.get(index).copied())
                }
                _ => self.slot(out, defined + index),
            })?;
        }
        Ok(())
    }

    /// Writes how many rows are skipped and fetched.
    fn limit(&self, out: &mut dyn Write, skip: usize, fetch: Option<usize>) -> fmt::Result {
        if skip > 0 {
            write!(out, " skip {skip}")?;
        }
        fetch.map_or(Ok(()), |fetch| write!(out, " fetch {fetch}"))
    }

    /// Writes an aggregate.
    fn aggregate(&self, out: &mut dyn Write, aggregate: &Aggregate) -> fmt::Result {
        write!(out, "{}({}", aggregate.function.name(), if aggregate.distinct { "distinct " } else { "" })?;
        if let Some(argument) = aggregate.argument {
            self.slot(out, argument)?;
        }
        if let Some(second) = aggregate.second {
            out.write_str(", ")?;
            self.slot(out, second)?;
        }
        if !aggregate.parameter.is_null() {
            write!(out, ", {}", aggregate.parameter)?;
        }
        if !aggregate.order.is_empty() {
            out.write_str(" order ")?;
            self.sort_keys(out, &aggregate.order)?;
        }
        if let Some(filter) = aggregate.filter {
            out.write_str(" where ")?;
            self.slot(out, filter)?;
        }
        out.write_str(")")?;
        if self.exact {
            out.write_str(": ")?;
            write_type(out, &aggregate.kind)?;
            out.write_str(overflow_text(aggregate.overflow))?;
        }
        Ok(())
    }

    /// Writes sort keys between parentheses.
    fn sort_keys(&self, out: &mut dyn Write, keys: &[SortKey]) -> fmt::Result {
        write_list(out, keys, |out, key| {
            self.slot(out, key.slot)?;
            out.write_str(if key.descending { " desc" } else { "" })?;
            out.write_str(if key.nulls_first { " nulls first" } else { "" })
        })
    }

    /// Writes a sink.
    fn sink(&self, out: &mut dyn Write, sink: &Sink) -> fmt::Result {
        match sink {
            Sink::Build { keys, payload } => {
                out.write_str("build keys ")?;
                self.exprs(out, keys)?;
                out.write_str(" payload ")?;
                self.slot_list(out, payload)
            }
            Sink::Aggregate { keys, aggregates, phase } => {
                out.write_str(match phase {
                    Phase::Single => "aggregate by ",
                    Phase::Partial => "aggregate partial by ",
                    Phase::Final => "aggregate final by ",
                })?;
                self.slot_list(out, keys)?;
                out.write_str(" ")?;
                write_list(out, aggregates, |out, aggregate| self.aggregate(out, aggregate))
            }
            Sink::Sort { keys, skip, fetch, output } => {
                out.write_str("sort by ")?;
                self.sort_keys(out, keys)?;
                self.limit(out, *skip, *fetch)?;
                out.write_str(" output ")?;
                self.slot_list(out, output)
            }
            Sink::Window { partition, order, functions, fetch, output } => {
                out.write_str("window by ")?;
                self.slot_list(out, partition)?;
                out.write_str(" order ")?;
                self.sort_keys(out, order)?;
                out.write_str(" compute ")?;
                write_list(out, functions, |out, window| {
                    self.window(out, &window.function)?;
                    if self.exact {
                        out.write_str(" as ")?;
                        write_type(out, &window.kind)?;
                    }
                    Ok(())
                })?;
                self.limit(out, 0, *fetch)?;
                out.write_str(" output ")?;
                self.slot_list(out, output)
            }
            Sink::Partition { keys, parts, output } => {
                out.write_str("partition by ")?;
                self.exprs(out, keys)?;
                write!(out, " into {parts} output ")?;
                self.slot_list(out, output)
            }
            Sink::Materialize { skip, fetch, output } => {
                out.write_str("materialize")?;
                self.limit(out, *skip, *fetch)?;
                out.write_str(" output ")?;
                self.slot_list(out, output)
            }
        }
    }

    /// Writes a window function.
    fn window(&self, out: &mut dyn Write, function: &WindowFunction) -> fmt::Result {
        match function {
            WindowFunction::RowNumber => out.write_str("row_number()"),
            WindowFunction::Rank => out.write_str("rank()"),
            WindowFunction::DenseRank => out.write_str("dense_rank()"),
            WindowFunction::PercentRank => out.write_str("percent_rank()"),
            WindowFunction::CumeDist => out.write_str("cume_dist()"),
            WindowFunction::Ntile { buckets } => write!(out, "ntile({buckets})"),
            WindowFunction::Lag { slot, offset, default, ignore_nulls } => {
                out.write_str("lag(")?;
                self.slot(out, *slot)?;
                write!(out, ", {offset}")?;
                if let Some(default) = default {
                    out.write_str(", ")?;
                    self.slot(out, *default)?;
                }
                out.write_str(if *ignore_nulls { ") ignore nulls" } else { ")" })
            }
            WindowFunction::Nth { slot, place, frame, ignore_nulls } => {
                out.write_str("nth(")?;
                self.slot(out, *slot)?;
                write!(out, ", {place})")?;
                out.write_str(if *ignore_nulls { " ignore nulls" } else { "" })?;
                self.frame(out, frame)
            }
            WindowFunction::Aggregate { aggregate, frame } => {
                self.aggregate(out, aggregate)?;
                self.frame(out, frame)
            }
        }
    }

    /// Writes the frame of a window function.
    fn frame(&self, out: &mut dyn Write, frame: &WindowFrame) -> fmt::Result {
        out.write_str(match frame.unit {
            FrameUnit::Rows => " rows ",
            FrameUnit::Range => " range ",
            FrameUnit::Groups => " groups ",
        })?;
        self.bound(out, frame.start)?;
        out.write_str(" to ")?;
        self.bound(out, frame.end)?;
        out.write_str(match frame.exclusion {
            FrameExclusion::NoOthers => "",
            FrameExclusion::CurrentRow => " exclude current",
            FrameExclusion::Group => " exclude group",
            FrameExclusion::Ties => " exclude ties",
        })
    }

    /// Writes one end of a frame.
    fn bound(&self, out: &mut dyn Write, bound: FrameBound) -> fmt::Result {
        match bound {
            FrameBound::Unbounded => out.write_str("unbounded"),
            FrameBound::At(distance) => write!(out, "{distance}"),
            FrameBound::Value(slot) => self.slot(out, slot),
        }
    }
}

/// Returns the text of what overflow does, where it is not an error.
pub(crate) fn overflow_text(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Wrap => " overflow wrap",
        Overflow::Null => " overflow null",
        Overflow::Error => "",
    }
}

#[cfg(test)]
mod tests;
