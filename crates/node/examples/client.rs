//! Sends a pipeline to a node daemon and prints the rows: `cargo run -p tandem-node --example client [SOCKET]`.
//!
//! Without a socket it starts a daemon of its own. It writes a small Parquet file, then asks for the sum of amounts by region, of
//! rows whose product is in a block that it hands in.

use std::{fs::File, path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray},
    util::pretty::print_batches,
};
use parquet::arrow::ArrowWriter;
use tandem_node::{BuildBlock, Client, Node, NodeOptions, proto};
use tandem_pipeline::{Type, parse, proto as wire};

const QUERY: &str = "
pipeline 0
  block products [product: int32]
  build keys ($0) payload ()
pipeline 1
  scan sales [product@0: int32?, region@1: string?, amount@2: int64?]
  filter $2 > 10
  probe semi 0 on ($0)
  aggregate by ($1) (count_rows(): int64, sum($2): int64)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("sales.parquet");
    write_sales(&path)?;

    // The daemon makes the directory of its socket, which only this user may enter.
    let own = directory.path().join("run").join("node.sock");
    let node = match std::env::args().nth(1) {
        Some(_) => None,
        None => Some(Node::start(NodeOptions { socket: own.clone(), ..NodeOptions::default() }, Arc::default())?),
    };
    let socket = std::env::args().nth(1).map_or(own, Into::into);
    let mut client = Client::connect(&socket, "example")?;

    let column = |name: &str, kind: &Type| proto::Column {
        name: name.to_owned(),
        kind: Some(wire::write_kind(kind)),
        nullable: true,
        partition: None,
    };
    let columns =
        vec![column("product", &Type::Int32), column("region", &Type::String), column("amount", &Type::Int64)];
    let split = proto::Split { path: path.display().to_string(), length: u64::MAX, ..Default::default() };
    let command = proto::Execute {
        name: "example".to_owned(),
        query: Some(wire::write(&parse(QUERY.trim_start())?)),
        tables: vec![proto::Table { name: "sales".to_owned(), columns, splits: vec![split], case_sensitive: true }],
        blocks: vec![proto::Block { name: "products".to_owned(), key: "even products".to_owned(), digest: Vec::new() }],
        ..Default::default()
    };
    for _ in 0..2 {
        let outcome = client.execute(&command, |_| {
            let products: ArrayRef = Arc::new(Int32Array::from_iter_values((0..50).map(|product| product * 2)));
            let batch = RecordBatch::try_from_iter([("product", products)])?;
            Ok(BuildBlock { schema: batch.schema(), batches: vec![batch] })
        })?;
        print_batches(&outcome.batches)?;
        let trailer = &outcome.trailer;
        println!(
            "{} rows read, {} columns decoded, {} resident, {} blocks sent",
            trailer.rows_in, trailer.columns_decoded, trailer.columns_cached, trailer.blocks_received
        );
    }
    drop((client, node));
    Ok(())
}

fn write_sales(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let rows = 0..10_000;
    let product: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| row % 100)));
    let region: ArrayRef =
        Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("region {}", row % 3))));
    let amount: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(i64::from)));
    let batch = RecordBatch::try_from_iter([("product", product), ("region", region), ("amount", amount)])?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}
