//! Definition levels of flat columns to validity bits.

use tandem_column::{AlignedVec, Bitmap, Plain};

use super::{
    Problem, damaged,
    hybrid::{Run, Runs},
};

/// A growing bit per row, set where the row is not null. Stays empty while no row is null.
#[derive(Default)]
pub(super) struct Validity {
    words: Vec<u64>,
    rows: usize,
    nulls: usize,
}

impl Validity {
    /// Returns the bits, or `None` if no row is null.
    pub(super) fn finish(self) -> Option<Bitmap> {
        (self.nulls > 0).then(|| Bitmap::new(self.words, self.rows))
    }

    /// Tells whether the row, which must exist, is not null.
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.nulls == 0 || self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Appends `count` rows that are not null.
    fn append_valid(&mut self, count: usize) {
        if self.nulls > 0 {
            self.append(true, count);
        } else {
            self.rows += count;
        }
    }

    fn append_null(&mut self, count: usize) {
        if self.nulls == 0 && count > 0 {
            let rows = std::mem::take(&mut self.rows);
            self.append(true, rows);
        }
        self.nulls += count;
        self.append(false, count);
    }

    fn append(&mut self, valid: bool, count: usize) {
        let (start, end) = (self.rows, self.rows + count);
        self.words.resize(end.div_ceil(64), if valid { u64::MAX } else { 0 });
        if start % 64 != 0 && valid {
            self.words[start / 64] |= u64::MAX << (start % 64);
        }
        if end % 64 != 0 && valid {
            self.words[end / 64] &= (1 << (end % 64)) - 1;
        }
        self.rows = end;
    }

    /// Appends the rows of one page, all present where it has no levels; returns how many are not null.
    pub(super) fn append_page(&mut self, levels: Option<&[u8]>, rows: usize) -> Result<usize, Problem> {
        match levels {
            Some(levels) => self.append_levels(levels, rows),
            None => {
                self.append_valid(rows);
                Ok(rows)
            }
        }
    }

    /// Appends the rows of one page from its definition levels (0 or 1); returns how many are not null.
    fn append_levels(&mut self, levels: &[u8], rows: usize) -> Result<usize, Problem> {
        let before = self.nulls;
        let mut runs = Runs::new(levels, 1);
        let mut left = rows;
        while left > 0 {
            match runs.next(left)? {
                Run::Repeat(0, count) => {
                    self.append_null(count);
                    left -= count;
                }
                Run::Repeat(1, count) => {
                    self.append_valid(count);
                    left -= count;
                }
                Run::Repeat(level, _) => return Err(damaged(format!("a definition level of {level}"))),
                Run::Packed(bytes, count) => {
                    for (index, chunk) in bytes[..count.div_ceil(8)].iter().enumerate() {
                        let bits = (count - index * 8).min(8);
                        match chunk & (0xff >> (8 - bits)) {
                            full if full.count_ones() as usize == bits => self.append_valid(bits),
                            mixed => (0..bits).for_each(|bit| match mixed >> bit & 1 {
                                0 => self.append_null(1),
                                _ => self.append_valid(1),
                            }),
                        }
                    }
                    left -= count;
                }
            }
        }
        Ok(rows - (self.nulls - before))
    }

    /// Moves the values of `out` from `start` on, of which there are `values`, to those of `rows` rows that are not null; null
    /// rows get the default value.
    pub(super) fn expand<T: Plain>(&self, start: usize, values: usize, rows: usize, out: &mut AlignedVec<T>) {
        if values == rows {
            return;
        }
        out.resize(start + rows, T::default());
        let out = &mut out.as_mut_slice()[start..];
        let mut from = values;
        for row in (0..out.len()).rev() {
            out[row] = match self.is_valid(start + row) {
                true => {
                    from -= 1;
                    out[from]
                }
                false => T::default(),
            };
        }
    }
}
