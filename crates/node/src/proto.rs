//! The messages of the .proto file beside this crate's sources, as prost-build writes them. Do not edit: see
//! `crates/node/tests/generated.rs`.
#![allow(missing_docs, clippy::all)]
#![cfg_attr(rustfmt, rustfmt_skip)]

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Hello {
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    #[prost(string, tag = "2")]
    pub client_version: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub token: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub application: ::prost::alloc::string::String,
    #[prost(string, tag = "5")]
    pub executor: ::prost::alloc::string::String,
    #[prost(uint32, tag = "6")]
    pub cores: u32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Welcome {
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    #[prost(string, tag = "2")]
    pub daemon_version: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub daemon: ::prost::alloc::string::String,
    #[prost(uint32, tag = "4")]
    pub pid: u32,
    #[prost(uint32, tag = "5")]
    pub threads: u32,
    #[prost(uint64, tag = "6")]
    pub max_message_bytes: u64,
    #[prost(string, repeated, tag = "7")]
    pub devices: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(uint32, tag = "8")]
    pub query_version: u32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Execute {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub query: ::core::option::Option<tandem_pipeline::proto::Query>,
    #[prost(message, repeated, tag = "3")]
    pub tables: ::prost::alloc::vec::Vec<Table>,
    #[prost(message, repeated, tag = "4")]
    pub blocks: ::prost::alloc::vec::Vec<Block>,
    #[prost(uint64, tag = "5")]
    pub time_limit_ms: u64,
    #[prost(uint64, tag = "6")]
    pub memory_limit_bytes: u64,
    #[prost(uint32, tag = "7")]
    pub batch_rows: u32,
    #[prost(enumeration = "Mode", tag = "8")]
    pub mode: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Table {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "2")]
    pub columns: ::prost::alloc::vec::Vec<Column>,
    #[prost(message, repeated, tag = "3")]
    pub splits: ::prost::alloc::vec::Vec<Split>,
    #[prost(bool, tag = "4")]
    pub case_sensitive: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Column {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub kind: ::core::option::Option<tandem_pipeline::proto::Type>,
    #[prost(bool, tag = "3")]
    pub nullable: bool,
    #[prost(uint32, optional, tag = "4")]
    pub partition: ::core::option::Option<u32>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Split {
    #[prost(string, tag = "1")]
    pub path: ::prost::alloc::string::String,
    #[prost(uint64, tag = "2")]
    pub start: u64,
    #[prost(uint64, tag = "3")]
    pub length: u64,
    #[prost(uint64, tag = "4")]
    pub file_size: u64,
    #[prost(sint64, tag = "5")]
    pub modified_ms: i64,
    #[prost(message, repeated, tag = "6")]
    pub partition_values: ::prost::alloc::vec::Vec<tandem_pipeline::proto::Value>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Block {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub key: ::prost::alloc::string::String,
    #[prost(bytes = "vec", tag = "3")]
    pub digest: ::prost::alloc::vec::Vec<u8>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Need {
    #[prost(uint32, repeated, tag = "1")]
    pub blocks: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Release {
    #[prost(string, tag = "1")]
    pub application: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Trailer {
    #[prost(uint64, tag = "1")]
    pub rows_in: u64,
    #[prost(uint64, tag = "2")]
    pub rows_out: u64,
    #[prost(uint64, tag = "3")]
    pub batches: u64,
    #[prost(uint64, tag = "4")]
    pub bytes_out: u64,
    #[prost(uint64, tag = "5")]
    pub row_groups: u64,
    #[prost(uint64, tag = "6")]
    pub row_groups_skipped: u64,
    #[prost(uint64, tag = "7")]
    pub columns_cached: u64,
    #[prost(uint64, tag = "8")]
    pub columns_decoded: u64,
    #[prost(uint64, tag = "9")]
    pub bytes_read: u64,
    #[prost(uint64, tag = "10")]
    pub scan_ns: u64,
    #[prost(uint64, tag = "11")]
    pub compute_ns: u64,
    #[prost(uint64, tag = "12")]
    pub wait_ns: u64,
    #[prost(uint64, tag = "13")]
    pub blocks_received: u64,
    #[prost(uint64, tag = "14")]
    pub cache_bytes: u64,
    #[prost(message, repeated, tag = "15")]
    pub pipelines: ::prost::alloc::vec::Vec<PipelineReport>,
    #[prost(uint64, tag = "16")]
    pub send_ns: u64,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct PipelineReport {
    #[prost(uint64, tag = "1")]
    pub rows_in: u64,
    #[prost(uint64, tag = "2")]
    pub rows_out: u64,
    #[prost(uint64, tag = "3")]
    pub rows_skipped: u64,
    #[prost(uint64, tag = "4")]
    pub elapsed_ns: u64,
    #[prost(string, tag = "5")]
    pub device: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub reason: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "7")]
    pub notes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Failure {
    #[prost(enumeration = "Class", tag = "1")]
    pub class: i32,
    #[prost(string, tag = "2")]
    pub message: ::prost::alloc::string::String,
    #[prost(bool, tag = "3")]
    pub retryable: bool,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Report {
    #[prost(bool, tag = "1")]
    pub draining: bool,
    #[prost(uint64, tag = "2")]
    pub uptime_ms: u64,
    #[prost(uint64, tag = "3")]
    pub connections: u64,
    #[prost(uint64, tag = "4")]
    pub running: u64,
    #[prost(uint64, tag = "5")]
    pub commands: u64,
    #[prost(uint64, tag = "6")]
    pub failures: u64,
    #[prost(uint64, tag = "7")]
    pub cache_bytes: u64,
    #[prost(uint64, tag = "8")]
    pub cache_limit_bytes: u64,
    #[prost(uint64, tag = "9")]
    pub block_bytes: u64,
    #[prost(uint64, tag = "10")]
    pub blocks: u64,
    #[prost(string, tag = "11")]
    pub prometheus: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Mode {
    Unspecified = 0,
    Cpu = 1,
    Gpu = 2,
}
impl Mode {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "MODE_UNSPECIFIED",
            Self::Cpu => "MODE_CPU",
            Self::Gpu => "MODE_GPU",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "MODE_UNSPECIFIED" => Some(Self::Unspecified),
            "MODE_CPU" => Some(Self::Cpu),
            "MODE_GPU" => Some(Self::Gpu),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Class {
    Unspecified = 0,
    Input = 1,
    Unsupported = 2,
    Exhausted = 3,
    Device = 4,
    Internal = 5,
    Cancelled = 6,
    Draining = 7,
    Protocol = 8,
}
impl Class {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "CLASS_UNSPECIFIED",
            Self::Input => "CLASS_INPUT",
            Self::Unsupported => "CLASS_UNSUPPORTED",
            Self::Exhausted => "CLASS_EXHAUSTED",
            Self::Device => "CLASS_DEVICE",
            Self::Internal => "CLASS_INTERNAL",
            Self::Cancelled => "CLASS_CANCELLED",
            Self::Draining => "CLASS_DRAINING",
            Self::Protocol => "CLASS_PROTOCOL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "CLASS_UNSPECIFIED" => Some(Self::Unspecified),
            "CLASS_INPUT" => Some(Self::Input),
            "CLASS_UNSUPPORTED" => Some(Self::Unsupported),
            "CLASS_EXHAUSTED" => Some(Self::Exhausted),
            "CLASS_DEVICE" => Some(Self::Device),
            "CLASS_INTERNAL" => Some(Self::Internal),
            "CLASS_CANCELLED" => Some(Self::Cancelled),
            "CLASS_DRAINING" => Some(Self::Draining),
            "CLASS_PROTOCOL" => Some(Self::Protocol),
            _ => None,
        }
    }
}
