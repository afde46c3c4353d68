//! What the bytes of footers and page headers must look like before the `parquet` crate reads them.
//!
//! The crate trusts them further than a stranger's file deserves: it builds the schema by recursion, reserves what counts
//! claim, copies a column's path for every column, and reads a field by its number, whatever type its head names. So the
//! bytes are walked here first. Known fields must have their types: then both readers agree on where each value ends, and
//! what was bounded here is what the crate sees. Unknown fields are skipped by both.

use super::compact::{
    BINARY, BYTE, DOUBLE, FALSE, INT16, INT32, INT64, Input, LIST, Malformed, Parsed, STRUCT, TRUE, wrong,
};

/// The most groups a column may lie in. A list or map takes two, so types nest thirty deep, which nobody writes; readers that
/// recurse, here and in DataFusion, need some kilobytes of stack for each, of the two megabytes that a thread has.
const NESTED: usize = 64;

/// The most bytes that the paths of all columns may take, as the `parquet` crate keeps them: a copy of the names of all groups
/// around it for every column. A hundred thousand columns that lie five deep take a third of it.
const PATHS: usize = 64 << 20;

/// Bytes that a name takes beside its text: pointer, length and capacity.
const NAME: usize = 24;

/// What a value may be.
enum Shape {
    Number,
    Flag,
    Byte,
    Double,
    Binary,
    List(&'static Shape),
    Struct(&'static Fields),
    /// The list of schema elements.
    Schema,
}

type Fields = [(i16, Shape)];

use Shape::{Binary, Byte, Double, Flag, List, Number, Schema, Struct};

const FILE: &Fields = &[
    (1, Number),
    (2, Schema),
    (3, Number),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Binary),
    (7, List(&Struct(COLUMN_ORDER))),
];
const ROW_GROUP: &Fields = &[
    (1, List(&Struct(COLUMN))),
    (2, Number),
    (3, Number),
    (4, List(&Struct(SORTING))),
    (5, Number),
    (6, Number),
    (7, Number),
];
const COLUMN: &Fields =
    &[(1, Binary), (2, Number), (3, Struct(COLUMN_METADATA)), (4, Number), (5, Number), (6, Number), (7, Number)];
const COLUMN_METADATA: &Fields = &[
    (1, Number),
    (2, List(&Number)),
    (3, List(&Binary)),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, List(&Struct(KEY_VALUE))),
    (9, Number),
    (10, Number),
    (11, Number),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(PAGE_ENCODING))),
    (14, Number),
    (15, Number),
    (16, Struct(SIZES)),
    (17, Struct(GEOSPATIAL)),
];
const STATISTICS: &Fields =
    &[(1, Binary), (2, Binary), (3, Number), (4, Number), (5, Binary), (6, Binary), (7, Flag), (8, Flag)];
const SIZES: &Fields = &[(1, Number), (2, List(&Number)), (3, List(&Number))];
const GEOSPATIAL: &Fields = &[(1, Struct(BOUNDING_BOX)), (2, List(&Number))];
const BOUNDING_BOX: &Fields =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];
const PAGE_ENCODING: &Fields = &[(1, Number), (2, Number), (3, Number)];
const SORTING: &Fields = &[(1, Number), (2, Flag), (3, Flag)];
const KEY_VALUE: &Fields = &[(1, Binary), (2, Binary)];
const COLUMN_ORDER: &Fields = &[(1, Struct(NOTHING)), (2, Struct(NOTHING))];
/// Fields of a schema element but its name (4) and how many children it has (5).
const ELEMENT: &Fields = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (6, Number),
    (7, Number),
    (8, Number),
    (9, Number),
    (10, Struct(LOGICAL_TYPE)),
];
const LOGICAL_TYPE: &Fields = &[
    (1, Struct(NOTHING)),
    (2, Struct(NOTHING)),
    (3, Struct(NOTHING)),
    (4, Struct(NOTHING)),
    (5, Struct(&[(1, Number), (2, Number)])),
    (6, Struct(NOTHING)),
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    (10, Struct(&[(1, Byte), (2, Flag)])),
    (11, Struct(NOTHING)),
    (12, Struct(NOTHING)),
    (13, Struct(NOTHING)),
    (14, Struct(NOTHING)),
    (15, Struct(NOTHING)),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Number)])),
];
const TIME: &Fields = &[(1, Flag), (2, Struct(&[(1, Struct(NOTHING)), (2, Struct(NOTHING)), (3, Struct(NOTHING))]))];
const NOTHING: &Fields = &[];

/// Fields of a page header but how many bytes follow it (3).
const PAGE: &Fields = &[
    (1, Number),
    (2, Number),
    (4, Number),
    (5, Struct(&[(1, Number), (2, Number), (3, Number), (4, Number), (5, Struct(STATISTICS))])),
    (6, Struct(NOTHING)),
    (7, Struct(&[(1, Number), (2, Number), (3, Flag)])),
    (8, Struct(DATA_PAGE)),
];
const DATA_PAGE: &Fields =
    &[(1, Number), (2, Number), (3, Number), (4, Number), (5, Number), (6, Number), (7, Flag), (8, Struct(STATISTICS))];

