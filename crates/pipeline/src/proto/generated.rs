//! The messages of the .proto file beside this crate's sources, as prost-build writes them. Do not edit: see
//! `crates/node/tests/generated.rs`.
#![allow(missing_docs, clippy::all)]
#![cfg_attr(rustfmt, rustfmt_skip)]

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Query {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    #[prost(message, repeated, tag = "2")]
    pub functions: ::prost::alloc::vec::Vec<UserFunction>,
    #[prost(message, repeated, tag = "3")]
    pub pipelines: ::prost::alloc::vec::Vec<Pipeline>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Pipeline {
    #[prost(message, optional, tag = "1")]
    pub source: ::core::option::Option<Source>,
    #[prost(message, repeated, tag = "2")]
    pub steps: ::prost::alloc::vec::Vec<Step>,
    #[prost(message, optional, tag = "3")]
    pub sink: ::core::option::Option<Sink>,
    #[prost(message, repeated, tag = "4")]
    pub slots: ::prost::alloc::vec::Vec<Slot>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Slot {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub kind: ::core::option::Option<Type>,
    #[prost(bool, tag = "3")]
    pub nullable: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Source {
    #[prost(oneof = "source::Source", tags = "1, 2, 3, 4")]
    pub source: ::core::option::Option<source::Source>,
}
/// Nested message and enum types in `Source`.
pub mod source {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Source {
        #[prost(message, tag = "1")]
        Table(super::TableSource),
        #[prost(message, tag = "2")]
        Result(super::ResultSource),
        #[prost(message, tag = "3")]
        Block(super::BlockSource),
        #[prost(message, tag = "4")]
        Values(super::ValuesSource),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TableSource {
    #[prost(string, tag = "1")]
    pub table: ::prost::alloc::string::String,
    #[prost(uint32, repeated, tag = "2")]
    pub columns: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ResultSource {
    #[prost(uint32, repeated, tag = "1")]
    pub pipelines: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BlockSource {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ValuesSource {
    #[prost(message, repeated, tag = "1")]
    pub rows: ::prost::alloc::vec::Vec<Row>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Row {
    #[prost(message, repeated, tag = "1")]
    pub values: ::prost::alloc::vec::Vec<Value>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Step {
    #[prost(oneof = "step::Step", tags = "1, 2, 3")]
    pub step: ::core::option::Option<step::Step>,
}
/// Nested message and enum types in `Step`.
pub mod step {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Step {
        #[prost(message, tag = "1")]
        Filter(super::Expr),
        #[prost(message, tag = "2")]
        Let(super::Let),
        #[prost(message, tag = "3")]
        Probe(super::Probe),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Let {
    #[prost(message, repeated, tag = "1")]
    pub exprs: ::prost::alloc::vec::Vec<Expr>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Probe {
    #[prost(uint32, tag = "1")]
    pub build: u32,
    #[prost(enumeration = "JoinKind", tag = "2")]
    pub kind: i32,
    #[prost(message, repeated, tag = "3")]
    pub keys: ::prost::alloc::vec::Vec<Expr>,
    #[prost(message, optional, tag = "4")]
    pub residual: ::core::option::Option<Expr>,
    #[prost(uint32, repeated, tag = "5")]
    pub adds: ::prost::alloc::vec::Vec<u32>,
    #[prost(bool, tag = "6")]
    pub null_equals_null: bool,
    #[prost(bool, tag = "7")]
    pub null_aware: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Sink {
    #[prost(oneof = "sink::Sink", tags = "1, 2, 3, 4, 5, 6")]
    pub sink: ::core::option::Option<sink::Sink>,
}
/// Nested message and enum types in `Sink`.
pub mod sink {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Sink {
        #[prost(message, tag = "1")]
        Build(super::Build),
        #[prost(message, tag = "2")]
        Aggregate(super::AggregateSink),
        #[prost(message, tag = "3")]
        Sort(super::Sort),
        #[prost(message, tag = "4")]
        Window(super::WindowSink),
        #[prost(message, tag = "5")]
        Partition(super::Partition),
        #[prost(message, tag = "6")]
        Materialize(super::Materialize),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Build {
    #[prost(message, repeated, tag = "1")]
    pub keys: ::prost::alloc::vec::Vec<Expr>,
    #[prost(uint32, repeated, tag = "2")]
    pub payload: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AggregateSink {
    #[prost(uint32, repeated, tag = "1")]
    pub keys: ::prost::alloc::vec::Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub aggregates: ::prost::alloc::vec::Vec<Aggregate>,
    #[prost(enumeration = "Phase", tag = "3")]
    pub phase: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Aggregate {
    #[prost(enumeration = "AggregateFunction", tag = "1")]
    pub function: i32,
    #[prost(uint32, optional, tag = "2")]
    pub argument: ::core::option::Option<u32>,
    #[prost(bool, tag = "3")]
    pub distinct: bool,
    #[prost(uint32, optional, tag = "4")]
    pub filter: ::core::option::Option<u32>,
    #[prost(message, optional, tag = "5")]
    pub kind: ::core::option::Option<Type>,
    #[prost(enumeration = "Overflow", tag = "6")]
    pub overflow: i32,
    #[prost(uint32, optional, tag = "7")]
    pub second: ::core::option::Option<u32>,
    #[prost(message, optional, tag = "8")]
    pub parameter: ::core::option::Option<Value>,
    #[prost(message, repeated, tag = "9")]
    pub order: ::prost::alloc::vec::Vec<SortKey>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Sort {
    #[prost(message, repeated, tag = "1")]
    pub keys: ::prost::alloc::vec::Vec<SortKey>,
    #[prost(uint64, tag = "2")]
    pub skip: u64,
    #[prost(uint64, optional, tag = "3")]
    pub fetch: ::core::option::Option<u64>,
    #[prost(uint32, repeated, tag = "4")]
    pub output: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SortKey {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(bool, tag = "2")]
    pub descending: bool,
    #[prost(bool, tag = "3")]
    pub nulls_first: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WindowSink {
    #[prost(uint32, repeated, tag = "1")]
    pub partition: ::prost::alloc::vec::Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub order: ::prost::alloc::vec::Vec<SortKey>,
    #[prost(message, repeated, tag = "3")]
    pub functions: ::prost::alloc::vec::Vec<Window>,
    #[prost(uint32, repeated, tag = "4")]
    pub output: ::prost::alloc::vec::Vec<u32>,
    #[prost(uint64, optional, tag = "5")]
    pub fetch: ::core::option::Option<u64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Window {
    #[prost(message, optional, tag = "4")]
    pub kind: ::core::option::Option<Type>,
    #[prost(oneof = "window::Function", tags = "1, 2, 3, 5, 6")]
    pub function: ::core::option::Option<window::Function>,
}
/// Nested message and enum types in `Window`.
pub mod window {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Function {
        #[prost(enumeration = "super::Ranking", tag = "1")]
        Ranking(i32),
        #[prost(message, tag = "2")]
        Lag(super::Lag),
        #[prost(message, tag = "3")]
        Aggregate(super::WindowAggregate),
        #[prost(uint64, tag = "5")]
        Ntile(u64),
        #[prost(message, tag = "6")]
        Nth(super::WindowNth),
    }
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Lag {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(sint64, tag = "2")]
    pub offset: i64,
    #[prost(uint32, optional, tag = "3")]
    pub default: ::core::option::Option<u32>,
    #[prost(bool, tag = "4")]
    pub ignore_nulls: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WindowAggregate {
    #[prost(message, optional, tag = "1")]
    pub aggregate: ::core::option::Option<Aggregate>,
    #[prost(message, optional, tag = "5")]
    pub frame: ::core::option::Option<WindowFrame>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct WindowNth {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(sint64, tag = "2")]
    pub place: i64,
    #[prost(bool, tag = "6")]
    pub ignore_nulls: bool,
    #[prost(message, optional, tag = "7")]
    pub frame: ::core::option::Option<WindowFrame>,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct WindowFrame {
    #[prost(enumeration = "FrameUnit", tag = "1")]
    pub unit: i32,
    #[prost(message, optional, tag = "2")]
    pub start: ::core::option::Option<FrameBound>,
    #[prost(message, optional, tag = "3")]
    pub end: ::core::option::Option<FrameBound>,
    #[prost(enumeration = "FrameExclusion", tag = "4")]
    pub exclusion: i32,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FrameBound {
    #[prost(oneof = "frame_bound::Bound", tags = "1, 2")]
    pub bound: ::core::option::Option<frame_bound::Bound>,
}
/// Nested message and enum types in `FrameBound`.
pub mod frame_bound {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum Bound {
        #[prost(sint64, tag = "1")]
        At(i64),
        #[prost(uint32, tag = "2")]
        Value(u32),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Partition {
    #[prost(message, repeated, tag = "1")]
    pub keys: ::prost::alloc::vec::Vec<Expr>,
    #[prost(uint64, tag = "2")]
    pub parts: u64,
    #[prost(uint32, repeated, tag = "3")]
    pub output: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Materialize {
    #[prost(uint64, tag = "1")]
    pub skip: u64,
    #[prost(uint64, optional, tag = "2")]
    pub fetch: ::core::option::Option<u64>,
    #[prost(uint32, repeated, tag = "3")]
    pub output: ::prost::alloc::vec::Vec<u32>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Expr {
    #[prost(
        oneof = "expr::Expr",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18"
    )]
    pub expr: ::core::option::Option<expr::Expr>,
}
/// Nested message and enum types in `Expr`.
pub mod expr {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Expr {
        #[prost(uint32, tag = "1")]
        Slot(u32),
        #[prost(message, tag = "2")]
        Literal(super::Literal),
        #[prost(message, tag = "3")]
        Arithmetic(::prost::alloc::boxed::Box<super::Arithmetic>),
        #[prost(message, tag = "4")]
        Negate(::prost::alloc::boxed::Box<super::Negate>),
        #[prost(message, tag = "5")]
        Compare(::prost::alloc::boxed::Box<super::Compare>),
        #[prost(message, tag = "6")]
        Distinct(::prost::alloc::boxed::Box<super::Pair>),
        #[prost(message, tag = "7")]
        And(super::Exprs),
        #[prost(message, tag = "8")]
        Or(super::Exprs),
        #[prost(message, tag = "9")]
        Not(::prost::alloc::boxed::Box<super::Expr>),
        #[prost(message, tag = "10")]
        IsNull(::prost::alloc::boxed::Box<super::Expr>),
        #[prost(message, tag = "11")]
        Case(::prost::alloc::boxed::Box<super::Case>),
        #[prost(message, tag = "12")]
        Cast(::prost::alloc::boxed::Box<super::Cast>),
        #[prost(message, tag = "13")]
        In(::prost::alloc::boxed::Box<super::In>),
        #[prost(message, tag = "14")]
        Like(::prost::alloc::boxed::Box<super::Like>),
        #[prost(message, tag = "15")]
        Function(super::FunctionCall),
        #[prost(message, tag = "16")]
        Call(super::Call),
        #[prost(message, tag = "17")]
        Element(::prost::alloc::boxed::Box<super::Pair>),
        #[prost(message, tag = "18")]
        ListLength(::prost::alloc::boxed::Box<super::Expr>),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Exprs {
    #[prost(message, repeated, tag = "1")]
    pub inputs: ::prost::alloc::vec::Vec<Expr>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Pair {
    #[prost(message, optional, boxed, tag = "1")]
    pub left: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub right: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Literal {
    #[prost(message, optional, tag = "1")]
    pub value: ::core::option::Option<Value>,
    #[prost(message, optional, tag = "2")]
    pub kind: ::core::option::Option<Type>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Arithmetic {
    #[prost(enumeration = "ArithmeticOperator", tag = "1")]
    pub operator: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub left: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, optional, boxed, tag = "3")]
    pub right: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, optional, tag = "4")]
    pub kind: ::core::option::Option<Type>,
    #[prost(enumeration = "Overflow", tag = "5")]
    pub overflow: i32,
    #[prost(enumeration = "Failure", tag = "6")]
    pub zero: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Negate {
    #[prost(message, optional, boxed, tag = "1")]
    pub input: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(enumeration = "Overflow", tag = "2")]
    pub overflow: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Compare {
    #[prost(enumeration = "Comparison", tag = "1")]
    pub comparison: i32,
    #[prost(message, optional, boxed, tag = "2")]
    pub left: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, optional, boxed, tag = "3")]
    pub right: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Case {
    #[prost(message, repeated, tag = "1")]
    pub branches: ::prost::alloc::vec::Vec<Branch>,
    #[prost(message, optional, boxed, tag = "2")]
    pub otherwise: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, optional, tag = "3")]
    pub kind: ::core::option::Option<Type>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Branch {
    #[prost(message, optional, tag = "1")]
    pub condition: ::core::option::Option<Expr>,
    #[prost(message, optional, tag = "2")]
    pub value: ::core::option::Option<Expr>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Cast {
    #[prost(message, optional, boxed, tag = "1")]
    pub input: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, optional, tag = "2")]
    pub kind: ::core::option::Option<Type>,
    #[prost(enumeration = "Failure", tag = "3")]
    pub failure: i32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct In {
    #[prost(message, optional, boxed, tag = "1")]
    pub input: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(message, repeated, tag = "2")]
    pub list: ::prost::alloc::vec::Vec<Value>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Like {
    #[prost(message, optional, boxed, tag = "1")]
    pub input: ::core::option::Option<::prost::alloc::boxed::Box<Expr>>,
    #[prost(string, tag = "2")]
    pub pattern: ::prost::alloc::string::String,
    #[prost(string, optional, tag = "3")]
    pub escape: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(bool, tag = "4")]
    pub ignore_case: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FunctionCall {
    #[prost(enumeration = "Function", tag = "1")]
    pub function: i32,
    #[prost(enumeration = "DateField", tag = "2")]
    pub field: i32,
    #[prost(message, repeated, tag = "3")]
    pub arguments: ::prost::alloc::vec::Vec<Expr>,
    #[prost(message, optional, tag = "4")]
    pub kind: ::core::option::Option<Type>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Call {
    #[prost(uint32, tag = "1")]
    pub function: u32,
    #[prost(message, repeated, tag = "2")]
    pub arguments: ::prost::alloc::vec::Vec<Expr>,
    #[prost(message, optional, tag = "3")]
    pub kind: ::core::option::Option<Type>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Type {
    #[prost(oneof = "r#type::Type", tags = "1, 2, 3, 4, 5")]
    pub r#type: ::core::option::Option<r#type::Type>,
}
/// Nested message and enum types in `Type`.
pub mod r#type {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Type {
        #[prost(enumeration = "super::Simple", tag = "1")]
        Simple(i32),
        #[prost(message, tag = "2")]
        Decimal(super::Decimal),
        #[prost(enumeration = "super::TimeUnit", tag = "3")]
        Time(i32),
        #[prost(message, tag = "4")]
        Timestamp(super::Timestamp),
        #[prost(message, tag = "5")]
        List(::prost::alloc::boxed::Box<super::Type>),
    }
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Decimal {
    #[prost(uint32, tag = "1")]
    pub precision: u32,
    #[prost(sint32, tag = "2")]
    pub scale: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Timestamp {
    #[prost(enumeration = "TimeUnit", tag = "1")]
    pub unit: i32,
    #[prost(string, optional, tag = "2")]
    pub zone: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Value {
    #[prost(oneof = "value::Value", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
    pub value: ::core::option::Option<value::Value>,
}
/// Nested message and enum types in `Value`.
pub mod value {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Value {
        #[prost(enumeration = "super::Null", tag = "1")]
        Null(i32),
        #[prost(bool, tag = "2")]
        Boolean(bool),
        #[prost(sint64, tag = "3")]
        Integer(i64),
        #[prost(bytes, tag = "4")]
        Wide(::prost::alloc::vec::Vec<u8>),
        #[prost(double, tag = "5")]
        Float(f64),
        #[prost(string, tag = "6")]
        String(::prost::alloc::string::String),
        #[prost(bytes, tag = "7")]
        Binary(::prost::alloc::vec::Vec<u8>),
        #[prost(message, tag = "8")]
        Interval(super::Interval),
        #[prost(message, tag = "9")]
        List(super::Values),
    }
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Interval {
    #[prost(sint32, tag = "1")]
    pub months: i32,
    #[prost(sint32, tag = "2")]
    pub days: i32,
    #[prost(sint64, tag = "3")]
    pub nanoseconds: i64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Values {
    #[prost(message, repeated, tag = "1")]
    pub values: ::prost::alloc::vec::Vec<Value>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UserFunction {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(uint32, tag = "2")]
    pub parameters: u32,
    #[prost(message, repeated, tag = "3")]
    pub locals: ::prost::alloc::vec::Vec<Local>,
    #[prost(message, optional, tag = "4")]
    pub returns: ::core::option::Option<Type>,
    #[prost(message, repeated, tag = "5")]
    pub body: ::prost::alloc::vec::Vec<Statement>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Local {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub kind: ::core::option::Option<Type>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Statement {
    #[prost(oneof = "statement::Statement", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub statement: ::core::option::Option<statement::Statement>,
}
/// Nested message and enum types in `Statement`.
pub mod statement {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Statement {
        #[prost(message, tag = "1")]
        Assign(super::Assign),
        #[prost(message, tag = "2")]
        Resize(super::Resize),
        #[prost(message, tag = "3")]
        Store(super::Store),
        #[prost(message, tag = "4")]
        If(super::If),
        #[prost(message, tag = "5")]
        While(super::While),
        #[prost(message, tag = "6")]
        For(super::For),
        #[prost(enumeration = "super::Jump", tag = "7")]
        Jump(i32),
        #[prost(message, tag = "8")]
        Return(super::Expr),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Assign {
    #[prost(uint32, tag = "1")]
    pub local: u32,
    #[prost(message, optional, tag = "2")]
    pub value: ::core::option::Option<Expr>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Resize {
    #[prost(uint32, tag = "1")]
    pub list: u32,
    #[prost(message, optional, tag = "2")]
    pub length: ::core::option::Option<Expr>,
    #[prost(message, optional, tag = "3")]
    pub fill: ::core::option::Option<Expr>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Store {
    #[prost(uint32, tag = "1")]
    pub list: u32,
    #[prost(message, optional, tag = "2")]
    pub index: ::core::option::Option<Expr>,
    #[prost(message, optional, tag = "3")]
    pub value: ::core::option::Option<Expr>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct If {
    #[prost(message, optional, tag = "1")]
    pub condition: ::core::option::Option<Expr>,
    #[prost(message, repeated, tag = "2")]
    pub then: ::prost::alloc::vec::Vec<Statement>,
    #[prost(message, repeated, tag = "3")]
    pub otherwise: ::prost::alloc::vec::Vec<Statement>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct While {
    #[prost(message, optional, tag = "1")]
    pub condition: ::core::option::Option<Expr>,
    #[prost(message, repeated, tag = "2")]
    pub body: ::prost::alloc::vec::Vec<Statement>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct For {
    #[prost(uint32, tag = "1")]
    pub variable: u32,
    #[prost(message, optional, tag = "2")]
    pub from: ::core::option::Option<Expr>,
    #[prost(message, optional, tag = "3")]
    pub to: ::core::option::Option<Expr>,
    #[prost(message, repeated, tag = "4")]
    pub body: ::prost::alloc::vec::Vec<Statement>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum JoinKind {
    Unspecified = 0,
    Inner = 1,
    Left = 2,
    Right = 3,
    Full = 4,
    Semi = 5,
    Anti = 6,
    Mark = 7,
    RightSemi = 8,
    RightAnti = 9,
}
impl JoinKind {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "JOIN_KIND_UNSPECIFIED",
            Self::Inner => "JOIN_KIND_INNER",
            Self::Left => "JOIN_KIND_LEFT",
            Self::Right => "JOIN_KIND_RIGHT",
            Self::Full => "JOIN_KIND_FULL",
            Self::Semi => "JOIN_KIND_SEMI",
            Self::Anti => "JOIN_KIND_ANTI",
            Self::Mark => "JOIN_KIND_MARK",
            Self::RightSemi => "JOIN_KIND_RIGHT_SEMI",
            Self::RightAnti => "JOIN_KIND_RIGHT_ANTI",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "JOIN_KIND_UNSPECIFIED" => Some(Self::Unspecified),
            "JOIN_KIND_INNER" => Some(Self::Inner),
            "JOIN_KIND_LEFT" => Some(Self::Left),
            "JOIN_KIND_RIGHT" => Some(Self::Right),
            "JOIN_KIND_FULL" => Some(Self::Full),
            "JOIN_KIND_SEMI" => Some(Self::Semi),
            "JOIN_KIND_ANTI" => Some(Self::Anti),
            "JOIN_KIND_MARK" => Some(Self::Mark),
            "JOIN_KIND_RIGHT_SEMI" => Some(Self::RightSemi),
            "JOIN_KIND_RIGHT_ANTI" => Some(Self::RightAnti),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Phase {
    Unspecified = 0,
    Single = 1,
    Partial = 2,
    Final = 3,
}
impl Phase {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "PHASE_UNSPECIFIED",
            Self::Single => "PHASE_SINGLE",
            Self::Partial => "PHASE_PARTIAL",
            Self::Final => "PHASE_FINAL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "PHASE_UNSPECIFIED" => Some(Self::Unspecified),
            "PHASE_SINGLE" => Some(Self::Single),
            "PHASE_PARTIAL" => Some(Self::Partial),
            "PHASE_FINAL" => Some(Self::Final),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AggregateFunction {
    Unspecified = 0,
    CountRows = 1,
    Count = 2,
    Sum = 3,
    Average = 4,
    Min = 5,
    Max = 6,
    VarianceSample = 7,
    VariancePopulation = 8,
    DeviationSample = 9,
    DeviationPopulation = 10,
    BoolAnd = 11,
    BoolOr = 12,
    First = 13,
    CovarianceSample = 14,
    CovariancePopulation = 15,
    Correlation = 16,
    RegressionSlope = 17,
    RegressionIntercept = 18,
    RegressionR2 = 19,
    RegressionAverageX = 20,
    RegressionAverageY = 21,
    RegressionSquaresX = 22,
    RegressionSquaresY = 23,
    RegressionProducts = 24,
    BitAnd = 25,
    BitOr = 26,
    BitXor = 27,
    Median = 28,
    Quantile = 29,
    Nth = 30,
    JoinText = 31,
    CountApproximate = 32,
    QuantileDiscrete = 33,
}
impl AggregateFunction {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "AGGREGATE_FUNCTION_UNSPECIFIED",
            Self::CountRows => "AGGREGATE_FUNCTION_COUNT_ROWS",
            Self::Count => "AGGREGATE_FUNCTION_COUNT",
            Self::Sum => "AGGREGATE_FUNCTION_SUM",
            Self::Average => "AGGREGATE_FUNCTION_AVERAGE",
            Self::Min => "AGGREGATE_FUNCTION_MIN",
            Self::Max => "AGGREGATE_FUNCTION_MAX",
            Self::VarianceSample => "AGGREGATE_FUNCTION_VARIANCE_SAMPLE",
            Self::VariancePopulation => "AGGREGATE_FUNCTION_VARIANCE_POPULATION",
            Self::DeviationSample => "AGGREGATE_FUNCTION_DEVIATION_SAMPLE",
            Self::DeviationPopulation => "AGGREGATE_FUNCTION_DEVIATION_POPULATION",
            Self::BoolAnd => "AGGREGATE_FUNCTION_BOOL_AND",
            Self::BoolOr => "AGGREGATE_FUNCTION_BOOL_OR",
            Self::First => "AGGREGATE_FUNCTION_FIRST",
            Self::CovarianceSample => "AGGREGATE_FUNCTION_COVARIANCE_SAMPLE",
            Self::CovariancePopulation => "AGGREGATE_FUNCTION_COVARIANCE_POPULATION",
            Self::Correlation => "AGGREGATE_FUNCTION_CORRELATION",
            Self::RegressionSlope => "AGGREGATE_FUNCTION_REGRESSION_SLOPE",
            Self::RegressionIntercept => "AGGREGATE_FUNCTION_REGRESSION_INTERCEPT",
            Self::RegressionR2 => "AGGREGATE_FUNCTION_REGRESSION_R2",
            Self::RegressionAverageX => "AGGREGATE_FUNCTION_REGRESSION_AVERAGE_X",
            Self::RegressionAverageY => "AGGREGATE_FUNCTION_REGRESSION_AVERAGE_Y",
            Self::RegressionSquaresX => "AGGREGATE_FUNCTION_REGRESSION_SQUARES_X",
            Self::RegressionSquaresY => "AGGREGATE_FUNCTION_REGRESSION_SQUARES_Y",
            Self::RegressionProducts => "AGGREGATE_FUNCTION_REGRESSION_PRODUCTS",
            Self::BitAnd => "AGGREGATE_FUNCTION_BIT_AND",
            Self::BitOr => "AGGREGATE_FUNCTION_BIT_OR",
            Self::BitXor => "AGGREGATE_FUNCTION_BIT_XOR",
            Self::Median => "AGGREGATE_FUNCTION_MEDIAN",
            Self::Quantile => "AGGREGATE_FUNCTION_QUANTILE",
            Self::Nth => "AGGREGATE_FUNCTION_NTH",
            Self::JoinText => "AGGREGATE_FUNCTION_JOIN_TEXT",
            Self::CountApproximate => "AGGREGATE_FUNCTION_COUNT_APPROXIMATE",
            Self::QuantileDiscrete => "AGGREGATE_FUNCTION_QUANTILE_DISCRETE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "AGGREGATE_FUNCTION_UNSPECIFIED" => Some(Self::Unspecified),
            "AGGREGATE_FUNCTION_COUNT_ROWS" => Some(Self::CountRows),
            "AGGREGATE_FUNCTION_COUNT" => Some(Self::Count),
            "AGGREGATE_FUNCTION_SUM" => Some(Self::Sum),
            "AGGREGATE_FUNCTION_AVERAGE" => Some(Self::Average),
            "AGGREGATE_FUNCTION_MIN" => Some(Self::Min),
            "AGGREGATE_FUNCTION_MAX" => Some(Self::Max),
            "AGGREGATE_FUNCTION_VARIANCE_SAMPLE" => Some(Self::VarianceSample),
            "AGGREGATE_FUNCTION_VARIANCE_POPULATION" => Some(Self::VariancePopulation),
            "AGGREGATE_FUNCTION_DEVIATION_SAMPLE" => Some(Self::DeviationSample),
            "AGGREGATE_FUNCTION_DEVIATION_POPULATION" => Some(Self::DeviationPopulation),
            "AGGREGATE_FUNCTION_BOOL_AND" => Some(Self::BoolAnd),
            "AGGREGATE_FUNCTION_BOOL_OR" => Some(Self::BoolOr),
            "AGGREGATE_FUNCTION_FIRST" => Some(Self::First),
            "AGGREGATE_FUNCTION_COVARIANCE_SAMPLE" => Some(Self::CovarianceSample),
            "AGGREGATE_FUNCTION_COVARIANCE_POPULATION" => {
                Some(Self::CovariancePopulation)
            }
            "AGGREGATE_FUNCTION_CORRELATION" => Some(Self::Correlation),
            "AGGREGATE_FUNCTION_REGRESSION_SLOPE" => Some(Self::RegressionSlope),
            "AGGREGATE_FUNCTION_REGRESSION_INTERCEPT" => Some(Self::RegressionIntercept),
            "AGGREGATE_FUNCTION_REGRESSION_R2" => Some(Self::RegressionR2),
            "AGGREGATE_FUNCTION_REGRESSION_AVERAGE_X" => Some(Self::RegressionAverageX),
            "AGGREGATE_FUNCTION_REGRESSION_AVERAGE_Y" => Some(Self::RegressionAverageY),
            "AGGREGATE_FUNCTION_REGRESSION_SQUARES_X" => Some(Self::RegressionSquaresX),
            "AGGREGATE_FUNCTION_REGRESSION_SQUARES_Y" => Some(Self::RegressionSquaresY),
            "AGGREGATE_FUNCTION_REGRESSION_PRODUCTS" => Some(Self::RegressionProducts),
            "AGGREGATE_FUNCTION_BIT_AND" => Some(Self::BitAnd),
            "AGGREGATE_FUNCTION_BIT_OR" => Some(Self::BitOr),
            "AGGREGATE_FUNCTION_BIT_XOR" => Some(Self::BitXor),
            "AGGREGATE_FUNCTION_MEDIAN" => Some(Self::Median),
            "AGGREGATE_FUNCTION_QUANTILE" => Some(Self::Quantile),
            "AGGREGATE_FUNCTION_NTH" => Some(Self::Nth),
            "AGGREGATE_FUNCTION_JOIN_TEXT" => Some(Self::JoinText),
            "AGGREGATE_FUNCTION_COUNT_APPROXIMATE" => Some(Self::CountApproximate),
            "AGGREGATE_FUNCTION_QUANTILE_DISCRETE" => Some(Self::QuantileDiscrete),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Ranking {
    Unspecified = 0,
    RowNumber = 1,
    Rank = 2,
    DenseRank = 3,
    PercentRank = 4,
    CumeDist = 5,
}
impl Ranking {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "RANKING_UNSPECIFIED",
            Self::RowNumber => "RANKING_ROW_NUMBER",
            Self::Rank => "RANKING_RANK",
            Self::DenseRank => "RANKING_DENSE_RANK",
            Self::PercentRank => "RANKING_PERCENT_RANK",
            Self::CumeDist => "RANKING_CUME_DIST",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "RANKING_UNSPECIFIED" => Some(Self::Unspecified),
            "RANKING_ROW_NUMBER" => Some(Self::RowNumber),
            "RANKING_RANK" => Some(Self::Rank),
            "RANKING_DENSE_RANK" => Some(Self::DenseRank),
            "RANKING_PERCENT_RANK" => Some(Self::PercentRank),
            "RANKING_CUME_DIST" => Some(Self::CumeDist),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum FrameExclusion {
    Unspecified = 0,
    NoOthers = 1,
    CurrentRow = 2,
    Group = 3,
    Ties = 4,
}
impl FrameExclusion {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "FRAME_EXCLUSION_UNSPECIFIED",
            Self::NoOthers => "FRAME_EXCLUSION_NO_OTHERS",
            Self::CurrentRow => "FRAME_EXCLUSION_CURRENT_ROW",
            Self::Group => "FRAME_EXCLUSION_GROUP",
            Self::Ties => "FRAME_EXCLUSION_TIES",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "FRAME_EXCLUSION_UNSPECIFIED" => Some(Self::Unspecified),
            "FRAME_EXCLUSION_NO_OTHERS" => Some(Self::NoOthers),
            "FRAME_EXCLUSION_CURRENT_ROW" => Some(Self::CurrentRow),
            "FRAME_EXCLUSION_GROUP" => Some(Self::Group),
            "FRAME_EXCLUSION_TIES" => Some(Self::Ties),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum FrameUnit {
    Unspecified = 0,
    Rows = 1,
    Range = 2,
    Groups = 3,
}
impl FrameUnit {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "FRAME_UNIT_UNSPECIFIED",
            Self::Rows => "FRAME_UNIT_ROWS",
            Self::Range => "FRAME_UNIT_RANGE",
            Self::Groups => "FRAME_UNIT_GROUPS",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "FRAME_UNIT_UNSPECIFIED" => Some(Self::Unspecified),
            "FRAME_UNIT_ROWS" => Some(Self::Rows),
            "FRAME_UNIT_RANGE" => Some(Self::Range),
            "FRAME_UNIT_GROUPS" => Some(Self::Groups),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Overflow {
    Unspecified = 0,
    Wrap = 1,
    Error = 2,
    Null = 3,
}
impl Overflow {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "OVERFLOW_UNSPECIFIED",
            Self::Wrap => "OVERFLOW_WRAP",
            Self::Error => "OVERFLOW_ERROR",
            Self::Null => "OVERFLOW_NULL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "OVERFLOW_UNSPECIFIED" => Some(Self::Unspecified),
            "OVERFLOW_WRAP" => Some(Self::Wrap),
            "OVERFLOW_ERROR" => Some(Self::Error),
            "OVERFLOW_NULL" => Some(Self::Null),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Failure {
    Unspecified = 0,
    Error = 1,
    Null = 2,
}
impl Failure {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "FAILURE_UNSPECIFIED",
            Self::Error => "FAILURE_ERROR",
            Self::Null => "FAILURE_NULL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "FAILURE_UNSPECIFIED" => Some(Self::Unspecified),
            "FAILURE_ERROR" => Some(Self::Error),
            "FAILURE_NULL" => Some(Self::Null),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ArithmeticOperator {
    Unspecified = 0,
    Add = 1,
    Subtract = 2,
    Multiply = 3,
    Divide = 4,
    Remainder = 5,
}
impl ArithmeticOperator {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ARITHMETIC_OPERATOR_UNSPECIFIED",
            Self::Add => "ARITHMETIC_OPERATOR_ADD",
            Self::Subtract => "ARITHMETIC_OPERATOR_SUBTRACT",
            Self::Multiply => "ARITHMETIC_OPERATOR_MULTIPLY",
            Self::Divide => "ARITHMETIC_OPERATOR_DIVIDE",
            Self::Remainder => "ARITHMETIC_OPERATOR_REMAINDER",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ARITHMETIC_OPERATOR_UNSPECIFIED" => Some(Self::Unspecified),
            "ARITHMETIC_OPERATOR_ADD" => Some(Self::Add),
            "ARITHMETIC_OPERATOR_SUBTRACT" => Some(Self::Subtract),
            "ARITHMETIC_OPERATOR_MULTIPLY" => Some(Self::Multiply),
            "ARITHMETIC_OPERATOR_DIVIDE" => Some(Self::Divide),
            "ARITHMETIC_OPERATOR_REMAINDER" => Some(Self::Remainder),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Comparison {
    Unspecified = 0,
    Equal = 1,
    NotEqual = 2,
    Less = 3,
    LessOrEqual = 4,
    Greater = 5,
    GreaterOrEqual = 6,
}
impl Comparison {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "COMPARISON_UNSPECIFIED",
            Self::Equal => "COMPARISON_EQUAL",
            Self::NotEqual => "COMPARISON_NOT_EQUAL",
            Self::Less => "COMPARISON_LESS",
            Self::LessOrEqual => "COMPARISON_LESS_OR_EQUAL",
            Self::Greater => "COMPARISON_GREATER",
            Self::GreaterOrEqual => "COMPARISON_GREATER_OR_EQUAL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "COMPARISON_UNSPECIFIED" => Some(Self::Unspecified),
            "COMPARISON_EQUAL" => Some(Self::Equal),
            "COMPARISON_NOT_EQUAL" => Some(Self::NotEqual),
            "COMPARISON_LESS" => Some(Self::Less),
            "COMPARISON_LESS_OR_EQUAL" => Some(Self::LessOrEqual),
            "COMPARISON_GREATER" => Some(Self::Greater),
            "COMPARISON_GREATER_OR_EQUAL" => Some(Self::GreaterOrEqual),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Function {
    Unspecified = 0,
    Coalesce = 1,
    NullIf = 2,
    Extract = 3,
    Truncate = 4,
    Upper = 5,
    Lower = 6,
    Trim = 7,
    TrimStart = 8,
    TrimEnd = 9,
    CharLength = 10,
    OctetLength = 11,
    Substring = 12,
    Left = 13,
    Right = 14,
    Concat = 15,
    Replace = 16,
    Position = 17,
    StartsWith = 18,
    EndsWith = 19,
    Contains = 20,
    Reverse = 21,
    Abs = 22,
    Sign = 23,
    Round = 24,
    Floor = 25,
    Ceil = 26,
    SquareRoot = 27,
    Power = 28,
    Exp = 29,
    Ln = 30,
    Log10 = 31,
    Log2 = 32,
    Sin = 33,
    Cos = 34,
    Tan = 35,
    ArcTan = 36,
    Greatest = 37,
    Least = 38,
    Md5 = 39,
    Sha256 = 40,
    RegexpLike = 41,
    RegexpReplace = 42,
    RegexpMatch = 43,
    SplitPart = 44,
    PadStart = 45,
    PadEnd = 46,
    InitCap = 47,
    Repeat = 48,
    Translate = 49,
    CubeRoot = 50,
    ArcTan2 = 51,
    ToDate = 52,
    DateDiff = 53,
    BitAnd = 54,
    BitOr = 55,
    BitXor = 56,
    BitNot = 57,
    ShiftLeft = 58,
    ShiftRight = 59,
    SingleRow = 60,
}
impl Function {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "FUNCTION_UNSPECIFIED",
            Self::Coalesce => "FUNCTION_COALESCE",
            Self::NullIf => "FUNCTION_NULL_IF",
            Self::Extract => "FUNCTION_EXTRACT",
            Self::Truncate => "FUNCTION_TRUNCATE",
            Self::Upper => "FUNCTION_UPPER",
            Self::Lower => "FUNCTION_LOWER",
            Self::Trim => "FUNCTION_TRIM",
            Self::TrimStart => "FUNCTION_TRIM_START",
            Self::TrimEnd => "FUNCTION_TRIM_END",
            Self::CharLength => "FUNCTION_CHAR_LENGTH",
            Self::OctetLength => "FUNCTION_OCTET_LENGTH",
            Self::Substring => "FUNCTION_SUBSTRING",
            Self::Left => "FUNCTION_LEFT",
            Self::Right => "FUNCTION_RIGHT",
            Self::Concat => "FUNCTION_CONCAT",
            Self::Replace => "FUNCTION_REPLACE",
            Self::Position => "FUNCTION_POSITION",
            Self::StartsWith => "FUNCTION_STARTS_WITH",
            Self::EndsWith => "FUNCTION_ENDS_WITH",
            Self::Contains => "FUNCTION_CONTAINS",
            Self::Reverse => "FUNCTION_REVERSE",
            Self::Abs => "FUNCTION_ABS",
            Self::Sign => "FUNCTION_SIGN",
            Self::Round => "FUNCTION_ROUND",
            Self::Floor => "FUNCTION_FLOOR",
            Self::Ceil => "FUNCTION_CEIL",
            Self::SquareRoot => "FUNCTION_SQUARE_ROOT",
            Self::Power => "FUNCTION_POWER",
            Self::Exp => "FUNCTION_EXP",
            Self::Ln => "FUNCTION_LN",
            Self::Log10 => "FUNCTION_LOG10",
            Self::Log2 => "FUNCTION_LOG2",
            Self::Sin => "FUNCTION_SIN",
            Self::Cos => "FUNCTION_COS",
            Self::Tan => "FUNCTION_TAN",
            Self::ArcTan => "FUNCTION_ARC_TAN",
            Self::Greatest => "FUNCTION_GREATEST",
            Self::Least => "FUNCTION_LEAST",
            Self::Md5 => "FUNCTION_MD5",
            Self::Sha256 => "FUNCTION_SHA256",
            Self::RegexpLike => "FUNCTION_REGEXP_LIKE",
            Self::RegexpReplace => "FUNCTION_REGEXP_REPLACE",
            Self::RegexpMatch => "FUNCTION_REGEXP_MATCH",
            Self::SplitPart => "FUNCTION_SPLIT_PART",
            Self::PadStart => "FUNCTION_PAD_START",
            Self::PadEnd => "FUNCTION_PAD_END",
            Self::InitCap => "FUNCTION_INIT_CAP",
            Self::Repeat => "FUNCTION_REPEAT",
            Self::Translate => "FUNCTION_TRANSLATE",
            Self::CubeRoot => "FUNCTION_CUBE_ROOT",
            Self::ArcTan2 => "FUNCTION_ARC_TAN2",
            Self::ToDate => "FUNCTION_TO_DATE",
            Self::DateDiff => "FUNCTION_DATE_DIFF",
            Self::BitAnd => "FUNCTION_BIT_AND",
            Self::BitOr => "FUNCTION_BIT_OR",
            Self::BitXor => "FUNCTION_BIT_XOR",
            Self::BitNot => "FUNCTION_BIT_NOT",
            Self::ShiftLeft => "FUNCTION_SHIFT_LEFT",
            Self::ShiftRight => "FUNCTION_SHIFT_RIGHT",
            Self::SingleRow => "FUNCTION_SINGLE_ROW",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "FUNCTION_UNSPECIFIED" => Some(Self::Unspecified),
            "FUNCTION_COALESCE" => Some(Self::Coalesce),
            "FUNCTION_NULL_IF" => Some(Self::NullIf),
            "FUNCTION_EXTRACT" => Some(Self::Extract),
            "FUNCTION_TRUNCATE" => Some(Self::Truncate),
            "FUNCTION_UPPER" => Some(Self::Upper),
            "FUNCTION_LOWER" => Some(Self::Lower),
            "FUNCTION_TRIM" => Some(Self::Trim),
            "FUNCTION_TRIM_START" => Some(Self::TrimStart),
            "FUNCTION_TRIM_END" => Some(Self::TrimEnd),
            "FUNCTION_CHAR_LENGTH" => Some(Self::CharLength),
            "FUNCTION_OCTET_LENGTH" => Some(Self::OctetLength),
            "FUNCTION_SUBSTRING" => Some(Self::Substring),
            "FUNCTION_LEFT" => Some(Self::Left),
            "FUNCTION_RIGHT" => Some(Self::Right),
            "FUNCTION_CONCAT" => Some(Self::Concat),
            "FUNCTION_REPLACE" => Some(Self::Replace),
            "FUNCTION_POSITION" => Some(Self::Position),
            "FUNCTION_STARTS_WITH" => Some(Self::StartsWith),
            "FUNCTION_ENDS_WITH" => Some(Self::EndsWith),
            "FUNCTION_CONTAINS" => Some(Self::Contains),
            "FUNCTION_REVERSE" => Some(Self::Reverse),
            "FUNCTION_ABS" => Some(Self::Abs),
            "FUNCTION_SIGN" => Some(Self::Sign),
            "FUNCTION_ROUND" => Some(Self::Round),
            "FUNCTION_FLOOR" => Some(Self::Floor),
            "FUNCTION_CEIL" => Some(Self::Ceil),
            "FUNCTION_SQUARE_ROOT" => Some(Self::SquareRoot),
            "FUNCTION_POWER" => Some(Self::Power),
            "FUNCTION_EXP" => Some(Self::Exp),
            "FUNCTION_LN" => Some(Self::Ln),
            "FUNCTION_LOG10" => Some(Self::Log10),
            "FUNCTION_LOG2" => Some(Self::Log2),
            "FUNCTION_SIN" => Some(Self::Sin),
            "FUNCTION_COS" => Some(Self::Cos),
            "FUNCTION_TAN" => Some(Self::Tan),
            "FUNCTION_ARC_TAN" => Some(Self::ArcTan),
            "FUNCTION_GREATEST" => Some(Self::Greatest),
            "FUNCTION_LEAST" => Some(Self::Least),
            "FUNCTION_MD5" => Some(Self::Md5),
            "FUNCTION_SHA256" => Some(Self::Sha256),
            "FUNCTION_REGEXP_LIKE" => Some(Self::RegexpLike),
            "FUNCTION_REGEXP_REPLACE" => Some(Self::RegexpReplace),
            "FUNCTION_REGEXP_MATCH" => Some(Self::RegexpMatch),
            "FUNCTION_SPLIT_PART" => Some(Self::SplitPart),
            "FUNCTION_PAD_START" => Some(Self::PadStart),
            "FUNCTION_PAD_END" => Some(Self::PadEnd),
            "FUNCTION_INIT_CAP" => Some(Self::InitCap),
            "FUNCTION_REPEAT" => Some(Self::Repeat),
            "FUNCTION_TRANSLATE" => Some(Self::Translate),
            "FUNCTION_CUBE_ROOT" => Some(Self::CubeRoot),
            "FUNCTION_ARC_TAN2" => Some(Self::ArcTan2),
            "FUNCTION_TO_DATE" => Some(Self::ToDate),
            "FUNCTION_DATE_DIFF" => Some(Self::DateDiff),
            "FUNCTION_BIT_AND" => Some(Self::BitAnd),
            "FUNCTION_BIT_OR" => Some(Self::BitOr),
            "FUNCTION_BIT_XOR" => Some(Self::BitXor),
            "FUNCTION_BIT_NOT" => Some(Self::BitNot),
            "FUNCTION_SHIFT_LEFT" => Some(Self::ShiftLeft),
            "FUNCTION_SHIFT_RIGHT" => Some(Self::ShiftRight),
            "FUNCTION_SINGLE_ROW" => Some(Self::SingleRow),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DateField {
    Unspecified = 0,
    Year = 1,
    Quarter = 2,
    Month = 3,
    Week = 4,
    Day = 5,
    DayOfWeek = 6,
    DayOfYear = 7,
    Hour = 8,
    Minute = 9,
    Second = 10,
}
impl DateField {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "DATE_FIELD_UNSPECIFIED",
            Self::Year => "DATE_FIELD_YEAR",
            Self::Quarter => "DATE_FIELD_QUARTER",
            Self::Month => "DATE_FIELD_MONTH",
            Self::Week => "DATE_FIELD_WEEK",
            Self::Day => "DATE_FIELD_DAY",
            Self::DayOfWeek => "DATE_FIELD_DAY_OF_WEEK",
            Self::DayOfYear => "DATE_FIELD_DAY_OF_YEAR",
            Self::Hour => "DATE_FIELD_HOUR",
            Self::Minute => "DATE_FIELD_MINUTE",
            Self::Second => "DATE_FIELD_SECOND",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "DATE_FIELD_UNSPECIFIED" => Some(Self::Unspecified),
            "DATE_FIELD_YEAR" => Some(Self::Year),
            "DATE_FIELD_QUARTER" => Some(Self::Quarter),
            "DATE_FIELD_MONTH" => Some(Self::Month),
            "DATE_FIELD_WEEK" => Some(Self::Week),
            "DATE_FIELD_DAY" => Some(Self::Day),
            "DATE_FIELD_DAY_OF_WEEK" => Some(Self::DayOfWeek),
            "DATE_FIELD_DAY_OF_YEAR" => Some(Self::DayOfYear),
            "DATE_FIELD_HOUR" => Some(Self::Hour),
            "DATE_FIELD_MINUTE" => Some(Self::Minute),
            "DATE_FIELD_SECOND" => Some(Self::Second),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Simple {
    Unspecified = 0,
    Null = 1,
    Boolean = 2,
    Int8 = 3,
    Int16 = 4,
    Int32 = 5,
    Int64 = 6,
    Uint8 = 7,
    Uint16 = 8,
    Uint32 = 9,
    Uint64 = 10,
    Float32 = 11,
    Float64 = 12,
    Date = 13,
    Interval = 14,
    String = 15,
    Binary = 16,
}
impl Simple {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "SIMPLE_UNSPECIFIED",
            Self::Null => "SIMPLE_NULL",
            Self::Boolean => "SIMPLE_BOOLEAN",
            Self::Int8 => "SIMPLE_INT8",
            Self::Int16 => "SIMPLE_INT16",
            Self::Int32 => "SIMPLE_INT32",
            Self::Int64 => "SIMPLE_INT64",
            Self::Uint8 => "SIMPLE_UINT8",
            Self::Uint16 => "SIMPLE_UINT16",
            Self::Uint32 => "SIMPLE_UINT32",
            Self::Uint64 => "SIMPLE_UINT64",
            Self::Float32 => "SIMPLE_FLOAT32",
            Self::Float64 => "SIMPLE_FLOAT64",
            Self::Date => "SIMPLE_DATE",
            Self::Interval => "SIMPLE_INTERVAL",
            Self::String => "SIMPLE_STRING",
            Self::Binary => "SIMPLE_BINARY",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "SIMPLE_UNSPECIFIED" => Some(Self::Unspecified),
            "SIMPLE_NULL" => Some(Self::Null),
            "SIMPLE_BOOLEAN" => Some(Self::Boolean),
            "SIMPLE_INT8" => Some(Self::Int8),
            "SIMPLE_INT16" => Some(Self::Int16),
            "SIMPLE_INT32" => Some(Self::Int32),
            "SIMPLE_INT64" => Some(Self::Int64),
            "SIMPLE_UINT8" => Some(Self::Uint8),
            "SIMPLE_UINT16" => Some(Self::Uint16),
            "SIMPLE_UINT32" => Some(Self::Uint32),
            "SIMPLE_UINT64" => Some(Self::Uint64),
            "SIMPLE_FLOAT32" => Some(Self::Float32),
            "SIMPLE_FLOAT64" => Some(Self::Float64),
            "SIMPLE_DATE" => Some(Self::Date),
            "SIMPLE_INTERVAL" => Some(Self::Interval),
            "SIMPLE_STRING" => Some(Self::String),
            "SIMPLE_BINARY" => Some(Self::Binary),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum TimeUnit {
    Unspecified = 0,
    Second = 1,
    Millisecond = 2,
    Microsecond = 3,
    Nanosecond = 4,
}
impl TimeUnit {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "TIME_UNIT_UNSPECIFIED",
            Self::Second => "TIME_UNIT_SECOND",
            Self::Millisecond => "TIME_UNIT_MILLISECOND",
            Self::Microsecond => "TIME_UNIT_MICROSECOND",
            Self::Nanosecond => "TIME_UNIT_NANOSECOND",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TIME_UNIT_UNSPECIFIED" => Some(Self::Unspecified),
            "TIME_UNIT_SECOND" => Some(Self::Second),
            "TIME_UNIT_MILLISECOND" => Some(Self::Millisecond),
            "TIME_UNIT_MICROSECOND" => Some(Self::Microsecond),
            "TIME_UNIT_NANOSECOND" => Some(Self::Nanosecond),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Null {
    Unspecified = 0,
    Value = 1,
}
impl Null {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "NULL_UNSPECIFIED",
            Self::Value => "NULL_VALUE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "NULL_UNSPECIFIED" => Some(Self::Unspecified),
            "NULL_VALUE" => Some(Self::Value),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Jump {
    Unspecified = 0,
    Break = 1,
    Continue = 2,
}
impl Jump {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "JUMP_UNSPECIFIED",
            Self::Break => "JUMP_BREAK",
            Self::Continue => "JUMP_CONTINUE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "JUMP_UNSPECIFIED" => Some(Self::Unspecified),
            "JUMP_BREAK" => Some(Self::Break),
            "JUMP_CONTINUE" => Some(Self::Continue),
            _ => None,
        }
    }
}
