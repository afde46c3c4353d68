//! The active rows of one vector on their way through a pipeline's steps.
//!
//! A frame knows which rows of the part are still active; values are fetched only when something asks for a slot, and
//! only for active rows (late materialisation). Dropping or repeating rows is one operation, [`Frame::take`], which
//! compacts the row numbers and whatever was fetched already and is still needed.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use tandem_column::{Bitmap, Column, Data, Part, Result, Type};
use tandem_pipeline::{Slot, SlotId, scalar::pattern::Patterns};
use tandem_plan::{Body, Origin, Physical};

use crate::{
    BytesVector, Error, MemoryBudget, Reservation, Values, Vector,
    evaluate::Slots,
    kernel::{self, RowRun},
};

/// The build row of an active row that has no match.
pub(crate) const NO_MATCH: u32 = u32::MAX;

/// How the build rows of a lookup are known.
#[derive(Clone, Debug)]
pub(crate) enum Matches {
    /// Its step has not run, or needs none.
    None,
    /// One build row per active row, or [`NO_MATCH`].
    Listed(Rc<Vec<u32>>),
    /// The build row is the value of a source column minus `min`: always a match.
    FromColumn { column: usize, min: i64 },
}

/// What a frame needs to know of its pipeline.
pub(crate) struct FrameLayout {
    /// The pipeline.
    pub(crate) physical: Arc<Physical>,
    /// The regular expressions of its steps.
    pub(crate) patterns: Patterns,
    /// What text counts against while a frame has it.
    pub(crate) memory: Arc<MemoryBudget>,
}

impl FrameLayout {
    /// Returns what happens to each row.
    pub(crate) fn body(&self) -> &Body {
        &self.physical.body
    }

    /// Makes the reservation of a frame's text.
    pub(crate) fn text(&self) -> RefCell<Reservation> {
        RefCell::new(Reservation::new(&self.memory, "the text of a few thousand rows"))
    }
}

/// Active rows and what is known of them.
pub(crate) struct Frame<'a> {
    pub(crate) layout: &'a FrameLayout,
    /// The source's part; none for rows that exist only on a build side, whose source slots are null.
    part: Option<&'a Part>,
    rows: Active,
    vectors: RefCell<Vec<Option<Rc<Vector>>>>,
    matches: Vec<Matches>,
    /// The memory of its text.
    text: RefCell<Reservation>,
}

enum Active {
    Run { start: usize, count: usize },
    List(Vec<u32>),
}

