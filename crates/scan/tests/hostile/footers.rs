//! Parquet footers, written byte by byte in Thrift's compact protocol.

use std::{fs, path::Path};

use arrow::ipc;
use base64::prelude::{BASE64_STANDARD, Engine};
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};
use tandem_scan::{FileTable, Format};

use crate::{open, refused};

const TRUE: u8 = 1;
const INT32: u8 = 5;
const INT64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field whose number is `delta` more than that of the one before.
fn field(delta: u8, kind: u8, value: &[u8]) -> Vec<u8> {
    [&[delta << 4 | kind], value].concat()
}

fn number(delta: u8, kind: u8, value: i64) -> Vec<u8> {
    field(delta, kind, &varint(((value << 1) ^ (value >> 63)) as u64))
}

fn text(delta: u8, value: &[u8]) -> Vec<u8> {
    field(delta, BINARY, &[&varint(value.len() as u64), value].concat())
}

/// A list that claims to have so many elements.
fn list(delta: u8, element: u8, count: u64, elements: &[u8]) -> Vec<u8> {
    field(delta, LIST, &[&[0xF0 | element], &varint(count)[..], elements].concat())
}

/// A group of the schema that claims to have so many children.
fn group(name: &[u8], children: i64) -> Vec<u8> {
    [number(3, INT32, 0), text(1, name), number(1, INT32, children), vec![0]].concat()
}

/// A column of 32-bit integers.
fn leaf(name: &[u8]) -> Vec<u8> {
    [number(1, INT32, 1), number(2, INT32, 0), text(1, name), vec![0]].concat()
}

/// A footer without rows, its schema a list that claims to have so many elements; `more` are fields behind the row groups.
fn footer(count: u64, elements: &[u8], more: &[u8]) -> Vec<u8> {
    let schema = list(1, STRUCT, count, elements);
    let head = [number(1, INT32, 2), schema, number(1, INT64, 0)].concat();
    [&head, &list(1, STRUCT, 0, &[])[..], more, &[0]].concat()
}

fn write(path: &Path, footer: &[u8]) {
    let length = (footer.len() as u32).to_le_bytes();
    fs::write(path, [b"PAR1", footer, &length, b"PAR1"].concat()).expect("a temporary file");
}

/// Writes a file that must be refused, and is as small as a hostile one can be.
fn check(footer: &[u8], reason: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("hostile.parquet");
    write(&path, footer);
    let message = refused(&path, Format::Parquet);
    assert!(message.contains(reason), "{reason}: {message}");
}

fn good(footer: &[u8]) -> FileTable {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("good.parquet");
    write(&path, footer);
    open(&path, Format::Parquet).expect("a good file")
}

/// A schema of groups in groups, with a column in the innermost.
fn nested(groups: usize) -> Vec<u8> {
    let elements = [group(b"g", 1).repeat(groups), leaf(b"x")].concat();
    footer(groups as u64 + 1, &elements, &[])
}

#[test]
fn what_the_writer_makes_is_right() {
    let elements = [group(b"schema", 2), leaf(b"a"), group(b"g", 2), leaf(b"b"), leaf(b"c")].concat();
    let table = good(&footer(5, &elements, &[]));
    assert_eq!((table.schema().len(), table.rows()), (2, Some(0)));
    assert_eq!((&table.schema()[0].name[..], &table.schema()[1].name[..]), ("a", "g"));
    // As deep as is allowed: on a thread with little stack.
    assert_eq!(good(&nested(64)).schema().len(), 1);
}

#[test]
fn deep_schemas_do_not_overflow_the_stack() {
    for groups in [65, 3_000, 100_000] {
        check(&nested(groups), "nested more than 64 groups deep");
    }
}

