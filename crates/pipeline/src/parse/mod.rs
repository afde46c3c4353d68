//! Reads the exact text form that [`crate::print`] writes.
//!
//! Recursive descent over the words of the text; line breaks mean nothing. Nesting is bounded. What is read need not be
//! well-formed: [`crate::verify()`] tells.

mod expression;
mod function;
mod sink;
mod token;

use std::sync::Arc;

use tandem_column::{Error, Result, TimeUnit, Type};

use crate::{Expr, JoinKind, Pipeline, Probe, Query, Sink, Slot, SlotId, Source, Step};
use token::Token;

/// Reads a query.
///
/// # Errors
/// If the text is not one: the sentence names the line and what was expected.
pub fn parse(text: &str) -> Result<Query> {
    let query = Query { functions: vec![], pipelines: vec![] };
    let mut parser = Parser { tokens: token::tokens(text)?, at: 0, depth: 0, query };
    while parser.accept("function") {
        let index: usize = parser.number()?;
        parser.require(index == parser.query.functions.len(), "functions numbered in order")?;
        let function = parser.function()?;
        parser.query.functions.push(Arc::new(function));
    }
    while parser.accept("pipeline") {
        let index: usize = parser.number()?;
        parser.require(index == parser.query.pipelines.len(), "pipelines numbered in order")?;
        let pipeline = parser.pipeline()?;
        parser.query.pipelines.push(pipeline);
    }
    parser.require(*parser.peek() == Token::End, "the end, a function or a pipeline")?;
    Ok(parser.query)
}

impl std::str::FromStr for Query {
    type Err = Error;

    fn from_str(text: &str) -> Result<Query> {
        parse(text)
    }
}

/// A reader's place in the text, and what has been read so far.
struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    query: Query,
}

impl Parser {
    /// Returns the next word.
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    /// Returns the word behind the next.
    fn peek_second(&self) -> &Token {
        self.tokens.get(self.at + 1).map_or(&Token::End, |(token, _)| token)
    }

