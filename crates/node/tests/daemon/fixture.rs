//! A daemon in a directory of its own, small Parquet files, and commands over them.

use std::{
    fs::File,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::{
    array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema},
};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};
use tandem_node::{BuildBlock, Client, Failed, Node, NodeOptions, proto};
use tandem_pipeline::{Type, parse, proto as wire};
use tandem_runtime::Devices;
use tempfile::TempDir;

/// Rows of the file that [`sales`] writes, and of its row groups.
pub const ROWS: i32 = 10_000;
pub const GROUP_ROWS: i32 = 1_000;
/// The most that anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon and its directory.
pub struct Running {
    pub node: Option<Node>,
    pub directory: TempDir,
    pub socket: PathBuf,
}

impl Running {
    pub fn start(change: impl FnOnce(&mut NodeOptions)) -> Running {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("run/node.sock");
        let mut options = NodeOptions { socket: socket.clone(), threads: 2, cache: 64, ..NodeOptions::default() };
        options.log = tandem_node::LogLevel::Error;
        change(&mut options);
        Running { node: Some(Node::start(options, devices()).unwrap()), directory, socket }
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket, "app-1").unwrap()
    }

    /// Writes the usual file.
    pub fn sales(&self) -> PathBuf {
        let path = self.directory.path().join("sales.parquet");
        sales(&path, ROWS);
        path
    }
}

/// The devices of this machine, as the environment asks for them.
pub fn devices() -> Arc<Devices> {
    Arc::new(Devices::from_environment())
}

/// Makes a directory that only this user may enter, as sockets need it.
pub fn private_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o700);
    directory
}

/// A token, and the certificate and key of a TLS listener named `node.test`.
pub struct Keys(TempDir);

pub const TOKEN: &str = "a token of sufficient length";

impl Keys {
    pub fn new() -> Keys {
        let keys = Keys(tempfile::tempdir().unwrap());
        let pair = rcgen::generate_simple_self_signed(["node.test".to_owned()]).unwrap();
        std::fs::write(keys.path("cert.pem"), pair.cert.pem()).unwrap();
        secret(&keys.path("key.pem"), &pair.signing_key.serialize_pem());
        secret(&keys.path("token"), &format!("{TOKEN}\n"));
        keys
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Lets a daemon listen on TCP with them.
    pub fn listen(&self, options: &mut NodeOptions) {
        options.listen = Some("127.0.0.1:0".parse().unwrap());
        options.tls_certificate = Some(self.path("cert.pem"));
        options.tls_key = Some(self.path("key.pem"));
        options.token_file = Some(self.path("token"));
    }

    /// Connects to a daemon over TCP.
    pub fn connect(&self, running: &Running, name: &str, token: &str) -> Result<Client, Failed> {
        let address = running.node.as_ref().unwrap().tls_address().unwrap().to_string();
        Client::connect_tls(&address, name, &self.path("cert.pem"), &hello(token))
    }
}

/// A greeting with a token.
pub fn hello(token: &str) -> proto::Hello {
    proto::Hello { token: token.to_owned(), application: "app-1".to_owned(), ..Client::hello() }
}

/// Writes a file that nobody else may read.
pub fn secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    set_mode(path, 0o600);
}

pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The value of column `amount` in a row; every seventh is null.
pub fn amount(id: i32) -> Option<i64> {
    (id % 7 != 0).then(|| i64::from(id) * 3 - 1000)
}

pub fn region(id: i32) -> String {
    format!("region {}", id % 5)
}

/// Writes rows of `id`, `region`, `amount` and `price`, in row groups of [`GROUP_ROWS`].
pub fn sales(path: &Path, rows: i32) {
    let ids = || 0..rows;
    let price = Decimal128Array::from_iter_values(ids().map(|id| i128::from(id) * 25));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int32Array::from_iter_values(ids())), false),
        ("region", Arc::new(StringArray::from_iter_values(ids().map(region))), false),
        ("amount", Arc::new(Int64Array::from_iter(ids().map(amount))), true),
        ("price", Arc::new(price.with_precision_and_scale(9, 2).unwrap()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS as usize))
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

