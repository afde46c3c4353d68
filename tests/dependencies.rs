//! The direction of dependencies between crates, and what each crate may name.

use std::{
    collections::{BTreeMap, BTreeSet},
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
    ("tandem", &["tandem-engine"]),
    (
        "tandem-cli",
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
const HOSTS: &[&str] = &["tandem-engine"];
/// Crates that may have unsafe code: buffer views, SIMD, drivers' C functions, and the pool that lends borrowed closures
/// to its workers.
const UNSAFE: &[&str] = &["tandem-column", "tandem-cpu", "tandem-device", "tandem-runtime", "tandem-limit"];

/// Statics that may be: what the allocator and the drivers ask for, what a thread knows of itself, the guard's hook, a table.
const STATICS: &[(&str, &str)] = &[
    ("cli/src/main.rs", "ALLOCATOR"),
    ("node/src/main.rs", "ALLOCATOR"),
    ("device/src/opencl/platform.rs", "LISTING"),
    ("runtime/src/pool.rs", "WORKER"),
    ("column/src/guard.rs", "GUARDED"),
    ("column/src/guard.rs", "WRAPPED"),
    ("cpu/src/mask.rs", "POSITIONS"),
];
/// Files that may read the environment: the edges, what they call to do so (`from_environment`), and support of tests.
const ENVIRONMENT: &[&str] = &[
    "cli/src/shell/mod.rs",
    "cli/src/terminal.rs",
    "node/src/trust.rs",
    "device/src/find.rs",
    "runtime/src/device/cache.rs",
    "runtime/src/device/settings.rs",
    "device/src/shim/device.rs",
    "device/src/testing.rs",
    "pipeline/src/random/mod.rs",
];

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

/// What is shared is a field of a context that is passed, so that sessions, daemons and tests in one process do not meet.
#[test]
fn nothing_is_global() {
    let mut found = Vec::new();
    for (file, text) in crates().values().flat_map(|(directory, _)| sources(directory)) {
        for line in text.lines().map(str::trim) {
            let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
            if let Some(name) = line.strip_prefix("static ").and_then(|rest| rest.split(':').next()) {
                found.push((file.clone(), name.trim_start_matches("mut ").to_owned()));
            }
        }
    }
    let allowed = |file: &Path, name: &str| STATICS.iter().any(|(end, known)| file.ends_with(end) && *known == name);
    for (file, name) in &found {
        assert!(allowed(file, name), "{} has the static {name}: pass a context", file.display());
    }
    assert_eq!(found.len(), STATICS.len(), "a static is gone, and its line here can go: {found:?}");
}

#[test]
fn the_environment_is_read_at_the_edges() {
    for (directory, _) in crates().values() {
        for (file, text) in sources(directory) {
            let path = file.strip_prefix(directory).expect("sources are in their crate");
            let of_tests = path.iter().any(|name| name == "tests" || name == "tests.rs");
            let allowed = of_tests || ENVIRONMENT.iter().any(|end| file.ends_with(end));
            let reads = text.lines().any(|line| line.contains("env::var"));
            assert!(!reads || allowed, "{} reads the environment: take what it says as an argument", file.display());
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

/// The stages of planning call each other in one direction: capture, lowering, join order, the tree they work on.
#[test]
fn planning_has_no_circles() {
    let uses = planning_uses();
    for stage in ["capture", "lower", "join_order", "tree"] {
        assert!(uses.contains_key(stage), "the engine's planning has no module '{stage}'");
    }
    assert!(uses["capture"].contains("lower") && uses["lower"].contains("join_order"), "uses are not found: {uses:?}");
    for module in uses.keys() {
        let mut reached = BTreeSet::new();
        let mut pending = vec![module];
        while let Some(next) = pending.pop() {
            for used in uses.get(next).into_iter().flatten() {
                assert!(used != module, "{module} and {next} of the engine's planning use each other");
                if reached.insert(used) {
                    pending.push(used);
                }
            }
        }
    }
}

/// Which modules of the engine's planning each of them names; tests aside.
fn planning_uses() -> BTreeMap<String, BTreeSet<String>> {
    let (engine, _) = &crates()["tandem-engine"];
    let planning = engine.join("src/planning");
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources(engine) {
        let Ok(path) = file.strip_prefix(&planning) else { continue };
        let first = path.iter().next().expect("a source has a name").to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        if module != "tests" && module != "mod" {
            let named = planning_names(&text, path.iter().count() == 1);
            uses.entry(module.clone()).or_default().extend(named.into_iter().filter(|name| *name != module));
        }
    }
    let modules: BTreeSet<String> = uses.keys().cloned().collect();
    uses.values_mut().for_each(|named| named.retain(|name| modules.contains(name)));
    uses
}

/// The names that follow `planning::` in a source, alone or in braces; `super::` means the same in a file of that folder.
fn planning_names(text: &str, in_folder: bool) -> BTreeSet<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut names = BTreeSet::new();
    let prefixes: &[&str] = if in_folder { &["planning::", "super::"] } else { &["planning::"] };
    for (at, prefix) in prefixes.iter().flat_map(|prefix| code.match_indices(prefix)) {
        let rest = &code[at + prefix.len()..];
        let (list, alone) = rest.strip_prefix('{').map_or((rest, true), |list| (list, false));
        let (mut depth, mut start) = (0, true);
        for (position, character) in list.char_indices() {
            if start && character.is_alphabetic() {
                let name = list[position..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
                names.insert(name.unwrap_or_default().to_owned());
                start = false;
                if alone {
                    break;
                }
            }
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                _ => {}
            }
        }
    }
    names
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
