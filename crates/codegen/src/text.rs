//! Kernel text under construction: arguments as they are first needed, statements, numbered temporaries.

use std::fmt::Write;

use crate::Binding;

/// A kernel under construction.
#[derive(Default)]
pub(crate) struct Text {
    /// Arguments in order: what each is bound to, its C type, its name and a remark.
    arguments: Vec<(Binding, String, String, String)>,
    body: String,
    depth: usize,
    temporaries: usize,
}

impl Text {
    /// Returns the name of the argument with a binding, which becomes one when first asked for.
    pub(crate) fn argument(&mut self, binding: Binding, kind: &str, name: &str, remark: &str) -> String {
        // Equal constants stay apart: another query of the same shape may have other ones.
        let known = self.arguments.iter().find(|(known, ..)| *known == binding);
        if let (Some((.., name, _)), false) = (known, matches!(binding, Binding::Constant(_))) {
            return name.clone();
        }
        let name = match binding {
            Binding::Constant(_) => {
                let constants = self.arguments.iter().filter(|(known, ..)| matches!(known, Binding::Constant(_)));
                format!("k{}", constants.count())
            }
            _ => name.to_string(),
        };
        self.arguments.push((binding, kind.to_string(), name.clone(), remark.to_string()));
        name
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

    /// Returns the whole text, with the given lines before the kernel, and the bindings of its arguments.
    pub(crate) fn finish(self, before: &str, name: &str) -> (String, Vec<Binding>) {
        let mut text = String::from(before);
        let _ = writeln!(text, "KERNEL void {name}(");
        let last = self.arguments.len().saturating_sub(1);
        for (at, (_, kind, name, remark)) in self.arguments.iter().enumerate() {
            let comma = if at == last { ")" } else { "," };
            let space = if kind.ends_with('*') { "" } else { " " };
            let remark = if remark.is_empty() { String::new() } else { format!("  // {remark}") };
            let _ = writeln!(text, "    {kind}{space}{name}{comma}{remark}");
        }
        text.push_str("{\n");
        text.push_str(&self.body);
        text.push_str("}\n");
        (text, self.arguments.into_iter().map(|(binding, ..)| binding).collect())
    }
}
