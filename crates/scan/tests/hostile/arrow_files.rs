//! Arrow files whose metadata claims more than there is.

use std::{fs, path::PathBuf, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch},
    datatypes::{DataType, Field, Schema},
    ipc::{
        self, Block, Buffer, CompressionType, FieldNode,
        convert::IpcSchemaEncoder,
        writer::{FileWriter, IpcWriteOptions, StreamWriter},
    },
};
use flatbuffers::FlatBufferBuilder;
use tandem_scan::{Format, inspect};

use crate::{open, refused};

/// What a file of one batch says of it.
struct Claims {
    kind: DataType,
    rows: i64,
    buffers: Vec<Buffer>,
    compression: Option<CompressionType>,
    body: Vec<u8>,
    /// What becomes of the batch's place in the footer.
    blocks: fn(Block) -> Vec<Block>,
}

impl Default for Claims {
    /// Two integers.
    fn default() -> Claims {
        let buffers = vec![Buffer::new(0, 0), Buffer::new(0, 16)];
        let blocks = |block| vec![block];
        Claims { kind: DataType::Int64, rows: 2, buffers, compression: None, body: vec![0; 64], blocks }
    }
}

impl Claims {
    fn write(&self) -> (tempfile::TempDir, PathBuf) {
        let mut builder = FlatBufferBuilder::new();
        let buffers = builder.create_vector(&self.buffers);
        let nodes = builder.create_vector(&[FieldNode::new(self.rows, 0)]);
        let compression = self.compression.map(|codec| {
            let mut compression = ipc::BodyCompressionBuilder::new(&mut builder);
            compression.add_codec(codec);
            compression.finish()
        });
        let mut batch = ipc::RecordBatchBuilder::new(&mut builder);
        batch.add_length(self.rows);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(compression) = compression {
            batch.add_compression(compression);
        }
        let batch = batch.finish().as_union_value();
        let mut message = ipc::MessageBuilder::new(&mut builder);
        message.add_version(ipc::MetadataVersion::V5);
        message.add_header_type(ipc::MessageHeader::RecordBatch);
        message.add_header(batch);
        message.add_bodyLength(self.body.len() as i64);
        let message = message.finish();
        builder.finish(message, None);
        let mut head = builder.finished_data().to_vec();
        head.resize(head.len().next_multiple_of(8), 0);
        let mut file = b"ARROW1\0\0".to_vec();
        let block = Block::new(file.len() as i64, head.len() as i32 + 8, self.body.len() as i64);
        file.extend([0xFF; 4]);
        file.extend((head.len() as u32).to_le_bytes());
        file.extend(head);
        file.extend(&self.body);

        let mut builder = FlatBufferBuilder::new();
        let schema = Schema::new(vec![Field::new("a", self.kind.clone(), true)]);
        let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &schema);
        let blocks = builder.create_vector(&(self.blocks)(block));
        let none = builder.create_vector::<Block>(&[]);
        let mut footer = ipc::FooterBuilder::new(&mut builder);
        footer.add_version(ipc::MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(none);
        footer.add_recordBatches(blocks);
        let footer = footer.finish();
        builder.finish(footer, None);
        file.extend(builder.finished_data());
        file.extend((builder.finished_data().len() as u32).to_le_bytes());
        file.extend(b"ARROW1");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.arrow");
        fs::write(&path, file).expect("a temporary file");
        (directory, path)
    }

    fn check(&self, reason: &str) {
        let (_directory, path) = self.write();
        let message = refused(&path, Format::Arrow);
        assert!(message.contains(reason), "{reason}: {message}");
    }
}

fn rows(path: &std::path::Path) -> usize {
    let table = open(path, Format::Arrow).expect("a good file");
    crate::load(&table).expect("good rows").rows()
}

#[test]
fn what_the_writer_makes_is_right() {
    let (_directory, path) = Claims::default().write();
    assert_eq!(rows(&path), 2);
}

