//! How a daemon is started: one table of options, for `tandem serve` and `tandem-node` alike.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use crate::trust::directory_variable;

/// Options of the node daemon.
#[derive(Args, Clone, Debug)]
pub struct NodeOptions {
    /// Unix socket to listen on; its directory is yours alone, and is made with mode 0700
    #[arg(long, value_name = "PATH", default_value_os_t = default_socket())]
    pub socket: PathBuf,
    /// Worker threads; 0 for all cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Megabytes of scanned columns that stay resident
    #[arg(long, value_name = "MB", default_value_t = default_cache())]
    pub cache: usize,
    /// Megabytes of blocks (build sides) that are kept
    #[arg(long, value_name = "MB", default_value_t = 1024)]
    pub blocks: usize,
    /// Megabytes that all running commands may take together for what they collect
    #[arg(long, value_name = "MB", default_value_t = 4096)]
    pub memory_limit: usize,
    /// Seconds that a command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub time_limit: u64,
    /// Megabytes of a frame; a command may have an eighth of it
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub max_message: usize,
    /// Connections at once, of clients on this machine and of others each
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub max_connections: usize,
    /// Seconds that a client may take to go on with a frame, or to take a part of a result
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub client_timeout: u64,
    /// Seconds that running commands may go on after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub drain: u64,
    /// Seconds that blocks of an application without connections are kept
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub linger: u64,
    /// End when standard input does, or the parent process
    #[arg(long)]
    pub with_parent: bool,
    /// Where pipelines run, unless a command says otherwise
    #[arg(long, value_enum, default_value_t = Executor::Cpu)]
    pub mode: Executor,
    /// Address for TCP connections, inside TLS; needs a certificate, a key and a token
    #[arg(long, value_name = "ADDRESS", requires_all = ["tls_certificate", "tls_key", "token_file"])]
    pub listen: Option<SocketAddr>,
    /// Certificates of the TLS listener, as PEM
    #[arg(long, value_name = "FILE")]
    pub tls_certificate: Option<PathBuf>,
    /// Key of the TLS listener, as PEM; a file of mode 0600
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// File of mode 0600 with the token that clients must present; over TCP always, on the Unix socket too if given
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Loopback address that answers GET /metrics and /health
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// What is logged to standard error
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub log: LogLevel,
}

/// Where pipelines run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// On the CPU.
    Cpu,
    /// On devices, where they can.
    Gpu,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum LogLevel {
    /// Nothing but failures of the daemon itself.
    Error,
    /// What somebody should look at.
    Warn,
    /// Starts, ends and commands.
    Info,
    /// Connections and blocks too.
    Debug,
}

impl Default for NodeOptions {
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Defaults {
            #[command(flatten)]
            options: NodeOptions,
        }
        <Defaults as clap::Parser>::parse_from([""]).options
    }
}

impl NodeOptions {
    pub(crate) fn client_timeout(&self) -> Duration {
        Duration::from_secs(self.client_timeout.max(1))
    }
}

/// The socket of this user on this machine.
fn default_socket() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let directory = match directory_variable("XDG_RUNTIME_DIR") {
        Some(directory) => directory.join("tandem"),
        None => directory_variable("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")).join(format!("tandem-{user}")),
    };
    directory.join("node.sock")
}

/// A quarter of the machine's memory, in megabytes.
fn default_cache() -> usize {
    let information = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = information.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|total| total.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.map_or(2048, |kilobytes| kilobytes / 1024 / 4)
}
