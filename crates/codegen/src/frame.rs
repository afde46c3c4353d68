//! The frame of a row in C: from one row to another, of those that lie in order; and what it is measured by.

use tandem_column::{Error, Result};
use tandem_pipeline::{FrameBound, FrameExclusion, FrameUnit, WindowFrame};
use tandem_plan::sink::WindowPlan;

use crate::{Binding, RowColumn, WindowBinding, text::Text};

/// Distances of rows beyond this are as good as any: there are fewer rows.
const FAR: i64 = 1 << 32;

/// What is known of the row at hand so far: each is defined when it is first asked for.
pub(crate) struct Frames<'w> {
    plan: &'w WindowPlan,
    columns: &'w [RowColumn],
    partition: Option<(String, String)>,
    peers: Option<(String, String)>,
    /// The rows whose key is not null, of the partition.
    present: Option<(String, String)>,
    known: Vec<(WindowFrame, (String, String))>,
}

impl<'w> Frames<'w> {
    pub(crate) fn new(plan: &'w WindowPlan, columns: &'w [RowColumn]) -> Frames<'w> {
        Frames { plan, columns, partition: None, peers: None, present: None, known: Vec::new() }
    }

    /// Returns the name of the number of all rows.
    pub(crate) fn all_rows(text: &mut Text) -> String {
        text.argument(Binding::Window(WindowBinding::AllRows), "const u32", "all", "rows, whether they come out or not")
    }

    /// Returns the name of the numbers of segments, or of where they start.
    pub(crate) fn segments(text: &mut Text, which: WindowBinding) -> String {
        let (name, remark) = match which {
            WindowBinding::Partitions => ("partitions", "each row has its own behind its place"),
            WindowBinding::PartitionStarts => ("starts", ""),
            WindowBinding::Peers => ("peers", "as partitions"),
            _ => ("peer_starts", ""),
        };
        text.argument(Binding::Window(which), "GLOBAL const u32 *", name, remark)
    }

    /// Returns the values of a collected slot and its null flags.
    pub(crate) fn column(text: &mut Text, column: RowColumn, at: usize) -> Result<(String, Option<String>)> {
        let (c, nullable) = match column {
            RowColumn::Numbers { nullable } | RowColumn::Slice { nullable } => ("i64", nullable),
            RowColumn::Wide { nullable } => ("wide", nullable),
            RowColumn::Row | RowColumn::Entry(_) => ("u32", false),
            RowColumn::Same(_) => return Err(Error::internal("a column is its own")),
        };
        let binding = Binding::Window(WindowBinding::Column(at));
        let values = text.argument(binding, &format!("GLOBAL const {c} *"), &format!("c{at}"), "");
        let nulls = nullable.then(|| {
            let binding = Binding::Window(WindowBinding::ColumnNulls(at));
            text.argument(binding, "GLOBAL const u8 *", &format!("c{at}n"), "")
        });
        Ok((values, nulls))
    }

    /// Returns the first row of the row's partition, and the one behind its last.
    pub(crate) fn partition(&mut self, text: &mut Text) -> (String, String) {
        if let Some(known) = &self.partition {
            return known.clone();
        }
        let found = match self.plan.partition.is_empty() {
            true => ("0".to_owned(), Frames::all_rows(text)),
            false => {
                let numbers = Frames::segments(text, WindowBinding::Partitions);
                let starts = Frames::segments(text, WindowBinding::PartitionStarts);
                let partition = text.define("u32", &format!("{numbers}[row + 1]"));
                let first = text.define("u32", &format!("{starts}[{partition}]"));
                (first, text.define("u32", &format!("{starts}[{partition} + 1]")))
            }
        };
        self.partition.insert(found).clone()
    }

    /// Returns the first of the row's peers, and the row behind the last.
    pub(crate) fn peers(&mut self, text: &mut Text) -> (String, String) {
        if let Some(known) = &self.peers {
            return known.clone();
        }
        let numbers = Frames::segments(text, WindowBinding::Peers);
        let starts = Frames::segments(text, WindowBinding::PeerStarts);
        let first = text.define("u32", &format!("{starts}[{numbers}[row + 1]]"));
        let behind = text.define("u32", &format!("{starts}[{numbers}[row + 1] + 1]"));
        self.peers.insert((first, behind)).clone()
    }

    /// Returns a number of rows, or of groups: an argument, so that other numbers have the same text.
    pub(crate) fn distance(&self, text: &mut Text, distance: i64) -> String {
        text.argument(Binding::Constant(distance.clamp(-FAR, FAR)), "const i64", "", "")
    }

    /// Returns the first row of the row's frame, and the one behind its last.
    ///
    /// # Errors
    /// Unsupported if the key of its distances is not a number here.
    pub(crate) fn frame(&mut self, text: &mut Text, frame: &WindowFrame) -> Result<(String, String)> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| known == frame) {
            return Ok(known.clone());
        }
        let ends = Ends::new(frame)?;
        let measured = [ends.start, ends.end].into_iter().flatten().any(|bound| bound != 0);
        let (start, end) = match frame.unit {
            FrameUnit::Rows => self.by_rows(text, ends),
            FrameUnit::Range if measured => self.by_distance(text, ends)?,
            FrameUnit::Range | FrameUnit::Groups => self.by_groups(text, ends),
        };
        let start = text.define("u32", &start);
        let end = text.define("u32", &end);
        // One that ends before it starts is empty.
        let end = text.define("u32", &format!("{end} > {start} ? {end} : {start}"));
        self.known.push((*frame, (start.clone(), end.clone())));
        Ok((start, end))
    }

    fn by_rows(&mut self, text: &mut Text, frame: Ends) -> (String, String) {
        let (first, behind) = self.partition(text);
        let mut at = |bound: i64, more: i64| {
            let distance = self.distance(text, bound.saturating_add(more));
            format!("frame_end((i64)row + {distance}, {first}, {behind})")
        };
        let start = frame.start.map(|start| at(start, 0));
        let end = frame.end.map(|end| at(end, 1));
        (start.unwrap_or_else(|| first.clone()), end.unwrap_or_else(|| behind.clone()))
    }

    fn by_groups(&mut self, text: &mut Text, frame: Ends) -> (String, String) {
        let (first, behind) = self.partition(text);
        let mut at = |bound: Option<i64>, more: i64| match bound {
            None => {
                if more == 0 {
                    first.clone()
                } else {
                    behind.clone()
                }
            }
            Some(0) => {
                let (first, behind) = self.peers(text);
                if more == 0 { first } else { behind }
            }
            Some(bound) => {
                let numbers = Frames::segments(text, WindowBinding::Peers);
                let starts = Frames::segments(text, WindowBinding::PeerStarts);
                let distance = self.distance(text, bound.saturating_add(more));
                let (low, high) = (format!("{numbers}[{first} + 1]"), format!("{numbers}[{behind}] + 1"));
                format!("{starts}[frame_end((i64){numbers}[row + 1] + {distance}, {low}, {high})]")
            }
        };
        (at(frame.start, 0), at(frame.end, 1))
    }

    fn by_distance(&mut self, text: &mut Text, frame: Ends) -> Result<(String, String)> {
        let missing = || Error::unsupported("a range that is not measured by a number is the CPU's");
        let key = self.plan.order.first().ok_or_else(missing)?.clone();
        let at = self.plan.position(key.slot);
        if !matches!(self.columns[at], RowColumn::Numbers { .. }) {
            return Err(missing());
        }
        let (keys, nulls) = Frames::column(text, self.columns[at], at)?;
        let (first, behind) = self.partition(text);
        let (low, high) = match (&self.present, &nulls) {
            (Some(known), _) => known.clone(),
            (None, None) => (first.clone(), behind.clone()),
            // Nulls are together, before or behind all values, and only they are in reach of each other.
            (None, Some(nulls)) => {
                let flag = u8::from(key.nulls_first);
                let between = text.define("u32", &format!("frame_switch({nulls}, {first}, {behind}, {flag})"));
                if key.nulls_first { (between, behind.clone()) } else { (first.clone(), between) }
            }
        };
        self.present = Some((low.clone(), high.clone()));
        let descending = u8::from(key.descending);
        let mut reach = |bound: i64, further: u8| {
            let bound = text.argument(Binding::Constant(bound), "const i64", "", "");
            let reach = format!("frame_reach({keys}, {low}, {high}, {keys}[row], {bound}, {descending}, {further})");
            match (&nulls, key.nulls_first, further) {
                (None, ..) => reach,
                (Some(nulls), true, 0) => format!("{nulls}[row] ? {first} : {reach}"),
                (Some(nulls), true, _) => format!("{nulls}[row] ? {low} : {reach}"),
                (Some(nulls), false, 0) => format!("{nulls}[row] ? {high} : {reach}"),
                (Some(nulls), false, _) => format!("{nulls}[row] ? {behind} : {reach}"),
            }
        };
        let start = frame.start.map(|start| reach(start, 0));
        let end = frame.end.map(|end| reach(end, 1));
        Ok((start.unwrap_or_else(|| first.clone()), end.unwrap_or_else(|| behind.clone())))
    }
}

/// How far a frame reaches at either end; nothing stands for the partition's end.
#[derive(Clone, Copy)]
struct Ends {
    start: Option<i64>,
    end: Option<i64>,
}

impl Ends {
    /// Reads the ends of a frame.
    ///
    /// # Errors
    /// Unsupported if it leaves rows out, or reaches by a value of each row.
    fn new(frame: &WindowFrame) -> Result<Ends> {
        if frame.exclusion != FrameExclusion::NoOthers {
            return Err(Error::unsupported("frames that exclude rows are not on the device yet"));
        }
        let reach = |bound: FrameBound| match bound {
            FrameBound::Unbounded => Ok(None),
            FrameBound::At(distance) => Ok(Some(distance)),
            FrameBound::Value(_) => {
                Err(Error::unsupported("frames that reach by floats, months or zones are not on the device yet"))
            }
        };
        Ok(Ends { start: reach(frame.start)?, end: reach(frame.end)? })
    }
}
