//! Pages of a column chunk behind a footer that is as it should be, and the headers of pages alone.

use std::sync::Arc;

use parquet::{
    basic::{Compression, Encoding, Type},
    file::{
        metadata::{ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData},
        statistics::Statistics,
    },
    schema::{parser::parse_message_type, types::SchemaDescriptor},
};
use tandem_scan::{FileTable, Format};

use crate::{
    files::{file, load, load_split, look_at},
    sound,
};

/// The columns that a chunk may be of, without "required" or "optional".
pub const FORMS: &[&str] = &[
    "boolean c",
    "int32 c",
    "int32 c (INTEGER(8,true))",
    "int32 c (INTEGER(16,false))",
    "int32 c (INTEGER(32,false))",
    "int32 c (DATE)",
    "int32 c (DECIMAL(5,2))",
    "int32 c (TIME(MILLIS,true))",
    "int64 c",
    "int64 c (INTEGER(64,false))",
    "int64 c (TIMESTAMP(MICROS,true))",
    "int64 c (DECIMAL(18,4))",
    "int96 c",
    "float c",
    "double c",
    "byte_array c (UTF8)",
    "byte_array c",
    "byte_array c (DECIMAL(20,2))",
    "fixed_len_byte_array(3) c",
    "fixed_len_byte_array(5) c (DECIMAL(10,2))",
    "fixed_len_byte_array(16) c (DECIMAL(30,10))",
];

/// How many compressions there are.
pub const CODECS: usize = 6;

/// A column chunk, as inputs of `pages` say it: eight bytes, then its pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk<'b> {
    /// Which of [`FORMS`].
    pub form: usize,
    /// How pages are compressed, by position.
    pub codec: usize,
    /// Whether values may be null.
    pub optional: bool,
    /// The least and the greatest value, if the footer says them.
    pub range: Option<(i16, i16)>,
    /// How many rows there are.
    pub rows: u16,
    /// The pages.
    pub pages: &'b [u8],
}

impl<'b> Chunk<'b> {
    /// Reads a chunk.
    pub fn read(bytes: &'b [u8]) -> Option<Chunk<'b>> {
        let ([form, choices, r0, r1, l0, l1, h0, h1], pages) = bytes.split_first_chunk::<8>()?;
        let range = (i16::from_le_bytes([*l0, *l1]), i16::from_le_bytes([*h0, *h1]));
        Some(Chunk {
            form: usize::from(*form) % FORMS.len(),
            codec: usize::from(choices & 7) % CODECS,
            optional: choices & 8 != 0,
            range: (choices & 16 != 0).then_some(range),
            rows: u16::from_le_bytes([*r0, *r1]),
            pages,
        })
    }

    /// Writes a chunk as [`Chunk::read`] reads it.
    pub fn write(&self) -> Vec<u8> {
        let choices = self.codec as u8 | u8::from(self.optional) << 3 | u8::from(self.range.is_some()) << 4;
        let (low, high) = self.range.unwrap_or_default();
        let head = [&[self.form as u8, choices][..], &self.rows.to_le_bytes(), &low.to_le_bytes(), &high.to_le_bytes()];
        [&head.concat(), self.pages].concat()
    }

    /// Returns the compression.
    pub fn compression(&self) -> Compression {
        match self.codec {
            0 => Compression::UNCOMPRESSED,
            1 => Compression::SNAPPY,
            2 => Compression::LZ4_RAW,
            3 => Compression::ZSTD(Default::default()),
            4 => Compression::GZIP(Default::default()),
            _ => Compression::LZ4,
        }
    }

    /// Returns the schema of a file of this column.
    pub fn schema(&self) -> Arc<SchemaDescriptor> {
        let repetition = if self.optional { "optional" } else { "required" };
        let message = format!("message m {{ {repetition} {}; }}", FORMS[self.form]);
        Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(&message).expect("a schema as we write it"))))
    }

    /// Makes the file of this chunk.
    fn file(&self) -> parquet::errors::Result<Vec<u8>> {
        let mut bytes = b"PAR1".to_vec();
        bytes.extend_from_slice(self.pages);
        let (schema, rows) = (self.schema(), i64::from(self.rows));
        let mut column = ColumnChunkMetaData::builder(schema.column(0))
            .set_encodings(vec![Encoding::PLAIN])
            .set_compression(self.compression())
            .set_num_values(rows)
            .set_data_page_offset(4)
            .set_total_compressed_size(self.pages.len() as i64)
            .set_total_uncompressed_size(self.pages.len() as i64);
        if let Some((low, high)) = self.range {
            column = match schema.column(0).physical_type() {
                Type::INT32 => {
                    column.set_statistics(Statistics::int32(Some(low.into()), Some(high.into()), None, Some(0), false))
                }
                Type::INT64 => {
                    column.set_statistics(Statistics::int64(Some(low.into()), Some(high.into()), None, Some(0), false))
                }
                _ => column,
            };
        }
        let group = RowGroupMetaData::builder(schema.clone())
            .set_num_rows(rows)
            .set_total_byte_size(self.pages.len() as i64)
            .add_column_metadata(column.build()?)
            .build()?;
        let metadata = ParquetMetaData::new(FileMetaData::new(2, rows, None, None, schema, None), vec![group]);
        ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
        Ok(bytes)
    }
}

/// The pages of a chunk.
pub(crate) fn pages(bytes: &[u8]) {
    let Some(chunk) = Chunk::read(bytes) else { return };
    let path = file("pages.parquet", &chunk.file().expect("a footer as we write it"));
    let table = FileTable::open(vec![path], Format::Parquet).expect("a footer as we write it");
    for loaded in [sound(load(&table)), sound(load_split(&table))].into_iter().flatten() {
        assert_eq!(loaded.rows(), usize::from(chunk.rows));
        look_at(&loaded);
    }
}

/// A page's header.
pub(crate) fn header(bytes: &[u8]) {
    if let Some(length) = tandem_scan::fuzzing::page_header(bytes) {
        assert!(length <= bytes.len());
        assert_eq!(
            tandem_scan::fuzzing::page_header(&bytes[..length]),
            Some(length),
            "what is behind a header is not read"
        );
    }
}
