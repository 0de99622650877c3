//! The corpus of a fuzz target, for the crates' tests.

use std::path::Path;

/// The inputs of that target, by name, in order.
#[allow(clippy::disallowed_methods, reason = "a test's files; some of the crates that run it may read files anyway")]
pub fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("a folder can be listed");
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("an input"))
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs
}

/// Runs a check on every input; a failure names the input.
pub fn run(target: &str, check: fn(&[u8])) {
    for (name, input) in inputs(target) {
        let held = std::panic::catch_unwind(|| check(&input));
        assert!(held.is_ok(), "fuzz/corpus/{target}/{name} does not hold: {}", input.escape_ascii());
    }
}