impl<'a> Frame<'a> {
    /// Makes a frame of consecutive rows of a part.
    pub(crate) fn run(layout: &'a FrameLayout, part: &'a Part, start: usize, count: usize) -> Frame<'a> {
        Self::new(layout, Some(part), Active::Run { start, count })
    }

    /// Makes a frame of listed rows of a part.
    pub(crate) fn list(layout: &'a FrameLayout, part: &'a Part, rows: Vec<u32>) -> Frame<'a> {
        Self::new(layout, Some(part), Active::List(rows))
    }

    /// Makes a frame of rows that have no source row: all slots are null until stored.
    pub(crate) fn detached(layout: &'a FrameLayout, count: usize) -> Frame<'a> {
        Self::new(layout, None, Active::Run { start: 0, count })
    }

    fn new(layout: &'a FrameLayout, part: Option<&'a Part>, rows: Active) -> Frame<'a> {
        let vectors = RefCell::new(vec![None; layout.body().slots.len()]);
        let text = layout.text();
        Frame { layout, part, rows, vectors, matches: vec![Matches::None; layout.body().lookups.len()], text }
    }

    /// Returns how many rows are active.
    pub(crate) fn count(&self) -> usize {
        self.rows().count()
    }

    /// Returns the active rows, as numbers within the part.
    pub(crate) fn rows(&self) -> RowRun<'_> {
        match &self.rows {
            Active::Run { start, count } => RowRun::Run { start: *start, count: *count },
            Active::List(list) => RowRun::List(list),
        }
    }

    /// Returns the column behind a slot of the source.
    pub(crate) fn source_column(&self, slot: SlotId) -> Option<&'a Column> {
        match (self.part, self.layout.body().origins[slot]) {
            (Some(part), Origin::Column(column)) => Some(&part.columns[column]),
            _ => None,
        }
    }

    /// Stores a slot's values.
    pub(crate) fn store(&mut self, slot: SlotId, vector: Rc<Vector>) {
        debug_assert_eq!(vector.len(), self.count(), "a vector has a value for each active row");
        self.vectors.borrow_mut()[slot] = Some(vector);
    }

    /// Says which build rows of a lookup rows lead to.
    pub(crate) fn set_matches(&mut self, lookup: usize, matches: Matches) {
        self.matches[lookup] = matches;
    }

    /// Returns the build row of a lookup for each active row.
    pub(crate) fn build_rows(&self, lookup: usize) -> Result<Rc<Vec<u32>>> {
        match &self.matches[lookup] {
            Matches::Listed(rows) => Ok(rows.clone()),
            Matches::FromColumn { column, min } => {
                let part = self.part.ok_or_else(|| Error::internal("a detached frame has no source column"))?;
                let (base, codes) = kernel::encoded(&part.columns[*column])
                    .ok_or_else(|| Error::internal("a dense key is an encoded column"))?;
                Ok(Rc::new(kernel::fetch_offsets(base, codes, self.rows(), *min)))
            }
            Matches::None => Err(Error::internal("payload was asked for before its probe")),
        }
    }

    /// Returns a slot's values at `positions` (indices of active rows); what was not fetched yet is fetched for these only.
    ///
    /// # Errors
    /// As [`Slots::vector`].
    pub(crate) fn vector_at(&self, slot: SlotId, positions: &[u32]) -> Result<Vector> {
        if self.vectors.borrow()[slot].is_none()
            && let Some(column) = self.source_column(slot)
        {
            let rows: Vec<u32> = match &self.rows {
                Active::Run { start, .. } => positions.iter().map(|position| *start as u32 + position).collect(),
                Active::List(list) => positions.iter().map(|position| list[*position as usize]).collect(),
            };
            return Ok(fetch(column, RowRun::List(&rows)));
        }
        Ok(self.vector(slot)?.take(positions))
    }

    /// Returns the frame of the rows at `positions` (indices of active rows, repeats allowed), keeping what is live
    /// after the pipeline's step `step`.
    ///
    /// # Errors
    /// Exhausted if text repeats so often that the memory budget is used up.
    pub(crate) fn take(&self, positions: &[u32], step: usize) -> Result<Frame<'a>> {
        let rows = match &self.rows {
            Active::Run { start, .. } => positions.iter().map(|p| *start as u32 + p).collect(),
            Active::List(list) => positions.iter().map(|p| list[*p as usize]).collect(),
        };
        let live = &self.layout.physical.live[step];
        let vectors = self.vectors.borrow();
        let text = self.layout.text();
        let taken = |(vector, live): (&Option<Rc<Vector>>, &bool)| {
            let Some(vector) = vector.as_ref().filter(|_| *live) else { return Ok(None) };
            text.borrow_mut().add(vector.text_bytes(positions))?;
            Ok(Some(Rc::new(vector.take(positions))))
        };
        let vectors = vectors.iter().zip(live).map(taken).collect::<Result<_>>()?;
        let matches = self.matches.iter().map(|m| match m {
            Matches::Listed(rows) => Matches::Listed(Rc::new(positions.iter().map(|p| rows[*p as usize]).collect())),
            other => other.clone(),
        });
        Ok(Frame {
            layout: self.layout,
            part: self.part,
            rows: Active::List(rows),
            matches: matches.collect(),
            vectors: RefCell::new(vectors),
            text,
        })
    }
}

impl Slots for Frame<'_> {
    fn rows(&self) -> usize {
        self.count()
    }

    fn kind(&self, slot: SlotId) -> &Type {
        &self.layout.body().slots[slot].kind
    }

    fn named(&self) -> &[Slot] {
        &self.layout.body().slots
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        self.text.borrow_mut().add(bytes)
    }

    fn patterns(&self) -> Option<&Patterns> {
        Some(&self.layout.patterns)
    }

    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>> {
        if let Some(vector) = &self.vectors.borrow()[slot] {
            return Ok(vector.clone());
        }
        let vector = match (self.layout.body().origins[slot], self.part) {
            (Origin::Column(column), Some(part)) => {
                let column = &part.columns[column];
                self.reserve(text_bytes(column, self.rows()))?;
                fetch(column, self.rows())
            }
            (Origin::Payload { lookup, payload }, _) if !matches!(self.matches[lookup], Matches::None) => {
                let column = &self.layout.physical.builds[lookup].payload[payload];
                let rows = self.build_rows(lookup)?;
                self.reserve(text_bytes(column, RowRun::List(&rows)))?;
                fetch_matches(column, &rows)
            }
            _ if self.part.is_none() => Vector::nulls(self.kind(slot), self.count()),
            _ => return Err(Error::internal(format!("slot {slot} was read before its step"))),
        };
        let vector = Rc::new(vector);
        self.vectors.borrow_mut()[slot] = Some(vector.clone());
        Ok(vector)
    }
}