    /// Takes the next word.
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    /// Makes the error of something else than what was expected.
    fn expected<T>(&self, what: &str) -> Result<T> {
        let line = self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line);
        let found = match self.peek() {
            Token::Word(word) | Token::Number(word) => word.clone(),
            Token::Name(name) | Token::Text(name) => format!("{name:?}"),
            Token::Bytes(_) => "bytes".to_owned(),
            Token::Slot(slot) => format!("${slot}"),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::End => "the end".to_owned(),
        };
        Err(Error::input(format!("line {line}: expected {what}, found {found}")))
    }

    /// Requires a condition.
    fn require(&self, condition: bool, what: &str) -> Result<()> {
        if condition { Ok(()) } else { self.expected(what) }
    }

    /// Takes a word or symbol if it is next.
    fn accept(&mut self, wanted: &str) -> bool {
        let found = match self.peek() {
            Token::Word(word) => word == wanted,
            Token::Symbol(symbol) => *symbol == wanted,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    /// Requires a word or symbol, or several.
    fn expect(&mut self, wanted: &str) -> Result<()> {
        for word in wanted.split(' ') {
            if !self.accept(word) {
                return self.expected(word);
            }
        }
        Ok(())
    }

    /// Reads a bare word.
    fn word(&mut self, what: &str) -> Result<String> {
        match self.peek().clone() {
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    /// Reads a name, bare or in double quotes.
    fn name(&mut self) -> Result<String> {
        match self.peek().clone() {
            Token::Word(name) | Token::Name(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => self.expected("a name"),
        }
    }

    /// Reads a number, with its sign.
    fn number<N: std::str::FromStr>(&mut self) -> Result<N> {
        let sign = if self.accept("-") { "-" } else { "" };
        if let Token::Number(digits) = self.peek()
            && let Ok(number) = format!("{sign}{digits}").parse()
        {
            self.at += 1;
            return Ok(number);
        }
        self.expected("a number")
    }

    /// Reads a slot.
    fn slot(&mut self) -> Result<SlotId> {
        match *self.peek() {
            Token::Slot(slot) => {
                self.at += 1;
                Ok(slot)
            }
            _ => self.expected("a slot"),
        }
    }

    /// Reads items between parentheses, with commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Parser) -> Result<T>) -> Result<Vec<T>> {
        self.expect("(")?;
        let mut items = Vec::new();
        if self.accept(")") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.accept(")") {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    /// Reads slots between parentheses.
    fn slots(&mut self) -> Result<Vec<SlotId>> {
        self.list(Parser::slot)
    }

    /// Reads expressions between parentheses.
    fn exprs(&mut self, slots: &[Slot]) -> Result<Vec<Expr>> {
        self.list(|parser| parser.expr(slots, 0))
    }

    /// Reads a type.
    fn kind(&mut self) -> Result<Type> {
        let name = self.word("a type")?;
        Ok(match &name[..] {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int8" => Type::Int8,
            "int16" => Type::Int16,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "uint8" => Type::UInt8,
            "uint16" => Type::UInt16,
            "uint32" => Type::UInt32,
            "uint64" => Type::UInt64,
            "float32" => Type::Float32,
            "float64" => Type::Float64,
            "date" => Type::Date,
            "interval" => Type::Interval,
            "string" => Type::String,
            "binary" => Type::Binary,
            "decimal" => {
                self.expect("(")?;
                let precision = self.number()?;
                self.expect(",")?;
                let scale = self.number()?;
                self.expect(")")?;
                Type::Decimal { precision, scale }
            }
            "time" => {
                self.expect("(")?;
                let unit = self.unit()?;
                self.expect(")")?;
                Type::Time(unit)
            }
            "timestamp" => {
                self.expect("(")?;
                let unit = self.unit()?;
                let zone = match self.accept(",") {
                    true => match self.next() {
                        Token::Text(zone) => Some(zone.into()),
                        _ => return self.expected("a time zone in quotes"),
                    },
                    false => None,
                };
                self.expect(")")?;
                Type::Timestamp(unit, zone)
            }
            "list" => {
                self.expect("(")?;
                let of = self.nested(Parser::kind)?;
                self.expect(")")?;
                Type::List(Arc::new(of))
            }
            _ => return self.expected(&format!("a type, which {name} is not,")),
        })
    }

    /// Reads a unit of time.
    fn unit(&mut self) -> Result<TimeUnit> {
        let name = self.word("a unit of time")?;
        Ok(match &name[..] {
            "s" => TimeUnit::Second,
            "ms" => TimeUnit::Millisecond,
            "us" => TimeUnit::Microsecond,
            "ns" => TimeUnit::Nanosecond,
            _ => return self.expected("s, ms, us or ns"),
        })
    }

    /// Reads something one level deeper, if that is not too deep.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Parser) -> Result<T>) -> Result<T> {
        self.require(self.depth < crate::verify::DEPTH_LIMIT, "less nesting")?;
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Reads a slot's name, type and nullability, and the number behind `@`, if there is one.
    fn declaration(&mut self) -> Result<(Slot, Option<usize>)> {
        let name = self.name()?;
        let column = if self.accept("@") { Some(self.number()?) } else { None };
        self.expect(":")?;
        let kind = self.kind()?;
        let nullable = self.accept("?");
        Ok((Slot { name, kind, nullable }, column))
    }

    /// Reads a pipeline behind its number.
    fn pipeline(&mut self) -> Result<Pipeline> {
        let (source, mut slots) = self.source()?;
        let mut steps = Vec::new();
        loop {
            if self.accept("filter") {
                steps.push(Step::Filter(self.expr(&slots, 0)?));
            } else if self.accept("let") {
                steps.push(self.bindings(&mut slots)?);
            } else if self.accept("probe") {
                steps.push(Step::Probe(self.probe(&mut slots)?));
            } else {
                let sink: Sink = self.sink(&slots)?;
                return Ok(Pipeline { source, steps, sink, slots });
            }
        }
    }

    /// Reads a source and the slots it defines.
    fn source(&mut self) -> Result<(Source, Vec<Slot>)> {
        let mut source = if self.accept("scan") {
            Source::Table { table: self.name()?, columns: vec![] }
        } else if self.accept("result") {
            let mut pipelines = vec![self.number()?];
            while self.accept(",") {
                pipelines.push(self.number()?);
            }
            Source::Result { pipelines }
        } else if self.accept("block") {
            Source::Block { name: self.name()? }
        } else if self.accept("values") {
            Source::Values { rows: vec![] }
        } else {
            return self.expected("scan, result, block or values");
        };
        self.expect("[")?;
        let mut slots = Vec::new();
        while !self.accept("]") {
            if !slots.is_empty() {
                self.expect(",")?;
            }
            let (slot, column) = self.declaration()?;
            slots.push(slot);
            if let (Source::Table { columns, .. }, Some(column)) = (&mut source, column) {
                columns.push(column);
            }
        }
        if let Source::Values { rows } = &mut source
            && *self.peek() == Token::Symbol("(")
        {
            loop {
                rows.push(self.list(Parser::value)?);
                if !self.accept(",") {
                    break;
                }
            }
        }
        Ok((source, slots))
    }

    /// Reads the slots that a step adds.
    fn bindings(&mut self, slots: &mut Vec<Slot>) -> Result<Step> {
        let mut exprs = Vec::new();
        let mut added = Vec::new();
        while matches!(self.peek(), Token::Slot(_)) {
            let slot = self.slot()?;
            self.require(slot == slots.len() + added.len(), "slots numbered in order")?;
            added.push(self.declaration()?.0);
            self.expect("=")?;
            exprs.push(self.expr(slots, 0)?);
            if !self.accept(",") {
                break;
            }
        }
        slots.extend(added);
        Ok(Step::Let(exprs))
    }

    /// Reads a probe.
    fn probe(&mut self, slots: &mut Vec<Slot>) -> Result<Probe> {
        let kind = match JoinKind::from_name(&self.word("a kind of join")?) {
            Some(kind) => kind,
            None => return self.expected("a kind of join before"),
        };
        let build: usize = self.number()?;
        self.expect("on")?;
        let keys = self.exprs(slots)?;
        let (mut null_equals_null, mut null_aware) = (false, false);
        while self.accept("null") {
            match self.accept("aware") {
                true => null_aware = true,
                false => {
                    self.expect("equals null")?;
                    null_equals_null = true;
                }
            }
        }
        let residual = match self.accept("where") {
            true => {
                let scope = self.query.residual_scope(slots, slots.len(), build);
                Some(self.expr(&scope, 0)?)
            }
            false => None,
        };
        let mut adds = Vec::new();
        if self.accept("adds") {
            let first = slots.len();
            let added = self.list(|parser| {
                let slot = parser.slot()?;
                let (declared, column) = parser.declaration()?;
                Ok((slot, declared, column))
            })?;
            for (position, (slot, declared, column)) in added.into_iter().enumerate() {
                self.require(slot == first + position, "slots numbered in order before")?;
                slots.push(declared);
                adds.extend(column);
            }
        }
        Ok(Probe { build, kind, keys, residual, adds, null_equals_null, null_aware })
    }
}
