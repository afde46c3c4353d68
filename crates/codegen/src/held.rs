//! Groups that are held apart from their table while rows come: one in registers, a few in the memory of a group of work-items.

use crate::{
    AccumulatorWords, ROWS_COUNT,
    contribution::choose,
    kernel::{Generator, KernelOutput},
};

impl Generator<'_> {
    /// Makes a table of a group of work-items' own, with groups as they are before their first row.
    pub(crate) fn declare_local(&mut self, accumulators: &[AccumulatorWords], count: usize, width: usize) {
        // With one number more than is used, this loop never has the bound of the last: PoCL 3.1 joins the two across the barrier
        // if they have the same, and then aborts.
        let numbers = count * width + 1;
        self.text.line(format!("LOCAL_TABLE(own, {numbers});"));
        self.text.open(&format!("FOR_OWN(at, {numbers}u) {{"));
        let empty = KernelOutput::Groups { groups: Some(count), accumulators: accumulators.to_vec() }.empty_group();
        let mut value = "0".to_string();
        for (at, number) in empty.iter().enumerate().filter(|(_, number)| **number != 0) {
            value = format!("at % {width} == {at} ? {} : {value}", literal(*number));
        }
        self.text.line(format!("own[at] = {value};"));
        self.text.close();
        self.text.line("BARRIER();");
    }

    /// Declares the registers of one group.
    pub(crate) fn declare_registers(&mut self, accumulators: &[AccumulatorWords]) {
        self.text.line(format!("i64 a{ROWS_COUNT} = 0;"));
        for accumulator in accumulators {
            match *accumulator {
                AccumulatorWords::Count(_) | AccumulatorWords::Elsewhere => {}
                AccumulatorWords::Sum { sum, .. } => self.text.line(format!("i64 a{sum} = 0;")),
                AccumulatorWords::FloatSum { sum, .. } => self.text.line(format!("f64 a{sum} = 0;")),
                AccumulatorWords::WideSum { low, high, .. } => self.text.line(format!("i64 a{low} = 0, a{high} = 0;")),
                AccumulatorWords::LimbSum { first, .. } => {
                    (first..first + 4).for_each(|at| self.text.line(format!("i64 a{at} = 0;")));
                }
                AccumulatorWords::WideBest { .. } => {}
                AccumulatorWords::Spread { .. } | AccumulatorWords::Pairs { .. } => self.declare_moments(accumulator),
                AccumulatorWords::Bits { low, high, by, .. } => {
                    for at in [low].into_iter().chain(high) {
                        self.text.line(format!("i64 a{at} = {};", literal(by.none())));
                    }
                }
                AccumulatorWords::Best { best, smallest, .. } => {
                    let worst = literal(if smallest { i64::MAX } else { i64::MIN });
                    self.text.line(format!("i64 a{best} = {worst};"));
                }
            }
            let count = accumulator.count();
            if count != ROWS_COUNT {
                self.text.line(format!("i64 a{count} = 0;"));
            }
        }
    }

    /// Adds what was held of a group elsewhere to its table.
    pub(crate) fn write_out(
        &mut self,
        accumulators: &[AccumulatorWords],
        table: &str,
        number: &dyn Fn(usize) -> String,
        float: &dyn Fn(usize) -> String,
    ) {
        let item = |accumulator: &AccumulatorWords| Self::held_item(accumulator, number, float);
        let mut moments = Vec::new();
        let mut write = |operation: &str, at: usize, value: String| {
            self.text.line(format!("{operation}({table} + {at}, {value});"));
        };
        write("ADD", ROWS_COUNT, number(ROWS_COUNT));
        for accumulator in accumulators {
            match *accumulator {
                AccumulatorWords::Count(_) | AccumulatorWords::Elsewhere => {}
                AccumulatorWords::Spread { .. } | AccumulatorWords::Pairs { .. } => {
                    moments.push((*accumulator, item(accumulator)));
                }
                AccumulatorWords::Bits { low, high, by, .. } => {
                    [low].into_iter().chain(high).for_each(|at| write(by.name(), at, number(at)));
                }
                AccumulatorWords::Sum { sum, .. } => write("ADD", sum, number(sum)),
                AccumulatorWords::FloatSum { sum, .. } => write("ADD_F64", sum, float(sum)),
                AccumulatorWords::WideSum { low, high, .. } => {
                    write("ADD", low, number(low));
                    write("ADD", high, number(high));
                }
                AccumulatorWords::LimbSum { first, .. } => {
                    (first..first + 4).for_each(|at| write("ADD", at, number(at)))
                }
                AccumulatorWords::WideBest { .. } => {}
                AccumulatorWords::Best { best, smallest, from, .. } => {
                    write(choose(smallest, from), best, number(best))
                }
            }
            let count = accumulator.count();
            if count != ROWS_COUNT {
                write("ADD", count, number(count));
            }
        }
        for (accumulator, item) in moments {
            self.text.open(&format!("if ({}) {{", number(accumulator.count())));
            let place = |at: usize| format!("{table} + {at}");
            self.add_item(&accumulator, ("", false), &place, &item);
            self.text.close();
        }
    }
}

/// Returns a number in C.
fn literal(number: i64) -> String {
    match number {
        i64::MIN => "(-0x7fffffffffffffffL - 1)".into(),
        i64::MAX => "0x7fffffffffffffffL".into(),
        number => number.to_string(),
    }
}
