//! User functions: statements over locals.

use std::sync::Arc;

use tandem_column::{Error, Result, Type};

use super::Evaluator;
use crate::{Expr, Slot, SlotId, Statement, UserFunction, Value};

/// Functions that may be active at once.
const DEPTH_LIMIT: usize = 64;

/// Elements that lists may get during a call for one row, in all: 32 bytes each.
const LIST_LIMIT: usize = 1 << 22;

/// Bytes that a text in a local may have: one that doubles in a loop would soon fill all memory.
const TEXT_LIMIT: usize = 16 << 20;

/// Where a statement leads.
enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

/// The locals of one active call.
struct CallFrame<'a> {
    evaluator: &'a Evaluator<'a>,
    function: &'a UserFunction,
    slots: Vec<Slot>,
    values: Vec<Value>,
}

/// Calls a user function.
///
/// # Errors
/// If it fails, runs out of steps, or grows a list too long.
pub(super) fn call(evaluator: &Evaluator<'_>, function: usize, arguments: Vec<Value>) -> Result<Value> {
    let Some(function) = evaluator.functions.get(function) else {
        return Err(Error::internal(format!("there is no user function {function}")));
    };
    if evaluator.depth.get() >= DEPTH_LIMIT {
        return Err(Error::exhausted(format!(
            "user functions call each other too deeply: {} is call {DEPTH_LIMIT}",
            function.name
        )));
    }
    let mut values = arguments;
    values.extend(function.locals.iter().skip(values.len()).map(|local| match local.kind {
        Type::List(_) => Value::List(vec![].into()),
        _ => Value::Null,
    }));
    let slots = function.slots();
    if evaluator.depth.get() == 0 {
        // The lists of the row before are gone.
        evaluator.elements.set(0);
    }
    evaluator.depth.set(evaluator.depth.get() + 1);
    let flow = CallFrame { evaluator, function, slots, values }.run(&function.body);
    evaluator.depth.set(evaluator.depth.get() - 1);
    match flow? {
        Flow::Return(value) => Ok(value),
        Flow::Next | Flow::Break | Flow::Continue => Ok(Value::Null),
    }
}

/// Makes the error of an index outside a list.
pub(super) fn out_of_range(index: i128, length: usize) -> Error {
    Error::input(format!("list index out of range in a user function: {index} of {length} elements"))
}

/// Takes a new list's elements off the limit.
fn take_elements(evaluator: &Evaluator<'_>, function: &UserFunction, length: usize) -> Result<()> {
    let all = evaluator.elements.get().saturating_add(length);
    evaluator.elements.set(all);
    match all > LIST_LIMIT {
        true => Err(Error::exhausted(format!(
            "the lists of a user function got over {LIST_LIMIT} elements: make fewer or shorter ones in {}",
            function.name
        ))),
        false => Ok(()),
    }
}

impl CallFrame<'_> {
    /// Executes statements until one leads elsewhere.
    fn run(&mut self, body: &[Statement]) -> Result<Flow> {
        for statement in body {
            match self.statement(statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    /// Takes one step off the limit.
    fn step(&self) -> Result<()> {
        match self.evaluator.steps.get().checked_sub(1) {
            Some(left) => {
                self.evaluator.steps.set(left);
                Ok(())
            }
            None => Err(Error::exhausted(format!(
                "a user function ran over {} steps: bound the loops of {}",
                super::STEP_LIMIT,
                self.function.name
            ))),
        }
    }

    /// Evaluates an expression over the locals.
    fn value(&self, expr: &Expr) -> Result<Value> {
        self.evaluator.evaluate(expr, &self.values, &self.slots)
    }

    /// Sets a local.
    fn set(&mut self, local: SlotId, value: Value) -> Result<()> {
        let bytes = match &value {
            Value::String(text) => text.len(),
            Value::Binary(bytes) => bytes.len(),
            _ => 0,
        };
        if bytes > TEXT_LIMIT {
            return Err(Error::exhausted(format!(
                "a text of a user function has over {} MB: make shorter ones in {}",
                TEXT_LIMIT >> 20,
                self.function.name
            )));
        }
        let place = self.values.get_mut(local).ok_or_else(|| Error::internal(format!("there is no local ${local}")))?;
        *place = value;
        Ok(())
    }

    /// Executes one statement.
    fn statement(&mut self, statement: &Statement) -> Result<Flow> {
        self.step()?;
        match statement {
            Statement::Assign(local, expr) => {
                let value = self.value(expr)?;
                self.set(*local, value)?;
            }
            Statement::Resize { list, length, fill } => {
                let (length, fill) = (self.value(length)?, self.value(fill)?);
                let length = length.as_integer().unwrap_or(0);
                let length = usize::try_from(length).map_err(|_| {
                    Error::input(format!("a list of a user function has no or more elements, not {length}"))
                })?;
                take_elements(self.evaluator, self.function, length)?;
                self.set(*list, Value::List(vec![fill; length].into()))?;
            }
            Statement::Store { list, index, value } => {
                let (index, value) = (self.value(index)?, self.value(value)?);
                let index = index.as_integer().ok_or_else(|| {
                    Error::input(format!("a list index is null in user function {}", self.function.name))
                })?;
                let (evaluator, function) = (self.evaluator, self.function);
                let Some(Value::List(elements)) = self.values.get_mut(*list) else {
                    return Err(Error::internal(format!("local ${list} is not a list")));
                };
                let length = elements.len();
                if Arc::get_mut(elements).is_none() {
                    // Others have it too: it is copied.
                    take_elements(evaluator, function, length)?;
                }
                let place = usize::try_from(index).ok().filter(|index| *index < length);
                Arc::make_mut(elements)[place.ok_or_else(|| out_of_range(index, length))?] = value;
            }
            Statement::If { condition, then, otherwise } => {
                let chosen = if self.value(condition)?.is_true() { then } else { otherwise };
                return self.run(chosen);
            }
            Statement::While { condition, body } => {
                while self.value(condition)?.is_true() {
                    self.step()?;
                    match self.run(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
            }
            Statement::For { variable, from, to, body } => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                let (Some(mut at), Some(to)) = (from.as_integer(), to.as_integer()) else { return Ok(Flow::Next) };
                while at < to {
                    self.step()?;
                    self.set(*variable, Value::Integer(at))?;
                    match self.run(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                    at += 1;
                }
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Return(expr) => return Ok(Flow::Return(self.value(expr)?)),
        }
        Ok(Flow::Next)
    }
}