#[test]
fn counts_are_bounded_by_what_is_left() {
    for children in [2, 3, 1 << 20, i64::from(i32::MAX)] {
        check(&footer(2, &[group(b"s", children), leaf(b"a")].concat(), &[]), "more columns than the schema has");
    }
    check(&footer(2, &[group(b"s", -1), leaf(b"a")].concat(), &[]), "negative size");
    // Larger than 32 bits, of which a careless reader takes the lower half.
    check(&footer(2, &[group(b"s", (1 << 32) + 1), leaf(b"a")].concat(), &[]), "negative size");
    // Two groups that claim the same elements.
    let elements = [group(b"s", 2), group(b"g", 2), leaf(b"a"), leaf(b"b")].concat();
    check(&footer(4, &elements, &[]), "more columns than the schema has");
    check(&footer(2, &[group(b"s", 0), leaf(b"a")].concat(), &[]), "outside the schema's root");
    let schema = [group(b"s", 1), leaf(b"a")].concat();
    for many in [1000, 1 << 31, 1 << 60, u64::MAX] {
        check(&footer(many, &schema, &[]), "ends too early");
        // Row groups, metadata, orders of columns, and a field that nobody knows.
        let head = [number(1, INT32, 2), list(1, STRUCT, 2, &schema), number(1, INT64, 0)].concat();
        check(&[&head[..], &list(1, STRUCT, many, &[0; 16]), &[0]].concat(), "ends too early");
        for delta in [1, 3, 9] {
            check(&footer(2, &schema, &list(delta, STRUCT, many, &[0; 16])), "ends too early");
        }
    }
}

#[test]
fn lists_in_row_groups_are_bounded_too() {
    let schema = [group(b"s", 1), leaf(b"a")].concat();
    let head = [number(1, INT32, 2), list(1, STRUCT, 2, &schema), number(1, INT64, 0)].concat();
    let many = 1 << 31;
    let metadata = |lists: Vec<u8>| {
        let chunk = [number(2, INT64, 4), field(1, STRUCT, &lists), vec![0, 0]].concat();
        let columns = list(1, STRUCT, 1, &chunk);
        [&head[..], &list(1, STRUCT, 1, &[columns, vec![0]].concat()), &[0]].concat()
    };
    // Encodings, paths, metadata, page encodings; then histograms of sizes.
    for (delta, element) in [(2, INT32), (3, BINARY), (8, STRUCT), (13, STRUCT)] {
        check(&metadata(list(delta, element, many, &[])), "ends too early");
    }
    let sizes = field(15, STRUCT, &[list(2, INT64, many, &[]), vec![0]].concat());
    check(&metadata([number(1, INT32, 1), sizes].concat()), "ends too early");
    let sorting = list(4, STRUCT, many, &[]);
    check(&[&head[..], &list(1, STRUCT, 1, &[sorting, vec![0]].concat()), &[0]].concat(), "ends too early");
}

#[test]
fn fields_have_their_types() {
    // The crate reads the number, then bytes that this reader would pass over as text: a schema of two billion elements.
    let hidden = [&[0xF0 | STRUCT][..], &varint(i32::MAX as u64)].concat();
    let disguised = [number(1, INT32, 2), text(1, &hidden), vec![0]].concat();
    check(&disguised, "another type than Parquet's");
    let element = [number(3, INT32, 0), text(1, b"s"), text(1, b"1"), vec![0]].concat();
    check(&footer(1, &element, &[]), "another type than Parquet's");
    check(&footer(1, &group(b"s", 0), &number(1, INT64, 1)), "another type than Parquet's");
}

#[test]
fn values_without_bytes_do_not_keep_a_reader_busy() {
    // Each list of booleans takes seven bytes, and two billion steps of a reader that passes over them.
    let booleans = [&[0xF0 | TRUE][..], &varint(i32::MAX as u64)].concat();
    let lists = list(15, LIST, 1000, &booleans.repeat(1000));
    check(&footer(1, &group(b"s", 0), &lists), "a list of booleans");
    let deep = field(15, STRUCT, &[0x10 | STRUCT; 1000]);
    check(&footer(1, &group(b"s", 0), &deep), "nested too deeply");
}