#[test]
fn compressed_and_wide_files_are_read_as_before() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let path = directory.path().join("a.arrow");
        let columns = (0..500).map(|number| {
            let values: ArrayRef = Arc::new(Int64Array::from([None, Some(number)].repeat(5000)));
            (format!("a column with a long name, number {number}"), values)
        });
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let options = IpcWriteOptions::default().try_with_compression(compression).expect("a codec");
        let file = fs::File::create(&path).expect("a temporary file");
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).expect("a schema");
        (0..3).for_each(|_| writer.write(&batch).expect("rows"));
        writer.finish().expect("a whole file");
        assert_eq!(rows(&path), 30_000);
    }
}

#[test]
fn blocks_are_within_the_file() {
    const TOO_LONG: [fn(Block) -> Vec<Block>; 5] = [
        |block| vec![Block::new(block.offset(), block.metaDataLength(), 1 << 62)],
        |block| vec![Block::new(block.offset(), block.metaDataLength(), 1 << 40)],
        |block| vec![Block::new(i64::MAX, block.metaDataLength(), 64)],
        |block| vec![Block::new(block.offset(), i32::MAX, 64)],
        |_| vec![Block::new(1 << 40, 8, 0)],
    ];
    for blocks in TOO_LONG {
        Claims { blocks, ..Claims::default() }.check("block 0: it reaches beyond the file");
    }
    let blocks: fn(Block) -> Vec<Block> = |block| vec![Block::new(block.offset(), -1, 64)];
    Claims { blocks, ..Claims::default() }.check("block 0: a negative length");
    // One batch, a million times.
    Claims { blocks: |block| vec![block; 100], ..Claims::default() }.check("blocks that overlap");
}

#[test]
fn buffers_are_within_their_blocks() {
    for (offset, length, reason) in [
        (0, 1 << 40, "buffers that overlap"),
        (i64::MAX, 16, "a buffer reaches beyond its block"),
        (-8, 16, "a negative length"),
        (0, -1, "a negative length"),
    ] {
        let buffers = vec![Buffer::new(0, 0), Buffer::new(offset, length)];
        Claims { buffers, ..Claims::default() }.check(reason);
    }
}

#[test]
fn compressed_buffers_do_not_claim_what_they_cannot_become() {
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        for claimed in [1 << 62, 1 << 40, (1 << 31) + 1, 1 << 21, -2] {
            let body = [&i64::to_le_bytes(claimed)[..], &[0; 56]].concat();
            let claims = Claims { compression: Some(codec), body, ..Claims::default() };
            claims.check(&format!("a buffer of 8 bytes claims to become {claimed}"));
        }
    }
}

#[test]
fn rows_take_bytes() {
    for rows in [1 << 62, 1 << 40, -1] {
        let (kind, buffers) = (DataType::Null, Vec::new());
        Claims { kind, rows, buffers, ..Claims::default() }.check(&format!("{rows} rows in 0 bytes"));
    }
    Claims { rows: 1 << 30, ..Claims::default() }.check("rows in 16 bytes");
}

#[test]
fn footers_are_within_their_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.arrow");
    fs::write(&path, [b"ARROW1\0\0", &i32::MAX.to_le_bytes()[..], b"ARROW1"].concat()).expect("a temporary file");
    assert!(refused(&path, Format::Arrow).contains("footer: 2147483647 bytes in a file of 18"));
}

#[test]
fn streams_of_messages_are_bounded_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.arrow");
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("a", values)]).expect("one column");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).expect("a schema");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a whole stream");
    drop(writer);
    let inspected = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("a temporary file");
        inspect(&path, Some(&Format::Arrow))
    };
    inspected(&bytes).expect("a good stream");
    let cut = inspected(&bytes[..bytes.len() - 50]).expect_err("its rows are not all there");
    assert!(cut.message.contains("a message reaches beyond the file"), "{cut}");
    for length in [u32::MAX, 1 << 30] {
        let huge = [&[0xFF; 4][..], &length.to_le_bytes(), &[0; 64]].concat();
        assert!(inspected(&huge).expect_err("too long").message.contains("a message reaches beyond the file"));
        // Without the marker, as old writers have it.
        assert!(length == u32::MAX || inspected(&huge[4..]).is_err());
    }
    // A file's beginning is no message.
    assert!(inspected(b"ARROW1\0\0 and no end of it").is_err());
}
