//! Reads user functions.

use tandem_column::Result;

use super::{Parser, token::Token};
use crate::{Local, Slot, Statement, UserFunction};

impl Parser {
    /// Reads a function behind its number.
    pub(super) fn function(&mut self) -> Result<UserFunction> {
        let name = self.name()?;
        let mut locals = self.list(Parser::local)?;
        let parameters = locals.len();
        self.expect("returns")?;
        let returns = self.kind()?;
        if self.accept("locals") {
            locals.extend(self.list(Parser::local)?);
        }
        let mut function = UserFunction { name, parameters, locals, returns, body: vec![] };
        let slots = function.slots();
        function.body = self.block(&slots)?;
        self.expect("end")?;
        Ok(function)
    }

    /// Reads a local's name and type.
    fn local(&mut self) -> Result<Local> {
        let name = self.name()?;
        self.expect(":")?;
        Ok(Local { name, kind: self.kind()? })
    }

    /// Reads statements up to `end` or `else`.
    fn block(&mut self, slots: &[Slot]) -> Result<Vec<Statement>> {
        let mut body = Vec::new();
        while !matches!(self.peek(), Token::Word(word) if word == "end" || word == "else") {
            body.push(self.nested(|parser| parser.statement(slots))?);
        }
        Ok(body)
    }

    /// Reads a statement.
    fn statement(&mut self, slots: &[Slot]) -> Result<Statement> {
        let word = self.word("a statement")?;
        Ok(match &word[..] {
            "set" => {
                let local = self.slot()?;
                self.expect("=")?;
                Statement::Assign(local, self.expr(slots, 0)?)
            }
            "resize" | "store" => {
                let list = self.slot()?;
                self.expect(",")?;
                let first = self.expr(slots, 0)?;
                self.expect(",")?;
                let second = self.expr(slots, 0)?;
                match &word[..] {
                    "resize" => Statement::Resize { list, length: first, fill: second },
                    _ => Statement::Store { list, index: first, value: second },
                }
            }
            "if" => {
                let condition = self.expr(slots, 0)?;
                let then = self.block(slots)?;
                let otherwise = if self.accept("else") { self.block(slots)? } else { vec![] };
                self.expect("end")?;
                Statement::If { condition, then, otherwise }
            }
            "while" => {
                let condition = self.expr(slots, 0)?;
                let body = self.block(slots)?;
                self.expect("end")?;
                Statement::While { condition, body }
            }
            "for" => {
                let variable = self.slot()?;
                self.expect("from")?;
                let from = self.expr(slots, 0)?;
                self.expect("to")?;
                let to = self.expr(slots, 0)?;
                let body = self.block(slots)?;
                self.expect("end")?;
                Statement::For { variable, from, to, body }
            }
            "break" => Statement::Break,
            "continue" => Statement::Continue,
            "return" => Statement::Return(self.expr(slots, 0)?),
            _ => return self.expected(&format!("a statement, which {word} is not, before")),
        })
    }
}
