//! Every example runs, and every snippet of the guide is in one.

use std::{fs, path::Path};

#[path = "../examples/arrow_tables.rs"]
mod arrow_tables;
#[path = "../examples/async_stream.rs"]
mod async_stream;
#[path = "../examples/cancellation.rs"]
mod cancellation;
#[path = "../examples/devices.rs"]
mod devices;
#[path = "../examples/parameters.rs"]
mod parameters;
#[path = "../examples/quickstart.rs"]
mod quickstart;
#[path = "../examples/rust_function.rs"]
mod rust_function;
#[path = "../examples/what_ran_where.rs"]
mod what_ran_where;

/// Each example by its file's name.
const EXAMPLES: [(&str, fn() -> tandem::Result<()>); 8] = [
    ("arrow_tables", arrow_tables::main),
    ("async_stream", async_stream::main),
    ("cancellation", cancellation::main),
    ("devices", devices::main),
    ("parameters", parameters::main),
    ("quickstart", quickstart::main),
    ("rust_function", rust_function::main),
    ("what_ran_where", what_ran_where::main),
];

#[test]
fn every_example_runs() {
    for (name, main) in EXAMPLES {
        println!("# {name}");
        main().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn no_example_is_left_out() {
    let mut found: Vec<String> = sources().into_iter().map(|(name, _)| name).collect();
    found.sort();
    assert_eq!(found, EXAMPLES.map(|(name, _)| name));
}

#[test]
fn snippets_of_the_guide_are_in_examples() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/05-embedding.md");
    let guide = fs::read_to_string(guide).expect("the guide is there");
    let sources: Vec<String> = sources().into_iter().map(|(_, text)| plain(&text)).collect();
    let mut blocks = guide.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    assert!(blocks.clone().count() > 5, "the guide has lost its snippets");
    let missing: Vec<&str> =
        blocks.by_ref().filter(|block| !sources.iter().any(|s| s.contains(&plain(block)))).collect();
    assert!(missing.is_empty(), "in no example:\n{}", missing.join("\n"));
}

/// Every example's name and text.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("examples are text"))
    };
    fs::read_dir(folder).expect("the folder is there").map(read).collect()
}

/// Text without its indentation and line breaks, which differ between a guide and a program.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
