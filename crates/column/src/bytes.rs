//! Values of varying length, in memory that grows.

/// Variable-length values one after the other.
#[derive(Clone, Debug)]
pub struct BytesVector {
    offsets: Vec<usize>, // one more than there are values
    bytes: Vec<u8>,
}

impl Default for BytesVector {
    fn default() -> Self {
        BytesVector { offsets: vec![0], bytes: Vec::new() }
    }
}

impl BytesVector {
    /// Makes an empty vector with room for `values` values of `bytes` bytes in all.
    pub fn with_capacity(values: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(values + 1);
        offsets.push(0);
        BytesVector { offsets, bytes: Vec::with_capacity(bytes) }
    }

    /// Returns how many values there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Tells whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes the values have in all.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the value at a position.
    #[inline]
    pub fn get(&self, position: usize) -> &[u8] {
        &self.bytes[self.offsets[position]..self.offsets[position + 1]]
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len());
    }

    /// Appends the value that `write` appends to the bytes.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.offsets.push(self.bytes.len());
    }

    /// Returns the values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.offsets.windows(2).map(|ends| &self.bytes[ends[0]..ends[1]])
    }

    /// Returns the bytes of all values and where each begins, with the end of the last.
    pub fn parts(&self) -> (&[usize], &[u8]) {
        (&self.offsets, &self.bytes)
    }

    /// Returns the values at some positions.
    pub fn take(&self, positions: &[u32]) -> BytesVector {
        let mut out = BytesVector::with_capacity(positions.len(), 0);
        positions.iter().for_each(|&position| out.push(self.get(position as usize)));
        out
    }

    /// Appends all values of another.
    pub fn append(&mut self, other: &BytesVector) {
        let shift = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| offset + shift));
    }
}

impl<'a> FromIterator<&'a [u8]> for BytesVector {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(values: I) -> Self {
        let mut out = BytesVector::default();
        values.into_iter().for_each(|value| out.push(value));
        out
    }
}
