//! Thrift's compact protocol, read from bytes that nobody has looked at yet.
//!
//! Every length is checked against the bytes that are left, nesting is bounded, and every element of a list takes at least one
//! byte: so reading ends after as many steps as there are bytes. Lists of booleans are refused, because readers disagree
//! about their size (the `parquet` crate skips them as if they took none) and Parquet has none.

/// Structures nest six deep in a footer (file, row group, column, its metadata, statistics, bounds), three in a page header;
/// deeper is damage.
const DEPTH: usize = 16;

/// Types of values, as headers of fields and lists name them.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const BYTE: u8 = 3;
pub(super) const INT16: u8 = 4;
pub(super) const INT32: u8 = 5;
pub(super) const INT64: u8 = 6;
pub(super) const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
pub(super) const STRUCT: u8 = 12;

/// Why bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// They end too early.
    Short,
    /// They say something that cannot be.
    Wrong(&'static str),
}

pub(super) type Parsed<T> = Result<T, Malformed>;

pub(super) fn wrong<T>(what: &'static str) -> Parsed<T> {
    Err(Malformed::Wrong(what))
}

/// Bytes, and how many of them are read.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    pub(super) position: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, position: 0 }
    }

    /// Returns how many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn byte(&mut self) -> Parsed<u8> {
        let byte = *self.bytes.get(self.position).ok_or(Malformed::Short)?;
        self.position += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Parsed<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        wrong("number too long")
    }

    /// Reads a signed number.
    pub(super) fn integer(&mut self) -> Parsed<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a number that counts something.
    pub(super) fn size(&mut self) -> Parsed<usize> {
        match i32::try_from(self.integer()?).ok().and_then(|value| usize::try_from(value).ok()) {
            Some(size) => Ok(size),
            None => wrong("negative size"),
        }
    }

    fn take(&mut self, count: u64) -> Parsed<&'a [u8]> {
        let count = usize::try_from(count).map_err(|_| Malformed::Short)?;
        let taken = self.bytes[self.position..].get(..count).ok_or(Malformed::Short)?;
        self.position += count;
        Ok(taken)
    }

    /// Reads bytes whose length comes first.
    pub(super) fn binary(&mut self) -> Parsed<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    /// Reads the head of a list; returns the type of its elements and how many there are, at most one for each byte left.
    pub(super) fn list(&mut self) -> Parsed<(u8, usize)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let (element, left) = (head & 15, self.left() as u64);
        match (element, count) {
            (_, 0) => Ok((element, 0)),
            (TRUE | FALSE, _) => wrong("a list of booleans"),
            _ if count > left => Err(Malformed::Short),
            _ => Ok((element, count as usize)),
        }
    }

    /// Passes over a value of a type.
    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        if depth > DEPTH {
            return wrong("nested too deeply");
        }
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.take(1).map(drop),
            INT16..=INT64 => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | SET => {
                let (element, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip(element, depth + 1))
            }
            STRUCT => self.fields(depth + 1, |input, _, kind| input.skip(kind, depth + 1)),
            _ => wrong("unknown field type"),
        }
    }

    /// Calls `field(input, id, type)` for each field of a structure; it must consume the field's value.
    pub(super) fn fields(
        &mut self,
        depth: usize,
        mut field: impl FnMut(&mut Self, i16, u8) -> Parsed<()>,
    ) -> Parsed<()> {
        if depth > DEPTH {
            return wrong("nested too deeply");
        }
        let mut last = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            last = match head >> 4 {
                0 => self.integer()?,
                delta => last + i64::from(delta),
            };
            let Ok(id) = i16::try_from(last) else { return wrong("a field's number is too large") };
            field(self, id, head & 15)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(kind: u8, bytes: &[u8]) -> Parsed<()> {
        Input::new(bytes).skip(kind, 0)
    }

    #[test]
    fn no_list_is_longer_than_its_bytes() {
        // 2⁶⁰ elements, of every type.
        let many = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
        for element in 0..16 {
            let bytes = [&[0xF0 | element], &many[..], &[0; 64]].concat();
            let expected = match element {
                TRUE | FALSE => Malformed::Wrong("a list of booleans"),
                _ => Malformed::Short,
            };
            assert_eq!(skip(LIST, &bytes), Err(expected), "elements of type {element}");
        }
        assert_eq!(skip(LIST, &[0x20 | STRUCT, 0, 0]), Ok(()));
        assert_eq!(skip(LIST, &[0]), Ok(()));
    }

    #[test]
    fn nesting_is_bounded() {
        // A structure in a structure, and so on; and lists of lists.
        assert_eq!(skip(STRUCT, &[0x10 | STRUCT; 4096]), wrong("nested too deeply"));
        assert_eq!(skip(LIST, &[0x10 | LIST; 4096]), wrong("nested too deeply"));
    }

    #[test]
    fn numbers_of_fields_do_not_wrap() {
        let far = [0x05, 0xFE, 0xFF, 0x03, 0x00, 0xF5, 0x00];
        assert_eq!(skip(STRUCT, &far), wrong("a field's number is too large"));
    }
}
