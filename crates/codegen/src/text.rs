//! Kernel text under construction: arguments as they are first needed, statements, numbered temporaries.

use std::fmt::Write;

use crate::{Binding, RowColumn};

/// A kernel under construction.
#[derive(Default)]
pub(crate) struct Text {
    /// Arguments in order: what each is bound to, its C type, its name and a remark.
    arguments: Vec<(Binding, String, String, String)>,
    /// Declarations before all statements.
    head: String,
    body: String,
    depth: usize,
    temporaries: usize,
    constants: usize,
}

impl Text {
    /// Returns the name of the argument with a binding, which becomes one when first asked for.
    pub(crate) fn argument(&mut self, binding: Binding, kind: &str, name: &str, remark: &str) -> String {
        // Equal constants stay apart: another query of the same shape may have other ones.
        if let Binding::Constant(_) = binding {
            let name = format!("k{}", self.constants);
            self.constants += 1;
            // A second body meets the same constants in the same order.
            if !self.arguments.iter().any(|(.., known, _)| *known == name) {
                self.arguments.push((binding, kind.to_string(), name.clone(), remark.to_string()));
            }
            return name;
        }
        if let Some((.., name, _)) = self.arguments.iter().find(|(known, ..)| *known == binding) {
            return name.clone();
        }
        self.arguments.push((binding, kind.to_string(), name.to_string(), remark.to_string()));
        name.to_string()
    }

    /// Returns the name of what tells the two launches of a kernel apart: one kernel is compiled in less time than two.
    pub(crate) fn writes(&mut self) -> String {
        self.argument(Binding::Writes, "const u32", "writes", "rows, or only counts them")
    }

    /// Returns the name of an array that the kernel writes. No other argument is of the same memory: without that
    /// promise compilers make code that looks, and take three times as long.
    pub(crate) fn output(&mut self, binding: Binding, kind: &str, name: &str) -> String {
        self.argument(binding, &format!("GLOBAL {kind} *restrict"), name, "")
    }

    /// Writes a value, of 128 bits or of 64, and whether it is null, to a place of an output column.
    pub(crate) fn put(&mut self, at: usize, place: &str, value: &str, wide: bool, null: Option<&str>) -> RowColumn {
        let out = self.output(Binding::Values(at), if wide { "wide" } else { "i64" }, &format!("o{at}"));
        self.line(format!("{out}[{place}] = {value};"));
        if let Some(null) = null {
            let out = self.output(Binding::Nulls(at), "u8", &format!("o{at}n"));
            self.line(format!("{out}[{place}] = (u8)({null});"));
        }
        let nullable = null.is_some();
        if wide { RowColumn::Wide { nullable } } else { RowColumn::Numbers { nullable } }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        for _ in 0..self.depth + 1 {
            self.body.push_str("    ");
        }
        self.body.push_str(line.as_ref());
        self.body.push('\n');
    }

    /// Adds a line that opens a block.
    pub(crate) fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    /// Closes the innermost block.
    pub(crate) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Defines a temporary and returns its name.
    pub(crate) fn define(&mut self, kind: &str, value: &str) -> String {
        let name = format!("t{}", self.temporaries);
        self.temporaries += 1;
        self.line(format!("const {kind} {name} = {value};"));
        name
    }

    /// Declares a temporary that is assigned later and returns its name.
    pub(crate) fn declare(&mut self, kind: &str, value: &str) -> String {
        let name = format!("t{}", self.temporaries);
        self.temporaries += 1;
        self.line(format!("{kind} {name} = {value};"));
        name
    }

    /// Declares a variable before all statements: it keeps its value from row to row.
    pub(crate) fn declare_first(&mut self, line: &str) {
        self.head.push_str(&format!("    {line}\n"));
    }

    /// Takes the statements so far. What follows has the same arguments, and names of its own.
    pub(crate) fn take_body(&mut self) -> String {
        (self.temporaries, self.constants) = (0, 0);
        std::mem::take(&mut self.head) + &std::mem::take(&mut self.body)
    }

    /// Writes a kernel with all arguments known by now.
    pub(crate) fn kernel(&self, name: &str, body: &str) -> String {
        let mut text = format!("KERNEL void {name}(\n");
        let last = self.arguments.len().saturating_sub(1);
        for (at, (_, kind, name, remark)) in self.arguments.iter().enumerate() {
            let comma = if at == last { ")" } else { "," };
            let space = if kind.ends_with('*') { "" } else { " " };
            let remark = if remark.is_empty() { String::new() } else { format!("  // {remark}") };
            let _ = writeln!(text, "    {kind}{space}{name}{comma}{remark}");
        }
        text.push_str("{\n");
        text.push_str(body);
        text.push_str("}\n");
        text
    }

    /// Returns how many arguments there are.
    pub(crate) fn arguments(&self) -> usize {
        self.arguments.len()
    }

    /// Returns what each argument is bound to.
    pub(crate) fn bindings(&self) -> Vec<Binding> {
        self.arguments.iter().map(|(binding, ..)| binding.clone()).collect()
    }
}

/// Puts statements under a condition, and others under its contrary.
pub(crate) fn either(condition: &str, yes: &str, no: &str) -> String {
    let indented = |body: &str| body.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!("    if ({condition}) {{\n{}    }} else {{\n{}    }}\n", indented(yes), indented(no))
}
