//! Reads expressions and constants.

use tandem_column::{Result, Type};

use super::{Parser, token::Token};
use crate::{
    Arithmetic, ArithmeticOperator, Comparison, Expr, Failure, Function, Overflow, Slot, Value,
    print::{level, natural_type},
    scalar::{date, decimal},
    verify::DEPTH_LIMIT,
};

impl Parser {
    /// Reads an expression whose operators bind at least as tightly as `needed`.
    pub(super) fn expr(&mut self, slots: &[Slot], needed: u8) -> Result<Expr> {
        self.nested(|parser| parser.infix(slots, needed))
    }

    /// Reads operands and the operators between them.
    fn infix(&mut self, slots: &[Slot], needed: u8) -> Result<Expr> {
        let mut left = self.primary(slots)?;
        // Each operator puts what is read so far one level deeper, without a call.
        for operators in 1.. {
            let Some(operator) = self.operator().filter(|operator| operator.level() >= needed) else {
                return Ok(left);
            };
            self.require(self.depth + operators < DEPTH_LIMIT, "less nesting")?;
            self.at += 1;
            left = match operator {
                Operator::Or => Expr::Or(self.connected(left, "or", slots, level::AND)?),
                Operator::And => Expr::And(self.connected(left, "and", slots, level::COMPARE)?),
                Operator::Compare(comparison) => {
                    Expr::Compare(comparison, Box::new(left), Box::new(self.expr(slots, level::ADD)?))
                }
                Operator::Is if self.accept("null") => Expr::IsNull(Box::new(left)),
                Operator::Is => {
                    self.expect("distinct from")?;
                    Expr::Distinct(Box::new(left), Box::new(self.expr(slots, level::ADD)?))
                }
                Operator::In => Expr::In { input: Box::new(left), list: self.list(Parser::value)? },
                Operator::Like { ignore_case } => {
                    let pattern = self.text()?.into();
                    let escape = if self.accept("escape") { self.text()?.chars().next() } else { None };
                    Expr::Like { input: Box::new(left), pattern, escape, ignore_case }
                }
                Operator::Arithmetic(arithmetic) => {
                    let right = self.expr(slots, operator.level() + 1)?;
                    self.annotated(arithmetic, left, right, slots)?
                }
            };
        }
        Ok(left)
    }