#[test]
fn names_are_not_copied_without_bound() {
    // Every column's path holds a copy of the names around it: of 500 KB, 30 GB would be made.
    let long = vec![b'n'; 200_000];
    let count = 3_000;
    let elements = [group(&long, 1), group(&long, count), leaf(b"x").repeat(count as usize)].concat();
    check(&footer(count as u64 + 2, &elements, &[]), "names of nested columns");
}

#[test]
fn footers_are_within_their_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("hostile.parquet");
    fs::write(&path, [b"PAR1", &u32::MAX.to_le_bytes()[..], b"PAR1"].concat()).expect("a temporary file");
    assert!(refused(&path, Format::Parquet).contains("4294967295 bytes in a file of 12"));
    // A file with a hole has the bytes, but takes no room on the disk.
    let file = fs::File::options().write(true).open(&path).expect("it is ours");
    file.set_len(5 << 30).expect("a file system with holes");
    std::os::unix::fs::FileExt::write_all_at(&file, b"\xFF\xFF\xFF\xFFPAR1", (5 << 30) - 8).expect("it is ours");
    let error = open(&path, Format::Parquet).map(drop).expect_err("a footer of 4 GB");
    assert!(error.message.contains("takes 4095 MB, the most is 256"), "{error}");
}

fn arrow_field<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    name: WIPOffset<&'a str>,
    kind: ipc::Type,
    of: WIPOffset<UnionWIPOffset>,
    children: WIPOffset<Vector<'a, ForwardsUOffset<ipc::Field<'a>>>>,
) -> WIPOffset<ipc::Field<'a>> {
    let mut field = ipc::FieldBuilder::new(builder);
    field.add_name(name);
    field.add_type_type(kind);
    field.add_type_(of);
    field.add_children(children);
    field.finish()
}

/// An Arrow schema of one column, which has two children, which are both the same one, and so on.
fn arrow_schema(levels: usize, name: &str) -> String {
    let mut builder = FlatBufferBuilder::new();
    let name = builder.create_string(name);
    let mut integer = ipc::IntBuilder::new(&mut builder);
    integer.add_bitWidth(32);
    integer.add_is_signed(true);
    let integer = integer.finish().as_union_value();
    let structure = ipc::Struct_Builder::new(&mut builder).finish().as_union_value();
    let none = builder.create_vector::<ForwardsUOffset<ipc::Field<'_>>>(&[]);
    let mut last = arrow_field(&mut builder, name, ipc::Type::Int, integer, none);
    for _ in 0..levels {
        let children = builder.create_vector(&[last, last]);
        last = arrow_field(&mut builder, name, ipc::Type::Struct_, structure, children);
    }
    let fields = builder.create_vector(&[last]);
    let mut schema = ipc::SchemaBuilder::new(&mut builder);
    schema.add_fields(fields);
    let schema = schema.finish().as_union_value();
    let mut message = ipc::MessageBuilder::new(&mut builder);
    message.add_header_type(ipc::MessageHeader::Schema);
    message.add_header(schema);
    let message = message.finish();
    builder.finish(message, None);
    BASE64_STANDARD.encode(builder.finished_data())
}

#[test]
fn arrow_schemas_in_footers_are_bounded() {
    let with = |schema: &str| {
        let entry = [text(1, b"ARROW:schema"), text(1, schema.as_bytes()), vec![0]].concat();
        footer(2, &[group(b"s", 1), leaf(b"a")].concat(), &list(1, STRUCT, 1, &entry))
    };
    assert_eq!(good(&with(&arrow_schema(0, "a"))).schema().len(), 1);
    check(&with(&arrow_schema(1000, "a")), "Arrow schema: ");
    // A few thousand bytes would become two gigabytes.
    check(&with(&arrow_schema(18, &"n".repeat(4000))), "Arrow schema: ");
    check(&with("this is no base64"), "footer: ");
}
