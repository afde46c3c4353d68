//! Random values and well-typed expressions, all from one seed.

use std::sync::Arc;

use tandem_column::{TimeUnit, Type};
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Comparison, DateField, Expr, Failure, Function, Overflow, Slot, Value,
    builtin::{ArgumentRule, Gives, TABLE},
    scalar,
};

/// The types that slots have.
pub(crate) fn kinds() -> Vec<Type> {
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
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
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
    pub(crate) fn value(&mut self, kind: &Type) -> Value {
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

    /// Makes an expression of a type.
    pub(crate) fn expr(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(slots, kind);
        }
        let depth = depth - 1;
        match self.below(12) {
            0 => self.case(slots, kind, depth),
            1..=3 => self.builtin(slots, kind, depth),
            4 | 5 => self.cast(slots, kind, depth),
            _ => match kind {
                Type::Boolean => self.predicate(slots, depth),
                Type::String => self.builtin(slots, kind, depth),
                Type::Date | Type::Timestamp(..) => self.instant(slots, kind, depth),
                Type::Float32 | Type::Float64 => self.float(slots, kind, depth),
                Type::Decimal { .. } => self.decimal(slots, kind, depth),
                _ if kind.is_integer() => self.integer(slots, kind, depth),
                _ => self.builtin(slots, kind, depth),
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
            _ => self.builtin(slots, &Type::Boolean, depth),
        }
    }

    /// Makes a call of any function of the table that gives a type, of arguments that may raise an error.
    fn builtin(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        let field = self.field();
        let functions = TABLE.iter().filter_map(|entry| entry.function(entry.takes_field().then_some(field)));
        let functions: Vec<Function> = functions.filter(|function| function.can_give(kind)).collect();
        let function = self.pick(&functions);
        let (least, most) = function.arity();
        let count = least + self.below(most.min(least + 2) - least + 1);
        let mut arguments: Vec<Expr> = Vec::with_capacity(count);
        for place in 0..count {
            let first = arguments.first().map_or(kind.clone(), |first| first.kind(slots));
            arguments.push(self.argument(slots, function, place, [kind, &first], depth));
        }
        Expr::Function { function, arguments, kind: kind.clone() }
    }

    /// Makes an argument of a function that gives the first type; the second is that of its first argument.
    fn argument(&mut self, slots: &[Slot], function: Function, place: usize, of: [&Type; 2], depth: usize) -> Expr {
        use Function::*;
        let [kind, first] = of;
        let text = |text: &str| Expr::Literal(Value::string(text), Type::String);
        match (function, place) {
            // Larger ones make texts of gigabytes.
            (Repeat | PadStart | PadEnd | SplitPart | RegexpMatch, 1 | 2)
                if function.takes(place, &Type::Int64, kind) =>
            {
                return Expr::Literal(Value::Integer(self.below(20) as i128 - 4), Type::Int64);
            }
            (RegexpLike | RegexpMatch | RegexpReplace, 1) => {
                let patterns = ["", "a", "^w|1$", "(w)(x)?(.)", "[^a-z]+", r"\w+\s*", "(?i)WORD", "ß.", ".*", "("];
                return text(self.pick(&patterns));
            }
            (RegexpReplace, 2) => return text(self.pick(&["", "-", r"\1\2", r"<\0>", "$1", r"\\1\x"])),
            (RegexpLike | RegexpMatch, _) if place > 1 => return text(self.pick(&["", "i", "s"])),
            (RegexpReplace, 3) => return text(self.pick(&["", "g", "ig", "i"])),
            (ToDate, 0) => return text(self.pick(&["2024-02-29", "29/02/2024", "2023-02-29"])),
            (ToDate, _) => return text(self.pick(&["%Y-%m-%d", "%d/%m/%Y"])),
            _ => {}
        }
        let gives = function.entry().gives;
        let same = place == 0 && matches!(gives, Gives::First | Gives::Rounded | Gives::SignOf);
        let of = match function.argument(place) {
            _ if same => kind.clone(),
            Some(ArgumentRule::AsFirst) => first.clone(),
            _ => {
                let kinds: Vec<Type> = kinds().into_iter().filter(|given| function.takes(place, given, kind)).collect();
                self.pick(&kinds)
            }
        };
        self.expr(slots, &of, depth)
    }

    fn field(&mut self) -> DateField {
        use DateField::*;
        self.pick(&[Year, Quarter, Month, Week, Day, DayOfWeek, DayOfYear, Hour, Minute, Second])
    }

    fn instant(&mut self, slots: &[Slot], kind: &Type, depth: usize) -> Expr {
        if self.below(2) == 0 {
            return self.builtin(slots, kind, depth);
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
        match (kind, self.below(4)) {
            (Type::Int32, 0 | 1) | (Type::Int64, 1) => self.builtin(slots, kind, depth),
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
        match self.below(4) {
            0 => self.builtin(slots, kind, depth),
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
