//! What a row adds to its group: a value, or states of a partial aggregation.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{AggregateFunction, Overflow, SlotId};
use tandem_plan::sink::PlannedAggregate;

use crate::{
    AccumulatorWords, Binding, ROWS_COUNT,
    expression::{Term, Width},
    kernel::Generator,
    spread::Item,
};

impl Generator<'_> {
    /// Returns the tests that tell whether a row contributes: none of some slots is null, and the filter is true.
    pub(crate) fn conditions(
        &mut self,
        slots: impl Iterator<Item = SlotId>,
        filter: Option<SlotId>,
    ) -> Result<Vec<String>> {
        let mut conditions = Vec::new();
        for slot in slots {
            conditions.extend(self.slot(slot)?.null.map(|null| format!("!{null}")));
        }
        if let Some(slot) = filter {
            let filter = self.slot(slot)?;
            conditions.push(filter.value);
            conditions.extend(filter.null.map(|null| format!("!{null}")));
        }
        Ok(conditions)
    }

    /// Adds the row, or the states that it has, to one aggregate.
    pub(crate) fn add_row(
        &mut self,
        planned: &PlannedAggregate,
        accumulator: &AccumulatorWords,
        registers: bool,
        place: &dyn Fn(usize) -> String,
    ) -> Result<()> {
        let PlannedAggregate { aggregate, of_states, .. } = planned;
        let slots: Vec<SlotId> = arguments(planned).collect();
        let argument = slots.first().map(|slot| self.slot(*slot)).transpose()?;
        // What is counted is the row, or what a state has counted.
        let counted = match (*of_states, accumulator, slots.as_slice()) {
            (true, AccumulatorWords::Count(_), [counted]) => Some(*counted),
            (true, AccumulatorWords::Spread { .. } | AccumulatorWords::Pairs { .. }, [counted, ..]) => Some(*counted),
            (true, _, [_, counted]) => Some(*counted),
            _ => None,
        };
        // Of an average, the sum may be null where the count is not.
        let average = *of_states && aggregate.function == AggregateFunction::Average;
        let tested = if average { &slots[..1] } else { &slots[..] };
        let mut conditions = self.conditions(tested.iter().copied(), aggregate.filter)?;
        let mut one = "1".to_string();
        if let Some(counted) = counted {
            one = self.slot(counted)?.integer()?.to(Width::Long);
            if !average {
                // A state of no rows says nothing.
                conditions.push(format!("{one} > 0"));
            }
        }
        let value = self.contribution(argument.as_ref(), accumulator)?;
        let item = match accumulator {
            AccumulatorWords::Spread { .. } | AccumulatorWords::Pairs { .. } => self.item(planned, &slots)?,
            _ => Item::default(),
        };
        if !conditions.is_empty() {
            self.text.open(&format!("if ({}) {{", conditions.join(" & ")));
        }
        match *accumulator {
            AccumulatorWords::Count(_) | AccumulatorWords::Elsewhere => {}
            AccumulatorWords::Sum { sum, .. } => self.add_to(registers, "ADD", &place(sum), &value),
            AccumulatorWords::WideSum { low, high, .. } => {
                self.add_to(registers, "ADD", &place(low), &format!("({value} & 0xffffffffL)"));
                self.add_to(registers, "ADD", &place(high), &format!("({value} >> 32)"));
            }
            AccumulatorWords::LimbSum { first, .. } => {
                let limbs = [".low & 0xffffffffL", ".low >> 32", ".high & 0xffffffffL", ".high >> 32"];
                for (at, limb) in limbs.iter().enumerate() {
                    self.add_to(registers, "ADD", &place(first + at), &format!("(i64)({value}{limb})"));
                }
            }
            AccumulatorWords::FloatSum { sum, .. } => {
                self.needs_fp64 = true;
                self.add_to(registers, "ADD_F64", &place(sum), &value);
            }
            // Two numbers that change together are kept in memory.
            AccumulatorWords::WideBest { low, high, smallest, .. } => {
                let table = if registers { "table" } else { "group" };
                let sign = if smallest { "<" } else { ">" };
                self.text.line(format!("KEEP_WIDE({table} + {low}, {table} + {high}, {value}, {sign});"));
            }
            AccumulatorWords::Spread { .. } | AccumulatorWords::Pairs { .. } => {
                let at = |at: usize| place(at).trim_start_matches('&').to_string();
                self.add_item(accumulator, (self.held.prefix(), registers), &at, &item);
            }
            AccumulatorWords::Bits { low, high, by, .. } => match high {
                None => self.add_to(registers, by.name(), &place(low), &value),
                Some(high) => {
                    self.add_to(registers, by.name(), &place(low), &format!("(i64)({value}.low)"));
                    self.add_to(registers, by.name(), &place(high), &format!("{value}.high"));
                }
            },
            AccumulatorWords::Best { best, smallest, from, .. } => {
                self.add_to(registers, choose(smallest, from), &place(best), &value);
            }
        }
        if average {
            if !conditions.is_empty() {
                self.text.close();
            }
            conditions = self.conditions(slots[1..].iter().copied(), aggregate.filter)?;
            if !conditions.is_empty() {
                self.text.open(&format!("if ({}) {{", conditions.join(" & ")));
            }
        }
        let count = accumulator.count();
        if count != ROWS_COUNT {
            self.add_to(registers, "ADD", &place(count), &one);
        }
        if !conditions.is_empty() {
            self.text.close();
        }
        Ok(())
    }

    /// Returns the moments that a row adds: of its values, or of its states.
    fn item(&mut self, planned: &PlannedAggregate, slots: &[SlotId]) -> Result<Item> {
        let mut floats = Vec::with_capacity(slots.len());
        for slot in slots {
            let term = self.slot(*slot)?;
            floats.push(self.as_float(&term)?);
        }
        let item = match (planned.of_states, floats.as_slice()) {
            (true, [count, mean, squares]) => Item {
                count: Some(count.clone()),
                centers: vec![mean.clone()],
                squares: Some(vec![squares.clone()]),
                ..Item::default()
            },
            (true, [count, means @ .., squares_y, squares_x, products]) => Item {
                count: Some(count.clone()),
                centers: means.to_vec(),
                squares: Some(vec![squares_y.clone(), squares_x.clone()]),
                products: Some(products.clone()),
                ..Item::default()
            },
            _ => Item { centers: floats, ..Item::default() },
        };
        Ok(item)
    }

    /// Returns a number as a float.
    fn as_float(&mut self, term: &Term) -> Result<String> {
        match term.kind.repr() {
            Repr::Float => Ok(term.value.clone()),
            _ => Ok(self.number(term, &Type::Float64, Overflow::Error)?.value),
        }
    }

    pub(crate) fn add_to(&mut self, registers: bool, operation: &str, place: &str, value: &str) {
        let name = place.trim_start_matches('&');
        self.text.line(match (registers, operation) {
            (false, _) => format!("{}{operation}({place}, {value});", self.held.prefix()),
            (true, "LEAST" | "LEAST_32") => format!("if ({value} < {name}) {name} = {value};"),
            (true, "MOST" | "MOST_32") => format!("if ({value} > {name}) {name} = {value};"),
            (true, "BITS_AND") => format!("{name} &= {value};"),
            (true, "BITS_OR") => format!("{name} |= {value};"),
            (true, "BITS_XOR") => format!("{name} ^= {value};"),
            (true, _) => format!("{name} += {value};"),
        });
    }

    /// Returns what a row adds to an accumulator, in the C type that it is added in.
    fn contribution(&mut self, argument: Option<&Term>, accumulator: &AccumulatorWords) -> Result<String> {
        let Some(term) = argument.filter(|_| !matches!(accumulator, AccumulatorWords::Count(_))) else {
            return Ok("0".into());
        };
        let floats = term.kind.repr() == Repr::Float;
        Ok(match accumulator {
            AccumulatorWords::FloatSum { .. } => self.as_float(term)?,
            AccumulatorWords::Spread { .. } | AccumulatorWords::Pairs { .. } => "0".into(),
            AccumulatorWords::Best { .. } if floats => self.text.define("i64", &format!("FLOAT_ORDER({})", term.value)),
            AccumulatorWords::LimbSum { .. }
            | AccumulatorWords::WideBest { .. }
            | AccumulatorWords::Bits { high: Some(_), .. } => {
                let wide = term.integer()?.wide();
                self.text.define("wide", &wide)
            }
            // Codes count from 0.
            AccumulatorWords::Best { .. } if term.words.is_some() => term.value.clone(),
            AccumulatorWords::Best { from: Some(from), .. } => {
                let from = self.text.argument(Binding::Constant(*from), "const i64", "", "");
                let value = term.integer()?.to(Width::Long);
                self.text.define("i64", &format!("WRAP_SUBTRACT({value}, {from})"))
            }
            AccumulatorWords::WideSum { .. } => term.integer()?.long(),
            _ => term.integer()?.to(Width::Long),
        })
    }
}

/// Returns the slots that an aggregate reads of each row: its arguments, or all of its states.
pub(crate) fn arguments(planned: &PlannedAggregate) -> impl Iterator<Item = SlotId> {
    let function = planned.aggregate.function;
    let states = if planned.of_states { function.state_names().len() } else { 1 };
    let first = planned.aggregate.argument.filter(|_| planned.of_states || function != AggregateFunction::CountRows);
    first.into_iter().flat_map(move |first| first..first + states).chain(planned.aggregate.second)
}

/// Returns the operation that keeps the smaller or larger of two values.
pub(crate) fn choose(smallest: bool, from: Option<i64>) -> &'static str {
    match (smallest, from) {
        (true, None) => "LEAST",
        (false, None) => "MOST",
        (true, Some(_)) => "LEAST_32",
        (false, Some(_)) => "MOST_32",
    }
}
