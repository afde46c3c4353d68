//! Random values and well-typed expressions, all from one seed.

use std::sync::Arc;

use tandem_column::{TimeUnit, Type};
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Comparison, DateField, Expr, Failure, Function, Overflow, Slot, Value, scalar,
};

/// The types that slots have.
pub fn kinds() -> Vec<Type> {
    let decimal = |precision, scale| Type::Decimal { precision, scale };
    vec![
        Type::Boolean,
        Type::Int8,
        Type::Int32,
        Type::Int64,
        Type::UInt8,
        Type::UInt32,
        Type::UInt64,
        Type::Float32,
        Type::Float64,
        decimal(9, 2),
        decimal(15, 2),
        decimal(18, 0),
        decimal(38, 6),
        decimal(23, 4),
        Type::Date,
        Type::Time(TimeUnit::Microsecond),
        Type::Timestamp(TimeUnit::Microsecond, None),
        Type::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())),
        Type::String,
        Type::Binary,
    ]
}

/// A small generator: splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn between(&mut self, low: i128, high: i128) -> i128 {
        let bits = (i128::from(self.next()) << 62) ^ i128::from(self.next());
        match self.below(8) {
            0 => low,
            1 => high,
            2 => 0.clamp(low, high),
            3 => bits.rem_euclid(high / 2 - low / 2 + 1) + low / 2,
            _ => (bits.rem_euclid(41) - 20).clamp(low, high),
        }
    }

    /// Makes a value that is not null.
    pub fn value(&mut self, kind: &Type) -> Value {
        match kind {
            Type::Null | Type::Interval | Type::List(_) => Value::Null,
            Type::Boolean => Value::Boolean(self.below(2) == 0),
            Type::Float32 | Type::Float64 => {
                let small = self.below(2000) as f64 / 8.0 - 100.0;
                let extreme = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e300, f64::MAX, 9.3e18, -9.3e18];
                let value = if self.below(4) == 0 { self.pick(&extreme) } else { small };
                Value::Float(if *kind == Type::Float32 { f64::from(value as f32) } else { value })
            }
            Type::Decimal { precision, .. } => {
                let limit = 10_i128.pow((*precision).into()) - 1;
                Value::Integer(self.between(-limit, limit))
            }
            Type::Date => Value::Integer(self.between(-1_000_000, 3_000_000)),
            Type::Time(unit) => Value::Integer(self.between(0, i128::from(unit.per_second()) * 86_400 - 1)),
            Type::Timestamp(unit, _) => {
                let limit = i128::from(unit.per_second()) * 8_000_000_000;
                Value::Integer(self.between(-limit, limit))
            }
            Type::String => {
                let words =
                    ["", "a", "Straße", "100%", "x_y", "  pad ", "12", "-7.5", "2024-02-29", "word 1", "ÄÖ", "abcabc"];
                match self.below(3) {
                    0 => Value::string(self.pick(&words)),
                    1 => Value::string(format!("word {}", self.below(30))),
                    _ => Value::string(format!("{}{}", self.pick(&words), self.pick(&words))),
                }
            }
            Type::Binary => Value::Binary((0..self.below(4)).map(|_| self.next() as u8).collect()),
            _ => {
                let (low, high) = kind.integer_range().unwrap();
                Value::Integer(self.between(low, high))
            }
        }
    }

    fn literal(&mut self, kind: &Type) -> Expr {
        let value = if self.below(10) == 0 { Value::Null } else { self.value(kind) };
        Expr::Literal(value, kind.clone())
    }

    fn leaf(&mut self, slots: &[Slot], kind: &Type) -> Expr {
        let of: Vec<usize> = (0..slots.len()).filter(|&slot| slots[slot].kind == *kind).collect();
        if of.is_empty() || self.below(4) == 0 { self.literal(kind) } else { Expr::Slot(self.pick(&of)) }
    }

    fn boxed(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Box<Expr> {
        Box::new(self.expr(slots, kind, depth))
    }

    fn function(&mut self, slots: &[Slot], function: Function, of: &[Type], kind: &Type, depth: usize) -> Expr {
        let arguments = of.iter().map(|kind| self.expr(slots, kind, depth)).collect();
        Expr::Function { function, arguments, kind: kind.clone() }
    }

    /// Makes an expression of a type.
    pub fn expr(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(slots, kind);
        }
        let depth = depth - 1;
        let same = std::slice::from_ref(kind);
        let pair = [kind.clone(), kind.clone()];
        match self.below(12) {
            0 => self.case(slots, kind, depth),
            1 => self.function(slots, Function::Coalesce, &[kind.clone(), kind.clone(), kind.clone()], kind, depth),
            2 => self.function(slots, Function::NullIf, &pair, kind, depth),
            3 => {
                let function = self.pick(&[Function::Greatest, Function::Least]);
                self.function(slots, function, &pair, kind, depth)
            }
            4 | 5 => self.cast(slots, kind, depth),
            _ => match kind {
                Type::Boolean => self.predicate(slots, depth),
                Type::String => self.text(slots, depth),
                Type::Date | Type::Timestamp(..) => self.instant(slots, kind, depth),
                Type::Float32 | Type::Float64 => self.float(slots, kind, depth),
                Type::Decimal { .. } => self.decimal(slots, kind, depth),
                _ if kind.is_integer() => self.integer(slots, kind, depth),
                _ => self.function(slots, Function::Coalesce, same, kind, depth),
            },
        }
    }

    fn case(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        let branches = (0..1 + self.below(2))
            .map(|_| (self.expr(slots, &Type::Boolean, depth), self.expr(slots, kind, depth)))
            .collect();
        let otherwise = (self.below(2) == 0).then(|| self.boxed(slots, kind, depth));
        Expr::Case { branches, otherwise, kind: kind.clone() }
    }

    fn cast(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        let from: Vec<Type> = kinds().into_iter().filter(|from| scalar::cast::castable(from, kind)).collect();
        let from = self.pick(&from);
        let failure = if self.below(8) == 0 { Failure::Error } else { Failure::Null };
        Expr::Cast { input: self.boxed(slots, &from, depth), kind: kind.clone(), failure }
    }

    fn predicate(&mut self, slots: &[Slot], depth: usize) -> Expr {
        let kind = self.pick(&kinds());
        match self.below(9) {
            0 | 1 => {
                use Comparison::*;
                let comparison = self.pick(&[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual]);
                Expr::Compare(comparison, self.boxed(slots, &kind, depth), self.boxed(slots, &kind, depth))
            }
            2 => Expr::Distinct(self.boxed(slots, &kind, depth), self.boxed(slots, &kind, depth)),
            3 => Expr::And((0..self.below(4)).map(|_| self.expr(slots, &Type::Boolean, depth)).collect()),
            4 => Expr::Or((0..self.below(4)).map(|_| self.expr(slots, &Type::Boolean, depth)).collect()),
            5 => match self.below(2) {
                0 => Expr::Not(self.boxed(slots, &Type::Boolean, depth)),
                _ => Expr::IsNull(self.boxed(slots, &kind, depth)),
            },
            6 => {
                let count = self.pick(&[0, 1, 2, 5, 30]);
                let mut list: Vec<Value> = (0..count).map(|_| self.value(&kind)).collect();
                if self.below(4) == 0 {
                    list.push(Value::Null);
                }
                Expr::In { input: self.boxed(slots, &kind, depth), list }
            }
            7 => {
                let patterns = [
                    "word 1", "word%", "%1", "%or%", "w%d%1%", "_ord%", "%", "", "100\\%", "x!_y", "%%", "%a%c",
                    "WORD%",
                ];
                let pattern: Arc<str> = self.pick(&patterns).into();
                let escape = self.pick(&[None, None, Some('!')]);
                let ignore_case = self.below(3) == 0;
                Expr::Like { input: self.boxed(slots, &Type::String, depth), pattern, escape, ignore_case }
            }
            _ => {
                let function = self.pick(&[Function::StartsWith, Function::EndsWith, Function::Contains]);
                self.function(slots, function, &[Type::String, Type::String], &Type::Boolean, depth)
            }
        }
    }

    fn text(&mut self, slots: &[Slot], depth: usize) -> Expr {
        use Function::*;
        let text = Type::String;
        let count = self.pick(&[Type::Int64, Type::Int32]);
        match self.below(5) {
            0 => {
                let function = self.pick(&[Upper, Lower, Trim, TrimStart, TrimEnd, Reverse]);
                self.function(slots, function, &[text], &Type::String, depth)
            }
            1 => {
                let function = self.pick(&[Left, Right, Substring]);
                self.function(slots, function, &[text, count], &Type::String, depth)
            }
            2 => {
                let start = self.below(6) as i128 - 2;
                let length = self.below(5) as i128;
                let literal = |value| Expr::Literal(Value::Integer(value), Type::Int64);
                let arguments = vec![self.expr(slots, &text, depth), literal(start), literal(length)];
                Expr::Function { function: Substring, arguments, kind: Type::String }
            }
            3 => self.function(slots, Concat, &[text.clone(), text.clone(), text], &Type::String, depth),
            _ => self.function(slots, Replace, &[text.clone(), text.clone(), text], &Type::String, depth),
        }
    }

    fn field(&mut self) -> DateField {
        use DateField::*;
        self.pick(&[Year, Quarter, Month, Week, Day, DayOfWeek, DayOfYear, Hour, Minute, Second])
    }

    fn instant(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        if self.below(2) == 0 {
            let function = Function::Truncate(self.field());
            return self.function(slots, function, std::slice::from_ref(kind), kind, depth);
        }
        let interval = Value::Interval {
            months: self.below(30) as i32 - 15,
            days: self.below(60) as i32 - 30,
            nanoseconds: 86_400_000_000_000 * (self.below(3) as i64 - 1),
        };
        Expr::Arithmetic(Box::new(Arithmetic {
            operator: self.pick(&[ArithmeticOperator::Add, ArithmeticOperator::Subtract]),
            left: self.expr(slots, kind, depth),
            right: Expr::Literal(interval, Type::Interval),
            kind: kind.clone(),
            overflow: Overflow::Error,
            zero: Failure::Error,
        }))
    }

    fn arithmetic(&mut self, slots: &[Slot], kind: &Type, sides: [&Type; 2], depth: usize) -> Expr {
        use ArithmeticOperator::*;
        let decimal = matches!(kind, Type::Decimal { .. });
        let overflow = match self.below(8) {
            0 => Overflow::Error,
            1..=4 if !decimal => Overflow::Wrap,
            _ => Overflow::Null,
        };
        Expr::Arithmetic(Box::new(Arithmetic {
            operator: self.pick(&[Add, Subtract, Multiply, Divide, Remainder]),
            left: self.expr(slots, sides[0], depth),
            right: self.expr(slots, sides[1], depth),
            kind: kind.clone(),
            overflow,
            zero: if self.below(8) == 0 { Failure::Error } else { Failure::Null },
        }))
    }

    fn integer(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        use Function::*;
        match (kind, self.below(4)) {
            (Type::Int32, 0) => {
                let field = self.field();
                let instants: Vec<Type> =
                    kinds().into_iter().filter(|kind| matches!(kind, Type::Date | Type::Timestamp(..))).collect();
                let of = self.pick(&instants);
                self.function(slots, Extract(field), &[of], kind, depth)
            }
            (Type::Int32, 1) => match self.below(3) {
                0 => self.function(slots, Position, &[Type::String, Type::String], kind, depth),
                1 => self.function(slots, CharLength, &[Type::String], kind, depth),
                _ => self.function(slots, OctetLength, &[Type::String], kind, depth),
            },
            (Type::Int64, 0) => Expr::Arithmetic(Box::new(Arithmetic {
                operator: ArithmeticOperator::Subtract,
                left: self.expr(slots, &Type::Date, depth),
                right: self.expr(slots, &Type::Date, depth),
                kind: Type::Int64,
                overflow: Overflow::Error,
                zero: Failure::Error,
            })),
            (_, 0 | 1) => {
                let overflow = self.pick(&[Overflow::Wrap, Overflow::Null, Overflow::Error]);
                Expr::Negate(self.boxed(slots, kind, depth), overflow)
            }
            _ => self.arithmetic(slots, kind, [kind, kind], depth),
        }
    }

    fn float(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        use Function::*;
        let same = std::slice::from_ref(kind);
        match self.below(4) {
            0 => {
                let function = self.pick(&[Abs, Sign, Floor, Ceil, Round, SquareRoot, Exp, Ln, Log10, Log2, ArcTan]);
                self.function(slots, function, same, kind, depth)
            }
            1 => Expr::Negate(self.boxed(slots, kind, depth), Overflow::Error),
            _ => self.arithmetic(slots, kind, [kind, kind], depth),
        }
    }

    fn decimal(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        let decimals: Vec<Type> = kinds().into_iter().filter(|kind| matches!(kind, Type::Decimal { .. })).collect();
        let (left, right) = (self.pick(&decimals), self.pick(&decimals));
        match self.below(6) {
            0 => Expr::Negate(self.boxed(slots, kind, depth), Overflow::Error),
            _ => self.arithmetic(slots, kind, [&left, &right], depth),
        }
    }
}
