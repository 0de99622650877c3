//! The arguments of each tool: one struct is both the schema that the model is shown and what is read back.
//!
//! Must not check what needs the file system. Invariant: an unknown key or a wrong type is an error that names the key.
//! Numbers and truth values are also taken from strings (`"10"`, `"true"`), which models send now and then.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::failure::Failure;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// Path of the file, absolute or relative to the working directory.
    pub(super) file_path: String,
    /// First line to read, counted from 1. Default 1.
    #[serde(default, deserialize_with = "number")]
    #[schemars(with = "Option<u64>", range(min = 1))]
    pub(super) offset: Option<u64>,
    /// How many lines to read. Default 2000.
    #[serde(default, deserialize_with = "number")]
    #[schemars(with = "Option<u64>", range(min = 1))]
    pub(super) limit: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    /// Path of the file, absolute or relative to the working directory.
    pub(super) file_path: String,
    /// The whole new content.
    pub(super) content: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArguments {
    /// Path of the file, absolute or relative to the working directory.
    pub(super) file_path: String,
    /// The text to replace, exactly as it stands in the file, without the line numbers that Read shows.
    pub(super) old_string: String,
    /// The text to put there.
    pub(super) new_string: String,
    /// Replace every occurrence. Default false: old_string must occur exactly once.
    #[serde(default, deserialize_with = "truth")]
    #[schemars(with = "Option<bool>")]
    pub(super) replace_all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobArguments {
    /// For example `**/*.rs`, `src/**/*.{ts,tsx}`. A pattern without a slash matches file names at any depth.
    pub(super) pattern: String,
    /// Directory to look in. Default: the working directory.
    #[serde(default)]
    pub(super) path: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepArguments {
    /// Regular expression in Rust's syntax; escape braces and parentheses that are meant literally.
    pub(super) pattern: String,
    /// File or directory to search. Default: the working directory. A file named here is searched even if it is ignored.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// Only files that match this glob, for example `*.rs` or `src/**/*.ts`.
    #[serde(default)]
    pub(super) glob: Option<String>,
    /// Only files of this type, for example `rust`, `js`, `py`.
    #[serde(default, rename = "type")]
    pub(super) file_type: Option<String>,
    /// What to show. Default files_with_matches.
    #[serde(default)]
    pub(super) output_mode: Option<OutputMode>,
    /// Ignore case. Default false.
    #[serde(default, rename = "-i", deserialize_with = "truth")]
    #[schemars(with = "Option<bool>")]
    pub(super) ignore_case: bool,
    /// Show line numbers (content). Default true.
    #[serde(default, rename = "-n", deserialize_with = "optional_truth")]
    #[schemars(with = "Option<bool>")]
    pub(super) line_numbers: Option<bool>,
    /// Lines to show after each match (content).
    #[serde(default, rename = "-A", deserialize_with = "number")]
    #[schemars(with = "Option<u64>")]
    pub(super) after: Option<u64>,
    /// Lines to show before each match (content).
    #[serde(default, rename = "-B", deserialize_with = "number")]
    #[schemars(with = "Option<u64>")]
    pub(super) before: Option<u64>,
    /// Lines to show before and after each match (content).
    #[serde(default, rename = "-C", deserialize_with = "number")]
    #[schemars(with = "Option<u64>")]
    pub(super) around: Option<u64>,
    /// At most so many lines (content) or files. Default 250; 0 means as many as are allowed, 2000.
    #[serde(default, deserialize_with = "number")]
    #[schemars(with = "Option<u64>")]
    pub(super) head_limit: Option<u64>,
    /// Let the pattern match across lines, `.` included. Default false.
    #[serde(default, deserialize_with = "truth")]
    #[schemars(with = "Option<bool>")]
    pub(super) multiline: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputMode {
    Content,
    FilesWithMatches,
    Count,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BashArguments {
    /// The command line, run by `bash -c`.
    pub(super) command: String,
    /// Milliseconds to wait before the command goes on in the background.
    #[serde(default, deserialize_with = "number")]
    #[schemars(with = "Option<u64>", range(min = 1))]
    pub(super) timeout: Option<u64>,
    /// What the command does, in five to ten words, for the user.
    #[serde(default)]
    pub(super) description: Option<String>,
    /// Start it in the background and return at once. Default false.
    #[serde(default, deserialize_with = "truth")]
    #[schemars(with = "Option<bool>")]
    pub(super) run_in_background: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BashOutputArguments {
    /// Id of a background task, for example `bash_1`. Without it the tasks are listed.
    #[serde(default, alias = "shell_id")]
    pub(super) bash_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KillBashArguments {
    /// Id of a background task, for example `bash_1`.
    #[serde(alias = "shell_id")]
    pub(super) bash_id: String,
}

/// Reads a tool's arguments.
pub(super) fn parse<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, Failure> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner();
        // At the top of the object the reason names the field itself: "missing field `content`".
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        Failure::new(format!("Invalid arguments for {tool}: {place}{reason}."))
    })
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Number(number) => whole(&number).map(Some),
        Value::String(text) => match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(D::Error::custom(format!("expected a whole number of at least 0, not {text:?}"))),
        },
        other => Err(D::Error::custom(format!("expected a whole number of at least 0, not {other}"))),
    }
}

/// `2000.0` is a whole number too: some encoders write every number with a point.
fn whole<E: serde::de::Error>(number: &serde_json::Number) -> Result<u64, E> {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(number) = number.as_u64() {
        return Ok(number);
    }
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&float) => Ok(float as u64),
        _ => Err(E::custom(format!("expected a whole number of at least 0, not {number}"))),
    }
}

fn optional_truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Bool(truth) => Ok(Some(truth)),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        other => Err(D::Error::custom(format!("expected true or false, not {other}"))),
    }
}

fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(optional_truth(deserializer)?.unwrap_or(false))
}
