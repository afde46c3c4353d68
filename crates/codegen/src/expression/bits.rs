//! Functions of bits: computed in unsigned words of 64 bits, and brought to the width of the type at the end.

use tandem_column::{Result, Type};
use tandem_pipeline::{
    Expr, Function,
    range::Range,
    scalar::bits::{is_signed, width},
};

use super::term::{Integer, Term, Width, either, unsupported};
use crate::kernel::Generator;

impl Generator<'_> {
    pub(super) fn bits(&mut self, function: Function, arguments: &[Expr], kind: &Type) -> Result<Term> {
        let (Some(first), Some(range)) = (arguments.first(), Range::of_type(kind)) else {
            return unsupported(format!("the function {function:?} of {kind}"));
        };
        let (left, right) = (self.expression(first)?, self.expression(arguments.get(1).unwrap_or(first))?);
        if left.kind != *kind || right.kind != *kind {
            return unsupported(format!("mixing {} and {}", left.kind, right.kind));
        }
        let null = self.flag(either([left.null.clone(), right.null.clone()]));
        let (left, right) = (left.integer()?.long(), right.integer()?.long());
        // The amount of a shift is taken modulo the width.
        let (by, unused) = (format!("((u64){right} & {})", width(kind) - 1), 64 - width(kind));
        let word = match function {
            Function::BitAnd => format!("(u64){left} & (u64){right}"),
            Function::BitOr => format!("(u64){left} | (u64){right}"),
            Function::BitXor => format!("(u64){left} ^ (u64){right}"),
            Function::BitNot => format!("~(u64){left}"),
            Function::ShiftLeft => format!("(u64){left} << {by}"),
            _ if is_signed(kind) => format!("(u64)((i64){left} >> {by})"),
            _ => format!("(u64){left} >> {by}"),
        };
        let word = self.text.define("u64", &word);
        let value = match (Width::of(range), is_signed(kind)) {
            (Width::Wide, _) => format!("wide_from(0, {word})"),
            (width, true) => format!("({})((i64)({word} << {unused}) >> {unused})", width.c()),
            (width, false) => format!("({})(({word} << {unused}) >> {unused})", width.c()),
        };
        let value = self.text.define(Width::of(range).c(), &value);
        Ok(Term::of(Integer::new(value, range), null, kind.clone()))
    }
}
