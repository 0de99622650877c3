//! The one table of what varies from run to run in a snapshot: ids, times, ports, temporary paths.
//!
//! For insta with its feature `filters`: `insta::with_settings!({filters => peri_testkit::snapshot::filters()}, { ... })`.

/// Regular expressions and what stands in place of what they match, in the order in which they apply.
const FILTERS: [(&str, &str); 8] = [
    (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "[uuid]"),
    (r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?", "[time]"),
    // Unix time in milliseconds, from 2001 to 2286.
    (r"\b1\d{12}\b", "[ms]"),
    (r#""(elapsedMs|duration_ms|durationMs|duration_api_ms)":\s*\d+"#, r#""$1": "[duration]""#),
    (r"\b\d+(\.\d+)? ?(ms|s)\b", "[duration]"),
    (r"\b(127\.0\.0\.1|localhost):\d{2,5}\b", "$1:[port]"),
    (r"(/private)?(/var/folders/[^/\s]+/[^/\s]+/T|/tmp|/var/tmp)/\.?tmp[A-Za-z0-9]{6,}", "[tmp]"),
    (r"\bperi/\d+\.\d+\.\d+\b", "peri/[version]"),
];

/// The table, as insta takes it.
pub fn filters() -> Vec<(&'static str, &'static str)> {
    FILTERS.to_vec()
}
