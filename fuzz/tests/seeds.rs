//! Writes inputs to begin with, from our own writers and tests: `dev/fuzz --seed` runs this and keeps those that differ in what
//! they reach.

use std::{fs, path::Path, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, DictionaryArray, Int32Array, ListArray, RecordBatch, StructArray},
    compute::{cast, nullif},
    datatypes::{DataType, Field, Int32Type, TimeUnit},
    ipc::writer::{FileWriter, StreamWriter},
};
use parquet::{
    arrow::ArrowWriter,
    basic::Type as Physical,
    data_type::{
        BoolType, ByteArray, ByteArrayType, DataType as Stored, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type as Stored32, Int64Type as Stored64, Int96, Int96Type,
    },
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
        reader::{FileReader, SerializedFileReader},
        writer::SerializedFileWriter,
    },
};
use prost::Message;
use tandem_fuzz::{CODECS, Chunk, FORMS, sample, with_block};
use tandem_node::{
    Client,
    frame::{self, FrameKind},
    proto,
};
use tandem_pipeline::{parse, proto as wire, random};

/// Rows of a table: enough for nulls, repetitions and several pages.
const ROWS: i32 = 20;

/// Inputs of a target.
struct Seeds<'d>(&'d Path, &'static str);

impl Seeds<'_> {
    fn keep(&self, bytes: &[u8]) {
        let directory = self.0.join(self.1);
        fs::create_dir_all(&directory).expect("a directory for seeds");
        let number = fs::read_dir(&directory).expect("a directory for seeds").count();
        fs::write(directory.join(format!("{number:05}")), bytes).expect("room for seeds");
    }
}

#[test]
#[ignore = "writes files: dev/fuzz --seed runs it"]
fn write() {
    let directory = std::env::var("TANDEM_FUZZ_SEEDS").expect("TANDEM_FUZZ_SEEDS names a directory");
    let directory = Path::new(&directory);
    footers(&Seeds(directory, "footer"));
    pages(&Seeds(directory, "pages"), &Seeds(directory, "thrift"));
    arrow_files(&Seeds(directory, "ipc"));
    texts(&Seeds(directory, "csv"));
    queries(&Seeds(directory, "pipeline"), &Seeds(directory, "commands"), &Seeds(directory, "frames"));
    statements(&Seeds(directory, "sql"));
}

/// Makes a column of every type.
fn columns() -> Vec<(String, ArrayRef)> {
    use DataType::*;
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS).map(|row| row % 7 * 3)));
    let holes = (0..ROWS).map(|row| Some(row % 5 == 0)).collect();
    let kinds = [
        vec![Int8],
        vec![Int16],
        vec![Int32],
        vec![Int64],
        vec![UInt8],
        vec![UInt16],
        vec![UInt32],
        vec![UInt64],
        vec![Float32],
        vec![Float64],
        vec![Boolean],
        vec![Utf8],
        vec![Utf8, LargeUtf8],
        vec![Utf8, Utf8View],
        vec![Utf8, Binary],
        vec![Date32],
        vec![Time32(TimeUnit::Millisecond)],
        vec![Int64, Time64(TimeUnit::Microsecond)],
        vec![Int64, Timestamp(TimeUnit::Millisecond, None)],
        vec![Int64, Timestamp(TimeUnit::Microsecond, Some("UTC".into()))],
        vec![Decimal128(5, 2)],
        vec![Decimal128(18, 4)],
        vec![Decimal128(30, 10)],
        vec![Utf8, Dictionary(Box::new(Int8), Box::new(Utf8))],
    ];
    let mut columns = Vec::new();
    for kinds in kinds {
        let made =
            kinds.iter().fold(numbers.clone(), |array, kind| cast(&array, kind).expect("numbers become all types"));
        columns
            .push((format!("{made:?}").chars().filter(char::is_ascii_alphanumeric).take(12).collect(), made.clone()));
        if !matches!(made.data_type(), Dictionary(..)) {
            columns.push(("holes".to_owned(), nullif(&made, &holes).expect("one length")));
        }
    }
    let words: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().cycle().take(ROWS as usize).collect();
    columns.push(("words".to_owned(), Arc::new(words)));
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>((0..ROWS).map(|row| Some(vec![Some(row), None])));
    columns.push(("list".to_owned(), Arc::new(list)));
    let field = Arc::new(Field::new("x", DataType::Int32, false));
    columns.push(("struct".to_owned(), Arc::new(StructArray::from(vec![(field, numbers.clone())]))));
    columns
}

