//! The moments of floats, by sums alone: any number of work-items add to them at once.
//!
//! A group's *center* is the first value that reaches it, taken by one exchange. What is summed are differences from it and their squares
//! (and products, of pairs), so that moments around the mean follow by subtraction: of a constant they are exactly 0. A value is at
//! most √(n − 1) deviations from the mean of n, so the subtraction costs at most log2(n) bits, and a few in general.
//!
//! What is added is an *item*: a value, moments around a mean that a partial aggregation left, or sums around another center.

use crate::{AccumulatorWords, kernel::Generator, sink::PAIR_NUMBERS};

/// One more value, or sums of several; what is not given of one value is 0.
#[derive(Clone, Default)]
pub(crate) struct Item {
    /// How many values there are; one if not given.
    pub(crate) count: Option<String>,
    /// For y, then x: what differences are from.
    pub(crate) centers: Vec<String>,
    /// Sums of differences.
    pub(crate) sums: Option<Vec<String>>,
    /// Sums of their squares.
    pub(crate) squares: Option<Vec<String>>,
    /// The sum of their products.
    pub(crate) products: Option<String>,
}

/// Where the numbers of moments are, of y, then of x.
struct Numbers {
    centers: Vec<usize>,
    sums: Vec<usize>,
    squares: Vec<usize>,
    products: Option<usize>,
}

impl Numbers {
    fn of(accumulator: &AccumulatorWords) -> Option<Numbers> {
        match *accumulator {
            AccumulatorWords::Spread { center, sum, squares, .. } => {
                Some(Numbers { centers: vec![center], sums: vec![sum], squares: vec![squares], products: None })
            }
            AccumulatorWords::Pairs { first, .. } => {
                let two = |from: usize| vec![first + from, first + from + 1];
                let products = Some(first + PAIR_NUMBERS - 1);
                Some(Numbers { centers: two(0), sums: two(2), squares: two(4), products })
            }
            _ => None,
        }
    }
}

impl Generator<'_> {
    /// Declares the registers of moments.
    pub(crate) fn declare_moments(&mut self, accumulator: &AccumulatorWords) {
        let Some(numbers) = Numbers::of(accumulator) else { return };
        self.needs_fp64 = true;
        numbers.centers.iter().for_each(|at| self.text.line(format!("i64 a{at} = NO_CENTER;")));
        for at in numbers.sums.iter().chain(&numbers.squares).chain(&numbers.products) {
            self.text.line(format!("f64 a{at} = 0;"));
        }
    }

    /// Returns what was held of moments elsewhere, as an item; `number` and `float` read numbers of them.
    pub(crate) fn held_item(
        accumulator: &AccumulatorWords,
        number: &dyn Fn(usize) -> String,
        float: &dyn Fn(usize) -> String,
    ) -> Item {
        let Some(numbers) = Numbers::of(accumulator) else { return Item::default() };
        Item {
            count: Some(number(accumulator.count())),
            centers: numbers.centers.iter().map(|at| format!("AS_F64({})", number(*at))).collect(),
            sums: Some(numbers.sums.iter().map(|at| float(*at)).collect()),
            squares: Some(numbers.squares.iter().map(|at| float(*at)).collect()),
            products: numbers.products.map(float),
        }
    }

    /// Adds an item to the moments of a group; `place` gives what each number is added to, a register or a pointer.
    pub(crate) fn add_item(
        &mut self,
        accumulator: &AccumulatorWords,
        (prefix, registers): (&str, bool),
        place: &dyn Fn(usize) -> String,
        item: &Item,
    ) {
        let Some(numbers) = Numbers::of(accumulator) else { return };
        self.needs_fp64 = true;
        let count = item.count.as_ref().map(|count| self.text.define("f64", &format!("(f64)({count})")));
        let mut from_center = Vec::with_capacity(numbers.centers.len());
        for (axis, center) in numbers.centers.iter().enumerate() {
            let value = self.text.define("f64", &item.centers[axis]);
            let at = place(*center);
            let center = match registers {
                true => format!("REGISTER_CENTER({at}, {value})"),
                false => format!("{prefix}CENTER({at}, {value})"),
            };
            let difference = self.text.define("f64", &format!("{value} - {center}"));
            let sum = item.sums.as_ref().map(|sums| sums[axis].clone());
            let added = match (&count, &sum) {
                (None, _) => difference.clone(),
                (Some(count), None) => format!("{count} * {difference}"),
                (Some(count), Some(sum)) => format!("{sum} + {count} * {difference}"),
            };
            self.add_float(prefix, registers, &place(numbers.sums[axis]), &added);
            let squares = item.squares.as_ref().map(|squares| squares[axis].clone());
            let added = match (&count, &squares, &sum) {
                (Some(count), Some(squares), None) => format!("{squares} + {count} * {difference} * {difference}"),
                (Some(count), Some(squares), Some(sum)) => {
                    format!("{squares} + {difference} * (2 * ({sum}) + {count} * {difference})")
                }
                _ => format!("{difference} * {difference}"),
            };
            self.add_float(prefix, registers, &place(numbers.squares[axis]), &added);
            from_center.push(difference);
        }
        if let (Some(products), [y, x]) = (numbers.products, from_center.as_slice()) {
            let added = match (&count, &item.products, &item.sums) {
                (Some(count), Some(products), None) => format!("{products} + {count} * {y} * {x}"),
                (Some(count), Some(products), Some(sums)) => {
                    format!("{products} + ({}) * {x} + ({}) * {y} + {count} * {y} * {x}", sums[0], sums[1])
                }
                _ => format!("{y} * {x}"),
            };
            self.add_float(prefix, registers, &place(products), &added);
        }
    }

    fn add_float(&mut self, prefix: &str, registers: bool, place: &str, value: &str) {
        self.text.line(match registers {
            true => format!("{place} += {value};"),
            false => format!("{prefix}ADD_F64({place}, {value});"),
        });
    }
}