/// Returns the bytes of the plain text of some rows; those of [`NO_MATCH`] have none.
pub(crate) fn text_bytes(column: &Column, rows: RowRun<'_>) -> usize {
    let Data::Bytes { offsets, .. } = &column.data else { return 0 };
    let bytes = match rows {
        RowRun::Run { start, count } => offsets[start + count] - offsets[start],
        RowRun::List(list) => {
            let listed = list.iter().filter(|row| **row != NO_MATCH);
            listed.map(|row| offsets[*row as usize + 1] - offsets[*row as usize]).sum()
        }
    };
    bytes as usize
}

/// Fetches a column's values for some rows.
pub(crate) fn fetch(column: &Column, rows: RowRun<'_>) -> Vector {
    fn pick<T: Copy, U>(values: &[T], rows: RowRun<'_>, f: impl Fn(T) -> U) -> Vec<U> {
        match rows {
            RowRun::Run { start, count } => values[start..start + count].iter().map(|v| f(*v)).collect(),
            RowRun::List(list) => list.iter().map(|row| f(values[*row as usize])).collect(),
        }
    }
    let values = match &column.data {
        Data::Int { codes: tandem_column::Codes::U8(codes), base } if column.kind == Type::Boolean => {
            let base = *base as u8;
            Values::Boolean(pick(codes, rows, |c| base.wrapping_add(c)))
        }
        Data::Int { base, codes } => Values::Int(kernel::fetch_ints(*base, codes, rows)),
        Data::Dictionary { codes, dictionary } => {
            Values::Code { codes: kernel::fetch_offsets(0, codes, rows, 0), dictionary: dictionary.clone() }
        }
        Data::Wide(values) => Values::Wide(pick(values, rows, |v| v)),
        Data::Float32(values) => Values::Float(pick(values, rows, f64::from)),
        Data::Float64(values) => Values::Float(pick(values, rows, |v| v)),
        Data::Bytes { offsets, bytes } => {
            let mut out = BytesVector::with_capacity(rows.count(), text_bytes(column, rows));
            let mut push = |row: usize| out.push(&bytes[offsets[row] as usize..offsets[row + 1] as usize]);
            match rows {
                RowRun::Run { start, count } => (start..start + count).for_each(&mut push),
                RowRun::List(list) => list.iter().for_each(|row| push(*row as usize)),
            }
            Values::Bytes(out)
        }
        Data::Remote(_) => unreachable!("values on a device are brought back before the CPU reads them"),
    };
    Vector { values, valid: column.validity.as_ref().and_then(|validity| fetch_validity(validity, rows)) }
}

/// Fetches validity as bytes; `None` if all of these rows are valid.
pub(crate) fn fetch_validity(validity: &Bitmap, rows: RowRun<'_>) -> Option<Vec<u8>> {
    let valid: Vec<u8> = match rows {
        RowRun::Run { start, count } => (start..start + count).map(|row| validity.get(row) as u8).collect(),
        RowRun::List(list) => list.iter().map(|row| validity.get(*row as usize) as u8).collect(),
    };
    valid.contains(&0).then_some(valid)
}

/// Fetches a column's values for row numbers, null for [`NO_MATCH`].
pub(crate) fn fetch_matches(column: &Column, rows: &[u32]) -> Vector {
    if !rows.contains(&NO_MATCH) {
        return fetch(column, RowRun::List(rows));
    }
    if column.rows == 0 {
        return Vector::nulls(&column.kind, rows.len());
    }
    let safe: Vec<u32> = rows.iter().map(|row| if *row == NO_MATCH { 0 } else { *row }).collect();
    let mut vector = fetch(column, RowRun::List(&safe));
    let valid = vector.valid.get_or_insert_with(|| vec![1; rows.len()]);
    for (valid, row) in valid.iter_mut().zip(rows) {
        *valid &= (*row != NO_MATCH) as u8;
    }
    vector
}

impl Vector {
    /// Fetches a column's values for row numbers, null for `u32::MAX`.
    pub fn fetch(column: &Column, rows: &[u32]) -> Vector {
        fetch_matches(column, rows)
    }
}