    /// Returns the operator that is next, if one is.
    fn operator(&self) -> Option<Operator> {
        Some(match self.peek() {
            Token::Symbol("=") => Operator::Compare(Comparison::Equal),
            Token::Symbol("<>") => Operator::Compare(Comparison::NotEqual),
            Token::Symbol("<") => Operator::Compare(Comparison::Less),
            Token::Symbol("<=") => Operator::Compare(Comparison::LessOrEqual),
            Token::Symbol(">") => Operator::Compare(Comparison::Greater),
            Token::Symbol(">=") => Operator::Compare(Comparison::GreaterOrEqual),
            Token::Symbol("+") => Operator::Arithmetic(ArithmeticOperator::Add),
            Token::Symbol("-") => Operator::Arithmetic(ArithmeticOperator::Subtract),
            Token::Symbol("*") => Operator::Arithmetic(ArithmeticOperator::Multiply),
            Token::Symbol("/") => Operator::Arithmetic(ArithmeticOperator::Divide),
            Token::Symbol("%") => Operator::Arithmetic(ArithmeticOperator::Remainder),
            Token::Word(word) => match &word[..] {
                "or" => Operator::Or,
                "and" => Operator::And,
                "is" => Operator::Is,
                "in" => Operator::In,
                "like" => Operator::Like { ignore_case: false },
                "ilike" => Operator::Like { ignore_case: true },
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Reads the further operands of a conjunction or disjunction.
    fn connected(&mut self, first: Expr, word: &str, slots: &[Slot], needed: u8) -> Result<Vec<Expr>> {
        let mut inputs = vec![first, self.expr(slots, needed)?];
        while self.accept(word) {
            inputs.push(self.expr(slots, needed)?);
        }
        Ok(inputs)
    }

    /// Reads what stands between brackets behind arithmetic.
    fn annotated(&mut self, operator: ArithmeticOperator, left: Expr, right: Expr, slots: &[Slot]) -> Result<Expr> {
        let mut kind = None;
        let (mut overflow, mut zero) = (Overflow::Error, Failure::Error);
        if self.accept("[") {
            while !self.accept("]") {
                if self.accept("zero") {
                    self.expect("null")?;
                    zero = Failure::Null;
                } else if let Some(found) = self.overflow()? {
                    overflow = found;
                } else {
                    kind = Some(self.kind()?);
                }
            }
        }
        let kind = kind.unwrap_or_else(|| left.kind(slots));
        Ok(Expr::Arithmetic(Box::new(Arithmetic { operator, left, right, kind, overflow, zero })))
    }

    /// Reads what overflow does, if that is next.
    pub(super) fn overflow(&mut self) -> Result<Option<Overflow>> {
        if !self.accept("overflow") {
            Ok(None)
        } else if self.accept("wrap") {
            Ok(Some(Overflow::Wrap))
        } else {
            self.expect("null")?;
            Ok(Some(Overflow::Null))
        }
    }

    /// Reads an expression without operators around it.
    fn primary(&mut self, slots: &[Slot]) -> Result<Expr> {
        let word = match self.peek() {
            Token::Slot(slot) => {
                let slot = *slot;
                self.at += 1;
                return Ok(Expr::Slot(slot));
            }
            Token::Symbol("(") => {
                self.at += 1;
                let expr = self.expr(slots, 0)?;
                self.expect(")")?;
                return Ok(expr);
            }
            Token::Symbol("@") => return self.call(slots),
            Token::Name(_) => {
                self.at += 1;
                return self.call(slots);
            }
            Token::Word(word) => word.clone(),
            _ => return self.literal(),
        };
        if *self.peek_second() == Token::Symbol("@") {
            self.at += 1;
            return self.call(slots);
        }
        if *self.peek_second() != Token::Symbol("(") || matches!(&word[..], "interval" | "nan") {
            return if word == "case" { self.case(slots) } else { self.literal() };
        }
        self.at += 1;
        match &word[..] {
            "and" => Ok(Expr::And(self.exprs(slots)?)),
            "or" => Ok(Expr::Or(self.exprs(slots)?)),
            "not" => Ok(Expr::Not(Box::new(self.only(slots)?))),
            "list_length" => Ok(Expr::ListLength(Box::new(self.only(slots)?))),
            "element" => {
                self.expect("(")?;
                let list = self.expr(slots, 0)?;
                self.expect(",")?;
                let index = self.expr(slots, 0)?;
                self.expect(")")?;
                Ok(Expr::Element(Box::new(list), Box::new(index)))
            }
            "negate" => {
                self.expect("(")?;
                let input = self.expr(slots, 0)?;
                let overflow = self.overflow()?.unwrap_or(Overflow::Error);
                self.expect(")")?;
                Ok(Expr::Negate(Box::new(input), overflow))
            }
            "cast" | "try_cast" => {
                self.expect("(")?;
                let input = Box::new(self.expr(slots, 0)?);
                self.expect("as")?;
                let kind = self.kind()?;
                self.expect(")")?;
                let failure = if word == "cast" { Failure::Error } else { Failure::Null };
                Ok(Expr::Cast { input, kind, failure })
            }
            name => match Function::from_name(name) {
                Some(function) => {
                    let arguments = self.exprs(slots)?;
                    let types: Vec<Type> = arguments.iter().map(|argument| argument.kind(slots)).collect();
                    let kind = self.type_or(|| function.natural_type(&types))?;
                    Ok(Expr::Function { function, arguments, kind })
                }
                None => self.expected(&format!("a function, which {name} is not, before")),
            },
        }
    }

    /// Reads one expression between parentheses.
    fn only(&mut self, slots: &[Slot]) -> Result<Expr> {
        self.expect("(")?;
        let expr = self.expr(slots, 0)?;
        self.expect(")")?;
        Ok(expr)
    }

    /// Reads the type behind a colon, or takes the usual one.
    fn type_or(&mut self, usual: impl FnOnce() -> Type) -> Result<Type> {
        if self.accept(":") { self.kind() } else { Ok(usual()) }
    }

    /// Reads a call of a user function from `@` on.
    fn call(&mut self, slots: &[Slot]) -> Result<Expr> {
        self.expect("@")?;
        let function: usize = self.number()?;
        let arguments = self.exprs(slots)?;
        let returns = self.query.functions.get(function).map_or(Type::Null, |function| function.returns.clone());
        let kind = self.type_or(|| returns)?;
        Ok(Expr::Call { function, arguments, kind })
    }

    /// Reads a case.
    fn case(&mut self, slots: &[Slot]) -> Result<Expr> {
        self.expect("case")?;
        let kind = self.kind()?;
        let mut branches = Vec::new();
        while self.accept("when") {
            let condition = self.expr(slots, 0)?;
            self.expect("then")?;
            branches.push((condition, self.expr(slots, 0)?));
        }
        let otherwise = if self.accept("else") { Some(Box::new(self.expr(slots, 0)?)) } else { None };
        self.expect("end")?;
        Ok(Expr::Case { branches, otherwise, kind })
    }

    /// Reads text in single quotes.
    fn text(&mut self) -> Result<String> {
        match self.peek().clone() {
            Token::Text(text) => {
                self.at += 1;
                Ok(text)
            }
            _ => self.expected("text in quotes"),
        }
    }

    /// Reads a constant and its type.
    fn literal(&mut self) -> Result<Expr> {
        if *self.peek() == Token::Word("date".to_owned()) {
            self.at += 1;
            let text = self.text()?;
            let parts: Vec<i64> = text.split('-').filter_map(|part| part.parse().ok()).collect();
            return match parts[..] {
                [year, month @ 1..=12, day @ 1..=31] => {
                    let days = date::days_from_civil(year, month, day);
                    Ok(Expr::Literal(Value::Integer(days.into()), Type::Date))
                }
                _ => self.expected("a date as 'yyyy-mm-dd' before"),
            };
        }
        let start = self.at;
        let value = self.value()?;
        if !self.accept(":") {
            return match natural_type(&value) {
                Some(kind) => Ok(Expr::Literal(value, kind)),
                None => self.expected("the type of a list"),
            };
        }
        let kind = self.kind()?;
        let digits = || -> String {
            self.tokens[start..]
                .iter()
                .map_while(|(token, _)| match token {
                    Token::Symbol("-") => Some("-"),
                    Token::Number(digits) => Some(&digits[..]),
                    _ => None,
                })
                .collect()
        };
        let value = match (value, &kind) {
            (Value::Integer(_) | Value::Float(_), Type::Decimal { scale, .. }) => {
                match decimal::parse(&digits(), *scale) {
                    Some(value) => Value::Integer(value),
                    None => return self.expected("a decimal with as many digits as its scale before"),
                }
            }
            (value, _) => value,
        };
        Ok(Expr::Literal(value, kind))
    }

    /// Reads a value without its type.
    pub(super) fn value(&mut self) -> Result<Value> {
        let negative = self.accept("-");
        let sign = if negative { "-" } else { "" };
        let value = match self.peek().clone() {
            Token::Number(digits) => {
                let text = format!("{sign}{digits}");
                match (text.parse::<i128>(), text.parse::<f64>()) {
                    (Ok(integer), _) => Value::Integer(integer),
                    (Err(_), Ok(float)) if digits.contains(['.', 'e']) => Value::Float(float),
                    _ => return self.expected("a smaller number"),
                }
            }
            Token::Word(word) if word == "inf" => {
                Value::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
            }
            _ if negative => return self.expected("a number"),
            Token::Text(text) => Value::string(text),
            Token::Bytes(bytes) => Value::Binary(bytes.into()),
            Token::Symbol("[") => return self.list_value(),
            Token::Word(word) => match &word[..] {
                "null" => Value::Null,
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                "nan" => return self.nan(),
                "interval" => {
                    self.at += 1;
                    self.expect("(")?;
                    let months = self.number()?;
                    self.expect(",")?;
                    let days = self.number()?;
                    self.expect(",")?;
                    let nanoseconds = self.number()?;
                    self.expect(")")?;
                    return Ok(Value::Interval { months, days, nanoseconds });
                }
                _ => return self.expected("a value"),
            },
            _ => return self.expected("a value"),
        };
        self.at += 1;
        Ok(value)
    }

    /// Reads a NaN, perhaps with its bits.
    fn nan(&mut self) -> Result<Value> {
        self.expect("nan")?;
        if !self.accept("(") {
            return Ok(Value::Float(f64::NAN));
        }
        let bits = match self.peek() {
            Token::Number(digits) => digits.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        let Some(bits) = bits else { return self.expected("the bits of a NaN") };
        self.at += 1;
        self.expect(")")?;
        Ok(Value::Float(f64::from_bits(bits)))
    }

    /// Reads a list of values between brackets.
    fn list_value(&mut self) -> Result<Value> {
        self.expect("[")?;
        let mut values = Vec::new();
        while !self.accept("]") {
            if !values.is_empty() {
                self.expect(",")?;
            }
            values.push(self.nested(Parser::value)?);
        }
        Ok(Value::List(values.into()))
    }
}

/// What stands between two operands.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Compare(Comparison),
    Is,
    In,
    Like { ignore_case: bool },
    Arithmetic(ArithmeticOperator),
}

impl Operator {
    /// Returns how tightly it binds.
    fn level(self) -> u8 {
        match self {
            Operator::Or => level::OR,
            Operator::And => level::AND,
            Operator::Compare(_) | Operator::Is | Operator::In | Operator::Like { .. } => level::COMPARE,
            Operator::Arithmetic(ArithmeticOperator::Add | ArithmeticOperator::Subtract) => level::ADD,
            Operator::Arithmetic(_) => level::MULTIPLY,
        }
    }
}