fn batch(columns: &[(String, ArrayRef)]) -> RecordBatch {
    let named = columns.iter().enumerate().map(|(index, (name, array))| (format!("{name}{index}"), array.clone()));
    RecordBatch::try_from_iter(named).expect("columns of one length")
}

fn footers(seeds: &Seeds<'_>) {
    let columns = columns();
    let mut batches: Vec<RecordBatch> = columns.chunks(1).map(batch).collect();
    batches.push(batch(&columns));
    batches.push(batch(&columns[..9]).slice(0, 0));
    for (number, rows) in batches.iter().enumerate() {
        let note = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let spark = vec![note("org.apache.spark.version", "2.4.0"), note("org.apache.spark.legacyINT96", "")];
        let statistics = [EnabledStatistics::Chunk, EnabledStatistics::None, EnabledStatistics::Page][number % 3];
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some([9, 100][number % 2]))
            .set_statistics_enabled(statistics)
            .set_key_value_metadata((number % 4 == 0).then_some(spark));
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties.build())).expect("a schema");
        writer.write(rows).expect("rows that Parquet has");
        let file = writer.into_inner().expect("memory takes everything");
        let (before, _) = file.split_at(file.len() - 8);
        let length = u32::from_le_bytes(file[before.len()..before.len() + 4].try_into().expect("four bytes")) as usize;
        seeds.keep(&before[before.len() - length..]);
    }
}

fn pages(seeds: &Seeds<'_>, headers: &Seeds<'_>) {
    for form in 0..FORMS.len() {
        for codec in 0..CODECS {
            for choice in 0..8 {
                let range = (choice == 7).then_some((0, 60));
                let mut chunk = Chunk { form, codec, optional: choice & 1 != 0, range, rows: ROWS as u16, pages: &[] };
                let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][choice >> 1 & 1];
                let file = one_column(&chunk, version, choice & 4 != 0);
                let reader = SerializedFileReader::new(bytes_of(&file)).expect("a file as we write it");
                let column = reader.metadata().row_group(0).column(0);
                let (start, length) = column.byte_range();
                chunk.pages = &file[start as usize..(start + length) as usize];
                seeds.keep(&chunk.write());
                headers.keep(&chunk.pages[..chunk.pages.len().min(64)]);
            }
        }
    }
}

fn bytes_of(file: &[u8]) -> prost::bytes::Bytes {
    prost::bytes::Bytes::copy_from_slice(file)
}

/// Writes a file of one column, without what Arrow makes of it.
fn one_column(chunk: &Chunk<'_>, version: WriterVersion, dictionary: bool) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(chunk.compression())
        .set_writer_version(version)
        .set_dictionary_enabled(dictionary)
        .set_data_page_row_count_limit(8)
        .set_write_batch_size(4);
    let schema = chunk.schema();
    let mut file = Vec::new();
    let root = schema.root_schema_ptr();
    let mut writer = SerializedFileWriter::new(&mut file, root, Arc::new(properties.build())).expect("a schema");
    let levels: Vec<i16> = (0..ROWS).map(|row| i16::from(row % 5 != 0)).collect();
    let levels = chunk.optional.then_some(levels);
    let count = levels.as_ref().map_or(ROWS as usize, |levels| levels.iter().filter(|level| **level == 1).count());
    fn put<T: Stored>(
        group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, &mut Vec<u8>>,
        levels: Option<&[i16]>,
        values: Vec<T::T>,
    ) {
        let mut column = group.next_column().expect("a column").expect("a column");
        column.typed::<T>().write_batch(&values, levels, None).expect("rows that Parquet has");
        column.close().expect("a whole column");
    }
    let mut group = writer.next_row_group().expect("a group");
    let (levels, column) = (levels.as_deref(), schema.column(0));
    let numbers = || (0..count).map(|row| row % 7 * 3);
    let bytes = |length: usize| move |number: usize| ByteArray::from(vec![b'a' + number as u8; length]);
    match column.physical_type() {
        Physical::BOOLEAN => put::<BoolType>(&mut group, levels, numbers().map(|number| number % 2 == 0).collect()),
        Physical::INT32 => put::<Stored32>(&mut group, levels, numbers().map(|number| number as i32).collect()),
        Physical::INT64 => put::<Stored64>(&mut group, levels, numbers().map(|number| number as i64).collect()),
        Physical::INT96 => {
            put::<Int96Type>(
                &mut group,
                levels,
                numbers().map(|number| Int96::from(vec![number as u32, 0, 2_440_588])).collect(),
            );
        }
        Physical::FLOAT => put::<FloatType>(&mut group, levels, numbers().map(|number| number as f32).collect()),
        Physical::DOUBLE => put::<DoubleType>(&mut group, levels, numbers().map(|number| number as f64).collect()),
        Physical::BYTE_ARRAY => {
            put::<ByteArrayType>(&mut group, levels, numbers().map(|number| bytes(number % 5 + 1)(number)).collect());
        }
        Physical::FIXED_LEN_BYTE_ARRAY => {
            let length = column.type_length() as usize;
            let values = numbers().map(|number| FixedLenByteArray::from(bytes(length)(number % 4))).collect();
            put::<FixedLenByteArrayType>(&mut group, levels, values);
        }
    }
    group.close().expect("a whole group");
    writer.close().expect("a whole file");
    file
}

