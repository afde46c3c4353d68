//! Reads sinks.

use tandem_column::Result;

use super::{Parser, token::Token};
use crate::{
    Aggregate, AggregateFunction, FrameBound, FrameExclusion, FrameUnit, Overflow, Phase, Sink, Slot, SortKey, Value,
    Window, WindowFrame, WindowFunction,
};

impl Parser {
    /// Reads a sink.
    pub(super) fn sink(&mut self, slots: &[Slot]) -> Result<Sink> {
        if self.accept("build") {
            self.expect("keys")?;
            let keys = self.exprs(slots)?;
            self.expect("payload")?;
            Ok(Sink::Build { keys, payload: self.slots()? })
        } else if self.accept("aggregate") {
            let phase = if self.accept("partial") {
                Phase::Partial
            } else if self.accept("final") {
                Phase::Final
            } else {
                Phase::Single
            };
            self.expect("by")?;
            let keys = self.slots()?;
            Ok(Sink::Aggregate { keys, aggregates: self.list(Parser::aggregate)?, phase })
        } else if self.accept("sort") {
            self.expect("by")?;
            let keys = self.list(Parser::sort_key)?;
            let (skip, fetch) = self.limit()?;
            self.expect("output")?;
            Ok(Sink::Sort { keys, skip, fetch, output: self.slots()? })
        } else if self.accept("window") {
            self.expect("by")?;
            let partition = self.slots()?;
            self.expect("order")?;
            let order = self.list(Parser::sort_key)?;
            self.expect("compute")?;
            let functions = self.list(Parser::window)?;
            let fetch = if self.accept("fetch") { Some(self.number()?) } else { None };
            self.expect("output")?;
            Ok(Sink::Window { partition, order, functions, fetch, output: self.slots()? })
        } else if self.accept("partition") {
            self.expect("by")?;
            let keys = self.exprs(slots)?;
            self.expect("into")?;
            let parts = self.number()?;
            self.expect("output")?;
            Ok(Sink::Partition { keys, parts, output: self.slots()? })
        } else if self.accept("materialize") {
            let (skip, fetch) = self.limit()?;
            self.expect("output")?;
            Ok(Sink::Materialize { skip, fetch, output: self.slots()? })
        } else {
            self.expected("a step or a sink")
        }
    }

    /// Reads how many rows are skipped and fetched.
    fn limit(&mut self) -> Result<(usize, Option<usize>)> {
        let skip = if self.accept("skip") { self.number()? } else { 0 };
        let fetch = if self.accept("fetch") { Some(self.number()?) } else { None };
        Ok((skip, fetch))
    }

    /// Reads a sort key.
    fn sort_key(&mut self) -> Result<SortKey> {
        let slot = self.slot()?;
        let descending = self.accept("desc");
        let nulls_first = self.accept("nulls");
        if nulls_first {
            self.expect("first")?;
        }
        Ok(SortKey { slot, descending, nulls_first })
    }

    /// Reads an aggregate.
    fn aggregate(&mut self) -> Result<Aggregate> {
        let Some(function) = AggregateFunction::from_name(&self.word("an aggregate")?) else {
            return self.expected("an aggregate before");
        };
        self.expect("(")?;
        let distinct = self.accept("distinct");
        let argument = if matches!(self.peek(), Token::Slot(_)) { Some(self.slot()?) } else { None };
        let (mut second, mut parameter) = (None, Value::Null);
        while self.accept(",") {
            match self.peek() {
                Token::Slot(_) => second = Some(self.slot()?),
                _ => parameter = self.value()?,
            }
        }
        let order = if self.accept("order") { self.list(Parser::sort_key)? } else { Vec::new() };
        let filter = if self.accept("where") { Some(self.slot()?) } else { None };
        self.expect(")")?;
        self.expect(":")?;
        let kind = self.kind()?;
        let overflow = self.overflow()?.unwrap_or(Overflow::Error);
        Ok(Aggregate { function, argument, second, parameter, order, distinct, filter, kind, overflow })
    }

    /// Reads a window function and its type.
    fn window(&mut self) -> Result<Window> {
        let function = if self.accept("row_number") {
            self.expect("( )")?;
            WindowFunction::RowNumber
        } else if self.accept("rank") {
            self.expect("( )")?;
            WindowFunction::Rank
        } else if self.accept("dense_rank") {
            self.expect("( )")?;
            WindowFunction::DenseRank
        } else if self.accept("lag") {
            self.expect("(")?;
            let slot = self.slot()?;
            self.expect(",")?;
            let offset = self.number()?;
            let default = if self.accept(",") { Some(self.slot()?) } else { None };
            self.expect(")")?;
            WindowFunction::Lag { slot, offset, default, ignore_nulls: self.ignore_nulls()? }
        } else if self.accept("percent_rank") {
            self.expect("( )")?;
            WindowFunction::PercentRank
        } else if self.accept("cume_dist") {
            self.expect("( )")?;
            WindowFunction::CumeDist
        } else if self.accept("ntile") {
            self.expect("(")?;
            let buckets = self.number()?;
            self.expect(")")?;
            WindowFunction::Ntile { buckets }
        } else if self.accept("nth") {
            self.expect("(")?;
            let slot = self.slot()?;
            self.expect(",")?;
            let place = self.number()?;
            self.expect(")")?;
            let ignore_nulls = self.ignore_nulls()?;
            WindowFunction::Nth { slot, place, frame: self.frame()?, ignore_nulls }
        } else {
            WindowFunction::Aggregate { aggregate: self.aggregate()?, frame: self.frame()? }
        };
        self.expect("as")?;
        Ok(Window { function, kind: self.kind()? })
    }

    /// Tells whether rows without a value do not count.
    fn ignore_nulls(&mut self) -> Result<bool> {
        let ignores = self.accept("ignore");
        if ignores {
            self.expect("nulls")?;
        }
        Ok(ignores)
    }

    /// Reads a frame.
    fn frame(&mut self) -> Result<WindowFrame> {
        let unit = if self.accept("range") {
            FrameUnit::Range
        } else if self.accept("groups") {
            FrameUnit::Groups
        } else {
            self.expect("rows")?;
            FrameUnit::Rows
        };
        let start = self.bound()?;
        self.expect("to")?;
        let end = self.bound()?;
        let exclusion = if !self.accept("exclude") {
            FrameExclusion::NoOthers
        } else if self.accept("current") {
            FrameExclusion::CurrentRow
        } else if self.accept("group") {
            FrameExclusion::Group
        } else {
            self.expect("ties")?;
            FrameExclusion::Ties
        };
        Ok(WindowFrame { unit, start, end, exclusion })
    }

    /// Reads one end of a frame.
    fn bound(&mut self) -> Result<FrameBound> {
        if self.accept("unbounded") {
            Ok(FrameBound::Unbounded)
        } else if matches!(self.peek(), Token::Slot(_)) {
            self.slot().map(FrameBound::Value)
        } else {
            self.number().map(FrameBound::At)
        }
    }
}