pub fn column(name: &str, kind: &Type, nullable: bool) -> proto::Column {
    proto::Column { name: name.to_owned(), kind: Some(wire::write_kind(kind)), nullable, partition: None }
}

/// The table `sales` over splits, with the columns of the file.
pub fn table(splits: Vec<proto::Split>) -> proto::Table {
    let columns = vec![
        column("id", &Type::Int32, true),
        column("region", &Type::String, true),
        column("amount", &Type::Int64, true),
        column("price", &Type::Decimal { precision: 9, scale: 2 }, true),
    ];
    proto::Table { name: "sales".to_owned(), columns, splits, case_sensitive: true }
}

pub fn whole(path: &Path) -> proto::Split {
    part(path, 0, u64::MAX)
}

pub fn part(path: &Path, start: u64, length: u64) -> proto::Split {
    proto::Split { path: path.display().to_string(), start, length, ..Default::default() }
}

/// A command of a query's text over the splits of `sales`.
pub fn command(text: &str, splits: Vec<proto::Split>) -> proto::Execute {
    let query = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    proto::Execute { query: Some(wire::write(&query)), tables: vec![table(splits)], ..Default::default() }
}

/// Sums of amounts by region, of rows from an id on, as partial states.
pub fn by_region(from: i32) -> String {
    format!(
        "pipeline 0\n  scan sales [region@1: string?, amount@2: int64?, id@0: int32?]\n  filter $2 >= {from}:int32\n  \
         aggregate partial by ($0) (sum($1): int64, count($1): int64, average($1): float64)\n"
    )
}

/// What [`by_region`] gives for each region: sum and count.
pub fn expected_by_region(ids: impl Iterator<Item = i32> + Clone) -> Vec<(String, i64, i64)> {
    let of = |at: i32| {
        let amounts = ids.clone().filter(|id| id % 5 == at).filter_map(amount);
        (region(at), amounts.clone().sum::<i64>(), amounts.count() as i64)
    };
    (0..5).map(of).filter(|(_, _, count)| *count > 0).collect()
}

/// Reads the rows of [`by_region`].
pub fn regions(batches: &[RecordBatch]) -> Vec<(String, i64, i64)> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let text = batch.column(0).as_string::<i32>().value(row).to_owned();
            let int = |column: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
            assert_eq!(int(2), int(4), "the count of the average is the count");
            rows.push((text, int(1), int(2)));
        }
    }
    rows.sort();
    rows
}

/// A block of keys 0 to `rows` and a value each.
pub fn keys(rows: i32) -> BuildBlock {
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|id| i64::from(id) * 10)));
    let schema =
        Arc::new(Schema::new(vec![Field::new("k", DataType::Int32, false), Field::new("v", DataType::Int64, false)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![ids, values]).unwrap();
    BuildBlock { schema, batches: vec![batch] }
}

/// Joins `sales` with a block by id and sums the block's values.
pub const JOIN: &str = "pipeline 0
  block keys [k: int32, v: int64]
  build keys ($0) payload ($1)
pipeline 1
  scan sales [id@0: int32?]
  probe inner 0 on ($0) adds ($1 v@0: int64)
  aggregate by () (count_rows(): int64, sum($1): int64)
";

/// Pairs every row with every key of a block: takes long.
pub const ENDLESS: &str = "pipeline 0
  block keys [k: int32, v: int64]
  build keys (1:int32) payload ($1)
pipeline 1
  scan sales [id@0: int32?]
  probe inner 0 on (1:int32) adds ($1 v@0: int64)
  let $2 w: int64 = $1 % 1000
  aggregate by ($2) (count_rows(): int64, sum($1): int64)
";

pub fn with_block(mut command: proto::Execute, key: &str) -> proto::Execute {
    command.blocks = vec![proto::Block { name: "keys".to_owned(), key: key.to_owned(), digest: Vec::new() }];
    command
}

/// Waits until something is so.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