fn arrow_files(seeds: &Seeds<'_>) {
    let columns = columns();
    let mut batches: Vec<RecordBatch> = columns.chunks(1).map(batch).collect();
    batches.push(batch(&columns[..9]));
    batches.push(batch(&columns[..3]).slice(0, 0));
    for rows in batches {
        let mut writer = FileWriter::try_new(Vec::new(), &rows.schema()).expect("a schema");
        writer.write(&rows.slice(0, rows.num_rows() / 2)).expect("memory takes everything");
        writer.write(&rows).expect("memory takes everything");
        seeds.keep(&writer.into_inner().expect("memory takes everything"));
    }
}

fn texts(seeds: &Seeds<'_>) {
    let texts = [
        "a,b,c\n1,x,2.5\n2,,-1e3\n,\"y\ny\",\n",
        "1,true,2020-01-01,2020-01-01T00:00:00\n2,false,1969-12-31,1969-12-31T23:59:59.5Z\n",
        "id;name;amount\n1;\"it\"\"s\";3\n",
        "a\tb\n1\t2\n\n3\t4",
        "a|b|\n1|2|\n",
        "\u{feff}a,b\r\n1,2\r\n3,4\r\n",
        "9223372036854775808,99999999999999999999.5,x\n-1,0,\n",
        "one\n",
        "a,a\n1,2\n",
        "",
    ];
    for (number, text) in texts.iter().enumerate() {
        let delimiter = [",", "\t", "|", ";"].iter().position(|delimiter| text.contains(delimiter)).unwrap_or(0) as u8;
        for header in 0..3u8 {
            seeds.keep(&[&[delimiter | header << 2], text.as_bytes()].concat());
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).expect("memory takes everything");
        seeds.keep(&[&[delimiter | 1 << 4][..], &gzip.finish().expect("memory takes everything")].concat());
        let zstd = zstd::encode_all(text.as_bytes(), number as i32).expect("memory takes everything");
        seeds.keep(&[&[delimiter | 2 << 4][..], &zstd].concat());
    }
}

/// Queries over the sample and a block.
const BY_NAME: &str = "pipeline 0
  scan sales [name@1: string?, amount@2: int64?, id@0: int32]
  filter $2 >= 10:int32
  aggregate partial by ($0) (sum($1): int64, count($1): int64, average($1): float64)
";
const JOIN: &str = "pipeline 0
  block keys [k: int32, v: int64]
  build keys ($0) payload ($1)
pipeline 1
  scan sales [id@0: int32]
  probe inner 0 on ($0) adds ($1 v@0: int64)
  aggregate by () (count_rows(): int64, sum($1): int64)
";
const FUNCTIONS: &str =
    "function 0 collatz(n: int64) returns int64 locals (steps: int64, seen: list(float64), i: int64)
  set $1 = 0
  resize $2, 3, 0.0
  while $0 <> 1
    if $0 % 2 = 0
      set $0 = $0 / 2
    else
      set $0 = ($0 * 3) + 1
    end
    set $1 = $1 + 1
  end
  for $3 from 0 to list_length($2)
    store $2, $3, element($2, $3) + 1.5
  end
  return $1
end
pipeline 0
  values [n: int64] (5), (6)
  let $1 c: int64 = collatz@0($0)
  sort by ($1 desc) output ($0, $1)
";

