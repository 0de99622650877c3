//! Two values side by side, for the message of a failing test.

use std::fmt::{Debug, Write};

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The lines in which two JSON values differ.
pub fn differences(earlier: &Value, later: &Value) -> String {
    line_differences(&format!("{earlier:#}"), &format!("{later:#}"))
}

/// The lines in which two values differ as they show themselves.
pub fn debug_differences(earlier: &impl Debug, later: &impl Debug) -> String {
    line_differences(&format!("{earlier:#?}"), &format!("{later:#?}"))
}

fn line_differences(earlier: &str, later: &str) -> String {
    let diff = TextDiff::from_lines(earlier, later);
    let mut text = String::new();
    for group in diff.grouped_ops(CONTEXT) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{sign}{}", change.value().trim_end_matches('\n'));
        }
    }
    if text.is_empty() { "(the same in all that is shown)".to_owned() } else { text }
}
