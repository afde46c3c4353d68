//! What must agree with the table: itself, the .proto file, the documents, Spark's translation and the generator.
//!
//! `UPDATE_GOLDENS=1` writes the parts of files that are made from the table.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::*;
use crate::{Expr, Type, random};

/// Returns the path of a file of the repository.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Requires a part of a file, from behind `start` to before `end`, to be this text; or writes it.
fn assert_part(file: &str, start: &str, end: &str, wanted: &str) {
    let text = fs::read_to_string(path(file)).unwrap();
    let from = text.find(start).unwrap_or_else(|| panic!("{file} lacks {start}")) + start.len();
    let to = from + text[from..].find(end).unwrap_or_else(|| panic!("{file} lacks {end}"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(path(file), format!("{}{wanted}{}", &text[..from], &text[to..])).unwrap();
    } else {
        assert_eq!(&text[from..to], wanted, "{file} differs from the table; UPDATE_GOLDENS=1 writes it anew");
    }
}

/// Returns a variant's name as protobuf writes it.
fn wire_name(variant: &str) -> String {
    let mut name = String::from("FUNCTION");
    for character in variant.chars() {
        if character.is_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_uppercase());
    }
    name
}

#[test]
fn numbers_and_names_are_unique_and_without_gaps() {
    let mut numbers: Vec<i32> = TABLE.iter().map(|entry| entry.number).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=TABLE.len() as i32));
    let sql: Vec<&str> = TABLE.iter().flat_map(|entry| entry.sql).copied().collect();
    assert_eq!(sql.iter().collect::<BTreeSet<_>>().len(), sql.len(), "a name of SQL means two functions");
    for function in Function::all() {
        assert_eq!(Function::from_name(&function.name()), Some(function));
        assert_eq!(Entry::of_number(function.entry().number).unwrap().function(function.field()), Some(function));
    }
}

#[test]
fn a_repeated_or_optional_argument_is_at_the_end() {
    for entry in TABLE {
        let required =
            |argument: &ArgumentRule| !matches!(argument, ArgumentRule::Optional(_) | ArgumentRule::Repeated(_));
        assert!(entry.arguments.is_sorted_by_key(|argument| !required(argument)), "{}", entry.variant);
    }
}

#[test]
fn the_protobuf_file_has_the_functions_of_the_table() {
    let mut entries: Vec<&Entry> = TABLE.iter().collect();
    entries.sort_by_key(|entry| entry.number);
    let mut text = String::from("\n  FUNCTION_UNSPECIFIED = 0;\n");
    for entry in entries {
        text.push_str(&format!("  {} = {}; // {}\n", wire_name(entry.variant), entry.number, entry.meaning));
        let known = crate::proto::Function::try_from(entry.number).map(|function| function.as_str_name());
        if std::env::var_os("UPDATE_GOLDENS").is_none() {
            assert_eq!(known, Ok(&wire_name(entry.variant)[..]), "the generated messages are old");
        }
    }
    assert_part("crates/pipeline/proto/pipeline.proto", "\nenum Function {", "}", &text);
}

#[test]
fn the_documents_have_the_functions_of_the_table() {
    let mut text = String::from("\n");
    for group in [Group::Conditional, Group::Text, Group::Pattern, Group::Date, Group::Number, Group::Bit] {
        let entries: Vec<&Entry> = TABLE.iter().filter(|entry| entry.group == group && !entry.sql.is_empty()).collect();
        if entries.is_empty() {
            continue;
        }
        let name = format!("{group:?}").to_lowercase();
        text.push_str(&format!("| {name} | of | gives | null | error |\n|---|---|---|---|---|\n"));
        for entry in entries {
            let escaped = |text: &str| text.replace('|', "\\|");
            let names: Vec<String> = entry.sql.iter().map(|name| format!("`{}`", escaped(name))).collect();
            let arguments: Vec<String> = entry.arguments.iter().map(ArgumentRule::to_string).collect();
            let (names, arguments) = (names.join(", "), arguments.join(", "));
            let (nulls, fails) = (entry.nulls.to_string(), entry.fails);
            let row = format!("| {names} | {arguments} | {} | {nulls} | {fails} |\n", entry.meaning);
            text.push_str(&row.replace("  |", " |"));
        }
        text.push('\n');
    }
    assert_part("docs/01-sql.md", "<!-- functions of the table -->\n", "<!-- end of the table -->", &text);
}

#[test]
fn spark_translates_the_functions_of_the_table() {
    let folder = path("hosts/spark/src/main/scala/org/apache/spark/sql/execution/tandem");
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let scala: String = files.collect();
    let words: BTreeSet<&str> =
        scala.split(|character: char| !(character.is_alphanumeric() || character == '_')).collect();
    for entry in TABLE {
        let (name, used) = (wire_name(entry.variant), words.contains(&wire_name(entry.variant)[..]));
        assert_eq!(used, !entry.spark.is_empty(), "the table and the Scala sources disagree about {name}");
        for expression in entry.spark {
            let case = scala.contains(&format!("case {expression}(")) || scala.contains(&format!(": {expression} "));
            assert!(case, "the table says that Spark's {expression} is translated, and no case does");
        }
    }
    let stray = words.iter().filter(|word| word.starts_with("FUNCTION_"));
    for word in stray {
        assert!(TABLE.iter().any(|entry| wire_name(entry.variant) == *word), "{word} is not in the table");
    }
}

#[test]
fn the_generator_makes_every_function() {
    let seed = random::seed();
    println!("TANDEM_SEED={seed}");
    let rng = &mut random::generator(seed);
    let mut missing: BTreeSet<&str> = TABLE.iter().map(|entry| entry.variant).collect();
    // They fail of nearly every text, and of every second row.
    missing.remove("ToDate");
    missing.remove("SingleRow");
    fn note(expr: &Expr, missing: &mut BTreeSet<&str>) {
        if let Expr::Function { function, .. } = expr {
            missing.remove(function.entry().variant);
        }
        expr.children().into_iter().for_each(|child| note(child, missing));
    }
    let kinds = [Type::Boolean, Type::Int32, Type::Int64, Type::Float64, Type::Date, Type::String, Type::Binary];
    for kind in kinds.iter().cycle().take(20_000) {
        note(&random::expression(rng, kind, &[], 3), &mut missing);
    }
    assert!(missing.is_empty(), "never made: {missing:?}");
}
