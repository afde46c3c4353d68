//! Operators that are the same for every pipeline: prefix sums, sorting, laying builds out. Their texts are real files.

use crate::{
    KernelLanguage, Traits,
    kernel::{Uses, needs_fp64, prelude},
};

/// All of them, and what they share.
const FILE: &str = concat!(include_str!("prelude/operators.h"), include_str!("prelude/windows.h"));

/// Returns the names of all of them; `prelude/operators.h` and `prelude/windows.h` say what each does.
pub fn operators() -> impl Iterator<Item = &'static str> {
    FILE.lines().filter_map(defined)
}

/// Returns the text of one, a program of its own: a driver takes time for each kernel of a program, whoever launches it.
pub fn operator(name: &str, traits: Traits, target: KernelLanguage) -> String {
    let mut text = String::new();
    let mut within = None;
    for line in FILE.lines() {
        within = within.or_else(|| defined(line));
        // The others, and what is said of them, are left out.
        if within.map_or(!line.starts_with("//"), |within| within == name) {
            text.push_str(line);
            text.push('\n');
        }
        if line == "}" || line.ends_with(')') && !line.starts_with(' ') {
            within = None;
        }
    }
    let uses = Uses { chunked: traits.chunked, fp64: needs_fp64(&text), ..Uses::default() };
    prelude(target, uses, &text) + &text
}

/// Returns the name of the operator whose definition begins with a line: `KERNEL void name(` or `MACRO(name, type)`.
fn defined(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("KERNEL void ") {
        return rest.split_once('(').map(|(name, _)| name);
    }
    let (macro_name, rest) = line.split_once('(')?;
    let is_macro = !macro_name.is_empty() && macro_name.chars().all(|c| c.is_ascii_uppercase());
    rest.split_once(',').filter(|_| is_macro).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_is_a_program() {
        let traits = Traits { chunked: true, fp64: false, int64_atomics: false, traced: false };
        let names: Vec<&str> = operators().collect();
        assert!(names.len() > 20 && names.contains(&"scan") && names.contains(&"scatter_16"), "{names:?}");
        let plain = operator("", traits, KernelLanguage::OpenCl);
        for name in names {
            let text = operator(name, traits, KernelLanguage::OpenCl);
            let definitions: Vec<&str> = text.lines().filter_map(defined).collect();
            assert_eq!(definitions, [name]);
            // What is shared comes with each, and braces are closed.
            assert!(text.len() > plain.len() && text.matches('{').count() == text.matches('}').count(), "{text}");
        }
    }
}