/// Checks the page header at the start of `bytes`; returns how long it is and how many bytes follow it.
pub(super) fn check_page(bytes: &[u8]) -> Parsed<(usize, usize)> {
    let (mut input, mut size) = (Input::new(bytes), 0);
    input.fields(0, |input, id, kind| match (id, kind) {
        (3, INT32) => input.size().map(|found| size = found),
        (3, _) => wrong("a field of another type than Parquet's"),
        _ => known(input, PAGE, id, kind, 0),
    })?;
    Ok((input.position, size))
}

/// Checks a footer's bytes; says what is wrong with them.
pub(super) fn check(footer: &[u8]) -> Result<(), &'static str> {
    walk(&mut Input::new(footer), FILE, 0).map_err(|malformed| match malformed {
        Malformed::Short => "it ends too early",
        Malformed::Wrong(what) => what,
    })
}

fn walk(input: &mut Input<'_>, fields: &Fields, depth: usize) -> Parsed<()> {
    input.fields(depth, |input, id, kind| known(input, fields, id, kind, depth))
}

fn known(input: &mut Input<'_>, fields: &Fields, id: i16, kind: u8, depth: usize) -> Parsed<()> {
    match fields.iter().find(|(known, _)| *known == id) {
        Some((_, shape)) => value(input, shape, kind, depth),
        None => input.skip(kind, depth + 1),
    }
}

fn value(input: &mut Input<'_>, shape: &Shape, kind: u8, depth: usize) -> Parsed<()> {
    match (shape, kind) {
        (Number, INT16 | INT32 | INT64) | (Flag, TRUE | FALSE) | (Byte, BYTE) | (Double, DOUBLE) | (Binary, BINARY) => {
            input.skip(kind, depth)
        }
        (Struct(fields), STRUCT) => walk(input, fields, depth + 1),
        (List(shape), LIST) => {
            let (element, count) = input.list()?;
            (0..count).try_for_each(|_| value(input, shape, element, depth + 1))
        }
        (Schema, LIST) => schema(input),
        _ => wrong("a field of another type than Parquet's"),
    }
}

/// A group of the schema whose children are not all read yet.
struct Group {
    left: usize,
    /// Bytes of its path.
    path: usize,
}

/// Follows the schema, which is a tree in the order of a depth-first walk, without recursion.
fn schema(input: &mut Input<'_>) -> Parsed<()> {
    let (kind, count) = input.list()?;
    if kind != STRUCT && count > 0 {
        return wrong("a schema without elements");
    }
    let (mut groups, mut promised, mut paths) = (Vec::<Group>::new(), 0usize, 0usize);
    for read in 1..=count {
        let (name, children) = element(input)?;
        while groups.last().is_some_and(|group| group.left == 0) {
            groups.pop();
        }
        let outer = match groups.last_mut() {
            Some(group) => {
                group.left -= 1;
                promised -= 1;
                group.path
            }
            None if read == 1 => 0,
            None => return wrong("elements outside the schema's root"),
        };
        // The root is no part of paths, but as long as it likes once.
        let path = if read == 1 { 0 } else { outer + name + NAME };
        promised += children;
        if promised > count - read {
            return wrong("a group of more columns than the schema has");
        }
        match children {
            0 => paths += path,
            _ if groups.len() >= NESTED => return wrong("columns nested more than 64 groups deep"),
            _ => groups.push(Group { left: children, path }),
        }
        if paths > PATHS {
            return wrong("names of nested columns that take more than 64 MB");
        }
    }
    Ok(())
}

/// Reads a schema element; returns the length of its name and how many children it has.
fn element(input: &mut Input<'_>) -> Parsed<(usize, usize)> {
    let (mut name, mut children) = (0, 0);
    input.fields(1, |input, id, kind| {
        match (id, kind) {
            (4, BINARY) => name = input.binary()?.len(),
            (5, INT16 | INT32 | INT64) => children = input.size()?,
            (4 | 5, _) => return wrong("a field of another type than Parquet's"),
            _ => known(input, ELEMENT, id, kind, 1)?,
        }
        Ok(())
    })?;
    Ok((name, children))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of a data page of one value and eight bytes, and further fields behind.
    fn page(more: &[u8]) -> Vec<u8> {
        let sizes = [0x15, 0x00, 0x15, 0x10, 0x15, 0x10];
        let values = [0x2C, 0x15, 0x02, 0x15, 0x00, 0x15, 0x06, 0x15, 0x06, 0x00];
        [&sizes[..], &values, more, &[0]].concat()
    }

    #[test]
    fn page_headers_are_looked_at_before_another_reads_them() {
        let header = page(&[]);
        assert_eq!(check_page(&header), Ok((header.len(), 8)));
        for cut in 0..header.len() {
            assert_eq!(check_page(&header[..cut]), Err(Malformed::Short), "cut at {cut}");
        }
        // A list of two billion booleans, which takes no time to read and hours to pass over, if there are many.
        let booleans = [0x99, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07];
        assert_eq!(check_page(&page(&booleans)), wrong("a list of booleans"));
        assert_eq!(check_page(&page(&[0x9C; 100])), wrong("nested too deeply"));
        // The dictionary's header (7) as a number, and the size (3) as text.
        assert_eq!(check_page(&page(&[0x25, 0x00])), wrong("a field of another type than Parquet's"));
        assert_eq!(check_page(&[0x38, 0x00, 0x00]), wrong("a field of another type than Parquet's"));
    }
}
