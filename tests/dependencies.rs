//! The direction of dependencies between crates, and what each crate may name.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What each crate may depend on directly, lowest first. A crate that is not listed fails the test: place it here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("tandem-column", &[]),
    ("tandem-pipeline", &["tandem-column"]),
    ("tandem-plan", &["tandem-column", "tandem-pipeline"]),
    ("tandem-cpu", &["tandem-column", "tandem-pipeline", "tandem-plan"]),
    ("tandem-codegen", &["tandem-column", "tandem-pipeline", "tandem-plan"]),
    ("tandem-device", &["tandem-column"]),
    (
        "tandem-runtime",
        &["tandem-column", "tandem-pipeline", "tandem-plan", "tandem-cpu", "tandem-codegen", "tandem-device"],
    ),
    ("tandem-scan", &["tandem-column", "tandem-pipeline", "tandem-runtime"]),
    ("tandem-engine", &["tandem-column", "tandem-pipeline", "tandem-cpu", "tandem-runtime", "tandem-scan"]),
    ("tandem-node", &["tandem-column", "tandem-pipeline", "tandem-runtime", "tandem-scan"]),
    ("tandem-generator", &["tandem-column"]),
    ("tandem-limit", &["tandem-column"]),
    (
        "tandem",
        &[
            "tandem-column",
            "tandem-pipeline",
            "tandem-device",
            "tandem-runtime",
            "tandem-scan",
            "tandem-engine",
            "tandem-node",
            "tandem-generator",
            "tandem-limit",
        ],
    ),
];

/// Crates that may name DataFusion.
const HOSTS: &[&str] = &["tandem-engine", "tandem"];
/// Crates that may have unsafe code: buffer views, SIMD, drivers' C functions, and the pool that lends borrowed closures
/// to its workers.
const UNSAFE: &[&str] = &["tandem-column", "tandem-cpu", "tandem-device", "tandem-runtime", "tandem-limit"];

#[test]
fn crates_depend_downwards_only() {
    for (name, (_, manifest)) in crates() {
        let allowed = ALLOWED.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, allowed)| *allowed);
        let allowed = allowed.unwrap_or_else(|| panic!("the crate {name} has no place in the order of dependencies"));
        for dependency in dependencies(&manifest).iter().filter(|d| d.starts_with("tandem")) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn only_the_top_names_datafusion() {
    for (name, (directory, manifest)) in crates() {
        if HOSTS.contains(&name.as_str()) {
            continue;
        }
        for dependency in dependencies(&manifest) {
            assert!(
                !dependency.starts_with("datafusion") && dependency != "tonic",
                "{name} must not name {dependency}"
            );
        }
        for (file, text) in sources(&directory) {
            assert!(!text.contains("datafusion::"), "{} must not use DataFusion", file.display());
        }
    }
}

#[test]
fn unsafe_code_stays_where_it_belongs() {
    for (name, (directory, _)) in crates() {
        for (file, text) in sources(&directory) {
            let found = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.starts_with("//"))
                .any(|line| ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| line.contains(word)));
            assert!(!found || UNSAFE.contains(&name.as_str()), "{} must not have unsafe code", file.display());
        }
    }
}

#[test]
fn modules_begin_with_what_they_are_for() {
    for (_, (directory, _)) in crates() {
        for (file, text) in sources(&directory) {
            assert!(
                text.starts_with("//!") || text.is_empty(),
                "{} does not begin with a module comment",
                file.display()
            );
        }
    }
}

/// Every crate's directory and manifest, by name.
fn crates() -> BTreeMap<String, (PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the workspace");
    let mut directories: Vec<PathBuf> = fs::read_dir(root.join("crates"))
        .expect("crates is readable")
        .map(|entry| entry.expect("crates is readable").path())
        .collect();
    directories.push(root.join("bench/limit"));
    let mut crates = BTreeMap::new();
    for directory in directories {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("every crate has a manifest");
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("every crate has a name");
        crates.insert(name.trim_matches('"').to_owned(), (directory, manifest));
    }
    crates
}

/// The names in the tables of dependencies that are compiled into the crate.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[dependencies") || line.contains(".dependencies]");
        } else if inside && let Some(name) = line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Every Rust source of a crate with its text.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.join("src")];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next).expect("sources are readable") {
            let path = entry.expect("sources are readable").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("sources are text");
                found.push((path, text));
            }
        }
    }
    found
}