fn queries(texts: &Seeds<'_>, commands: &Seeds<'_>, frames: &Seeds<'_>) {
    let column = |field: &tandem_column::Field| proto::Column {
        name: field.name.clone(),
        kind: Some(wire::write_kind(&field.kind)),
        nullable: field.nullable,
        partition: None,
    };
    let split = || vec![proto::Split { path: "sample".to_owned(), length: u64::MAX, ..Default::default() }];
    let rows = sample();
    let fields = tandem_column::Field::all_from_arrow(&rows.schema()).expect("types that tables have");
    let columns = fields.iter().map(column).collect();
    let sales = proto::Table { name: "sales".to_owned(), columns, splits: split(), case_sensitive: true };
    let block = proto::Block { name: "keys".to_owned(), key: "k".to_owned(), digest: Vec::new() };
    let keys = RecordBatch::try_from_iter([
        ("k", Arc::new(Int32Array::from_iter_values(0..9)) as ArrayRef),
        ("v", cast(&Int32Array::from_iter_values(10..19), &DataType::Int64).expect("integers widen")),
    ]);
    let keys = keys.expect("columns of one length");
    let mut stream = StreamWriter::try_new(Vec::new(), &keys.schema()).expect("a schema");
    stream.write(&keys).expect("memory takes everything");
    let keys = stream.into_inner().expect("memory takes everything");
    let mut messages = Vec::new();
    for text in [BY_NAME, JOIN, FUNCTIONS] {
        let query = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        texts.keep(text.as_bytes());
        let execute = proto::Execute {
            query: Some(wire::write(&query)),
            tables: vec![sales.clone()],
            blocks: vec![block.clone()],
            ..Default::default()
        };
        commands.keep(&with_block(&keys, &execute.encode_to_vec()));
        messages.push(execute);
    }
    for seed in 0..120 {
        let rng = &mut random::generator(seed);
        let tables = random::tables(rng, 4);
        let query = random::query(rng, &tables);
        let text = query.to_string();
        if text.len() > 3 << 10 {
            continue;
        }
        texts.keep(text.as_bytes());
        // The sample has none of these columns: all of their values are null.
        let table = |(name, table): &random::NamedTable| proto::Table {
            name: name.clone(),
            columns: table.schema.iter().map(column).collect(),
            splits: split(),
            case_sensitive: true,
        };
        let tables = tables.iter().map(table).collect();
        let execute = proto::Execute { query: Some(wire::write(&query)), tables, ..Default::default() };
        commands.keep(&with_block(&[], &execute.encode_to_vec()));
        messages.push(execute);
    }
    let hello = proto::Hello { application: "app".to_owned(), token: "secret".to_owned(), ..Client::hello() };
    let mut parts: Vec<(FrameKind, Vec<u8>)> = vec![
        (FrameKind::Hello, hello.encode_to_vec()),
        (FrameKind::Block, [&[0; 4], &keys[..]].concat()),
        (FrameKind::BlockEnd, vec![0; 4]),
        (FrameKind::Cancel, vec![]),
        (FrameKind::Release, proto::Release { application: "app".to_owned() }.encode_to_vec()),
        (FrameKind::Ping, b"tandem".to_vec()),
        (FrameKind::Status, vec![]),
        (
            FrameKind::Welcome,
            proto::Welcome { protocol: 1, devices: vec!["d".to_owned()], ..Default::default() }.encode_to_vec(),
        ),
        (FrameKind::Need, proto::Need { blocks: vec![0, 1, 300] }.encode_to_vec()),
        (
            FrameKind::Trailer,
            proto::Trailer { rows_in: 7, pipelines: vec![Default::default()], ..Default::default() }.encode_to_vec(),
        ),
        (FrameKind::Failure, proto::Failure { class: 1, message: "no".to_owned(), retryable: true }.encode_to_vec()),
        (FrameKind::Report, proto::Report { draining: true, ..Default::default() }.encode_to_vec()),
    ];
    let short = messages.iter().map(Message::encode_to_vec).filter(|message| message.len() < 500);
    parts.extend(short.map(|message| (FrameKind::Execute, message)));
    for part in parts.chunks(1).chain([&parts[..6]]) {
        let mut stream = Vec::new();
        for (kind, payload) in part {
            frame::write(&mut stream, *kind, payload).expect("memory takes everything");
        }
        frames.keep(&stream);
    }
}

/// Takes the statements of the tests of SQL.
fn statements(seeds: &Seeds<'_>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sql");
    let mut files: Vec<_> =
        fs::read_dir(directory).expect("tests/sql exists").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(file).expect("text");
        for record in text.split("\n\n") {
            let lines = record.lines().skip_while(|line| !line.starts_with("query") && !line.starts_with("statement"));
            let statement: Vec<&str> = lines.skip(1).take_while(|line| *line != "----").collect();
            let statement = statement.join("\n");
            if !statement.is_empty() && statement.len() < 1 << 10 {
                seeds.keep(statement.as_bytes());
            }
        }
    }
}
