//! The tools that this server offers: names, descriptions, schemas, hints.
//!
//! Must not do anything. Invariant: order and bytes of the list are the same in every session with the same limits,
//! since they are part of the prefix that providers cache.

use std::sync::Arc;

use peri_acp_types::ToolKind;
use peri_acp_types::ports::META_TOOL_KIND;
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::BashLimits;
use super::arguments::{
    BashArguments, BashOutputArguments, EditArguments, GlobArguments, GrepArguments, KillBashArguments, ReadArguments,
    WriteArguments,
};

/// A tool of this server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WorkspaceTool {
    Read,
    Write,
    Edit,
    Glob,
    Grep,
    Bash,
    BashOutput,
    KillBash,
}

impl WorkspaceTool {
    /// Every tool, in the order of the list.
    pub(super) const ALL: [WorkspaceTool; 8] = [
        WorkspaceTool::Read,
        WorkspaceTool::Write,
        WorkspaceTool::Edit,
        WorkspaceTool::Glob,
        WorkspaceTool::Grep,
        WorkspaceTool::Bash,
        WorkspaceTool::BashOutput,
        WorkspaceTool::KillBash,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            WorkspaceTool::Read => "Read",
            WorkspaceTool::Write => "Write",
            WorkspaceTool::Edit => "Edit",
            WorkspaceTool::Glob => "Glob",
            WorkspaceTool::Grep => "Grep",
            WorkspaceTool::Bash => "Bash",
            WorkspaceTool::BashOutput => "BashOutput",
            WorkspaceTool::KillBash => "KillBash",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<WorkspaceTool> {
        WorkspaceTool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn kind(self) -> ToolKind {
        match self {
            WorkspaceTool::Read | WorkspaceTool::BashOutput => ToolKind::Read,
            WorkspaceTool::Write | WorkspaceTool::Edit => ToolKind::Edit,
            WorkspaceTool::Glob | WorkspaceTool::Grep => ToolKind::Search,
            WorkspaceTool::Bash | WorkspaceTool::KillBash => ToolKind::Execute,
        }
    }

    fn annotations(self) -> ToolAnnotations {
        let hints = |read_only, destructive, idempotent, open_world| {
            ToolAnnotations::from_raw(None, Some(read_only), Some(destructive), Some(idempotent), Some(open_world))
        };
        match self {
            WorkspaceTool::Read | WorkspaceTool::Glob | WorkspaceTool::Grep => hints(true, false, true, false),
            // What was read once is not given again.
            WorkspaceTool::BashOutput => hints(true, false, false, false),
            WorkspaceTool::Write => hints(false, true, true, false),
            WorkspaceTool::Edit => hints(false, true, false, false),
            WorkspaceTool::Bash => hints(false, true, false, true),
            WorkspaceTool::KillBash => hints(false, true, true, false),
        }
    }

    fn input_schema(self) -> JsonObject {
        match self {
            WorkspaceTool::Read => schema_of::<ReadArguments>(),
            WorkspaceTool::Write => schema_of::<WriteArguments>(),
            WorkspaceTool::Edit => schema_of::<EditArguments>(),
            WorkspaceTool::Glob => schema_of::<GlobArguments>(),
            WorkspaceTool::Grep => schema_of::<GrepArguments>(),
            WorkspaceTool::Bash => schema_of::<BashArguments>(),
            WorkspaceTool::BashOutput => schema_of::<BashOutputArguments>(),
            WorkspaceTool::KillBash => schema_of::<KillBashArguments>(),
        }
    }

    fn description(self, limits: &BashLimits) -> String {
        let fixed = match self {
            WorkspaceTool::Read => {
                "Reads a text file and shows it with line numbers (number, tab, line), 2000 lines from the start unless offset and limit say otherwise; lines over 2000 characters are cut. Images (PNG, JPEG, GIF, WebP) are shown to you. Directories, pipes and devices are refused: use Glob or `ls` for directories."
            }
            WorkspaceTool::Write => {
                "Writes a whole file and creates missing directories. A file that exists must have been read with Read in this session, and not have changed since. Prefer Edit for changes to an existing file."
            }
            WorkspaceTool::Edit => {
                "Replaces old_string by new_string in a file that you have read with Read and that has not changed since. old_string must match the file exactly, indentation included, and occur once; add surrounding lines to make it unique, or set replace_all. Write line breaks as \\n: the file's own line endings, encoding and mode are kept."
            }
            WorkspaceTool::Glob => {
                "Finds files by a glob pattern, newest first. Hidden files are found; .git and what .gitignore or .ignore excludes are not. At most 250 paths are shown."
            }
            WorkspaceTool::Grep => {
                "Searches the contents of files by regular expression. Hidden files are searched; .git, binary files and what .gitignore or .ignore excludes are not. output_mode: files_with_matches (paths), content (matching lines as path:line:text) or count (path:number of matching lines). Use this rather than grep or rg in Bash."
            }
            WorkspaceTool::Bash => return bash_description(limits),
            WorkspaceTool::BashOutput => {
                "Shows what a background task of Bash has written since you last looked, and whether it still runs. Without bash_id it lists the tasks."
            }
            WorkspaceTool::KillBash => "Ends a background task of Bash with all the processes it has started.",
        };
        fixed.to_owned()
    }
}

/// The list, as `tools/list` gives it.
pub(super) fn tools(limits: &BashLimits) -> Vec<Tool> {
    let describe = |tool: WorkspaceTool| {
        let mut meta = MetaObject::new();
        meta.insert(META_TOOL_KIND.to_owned(), Value::from(tool.kind().as_str()));
        Tool::new(tool.name(), tool.description(limits), Arc::new(tool.input_schema()))
            .with_annotations(tool.annotations())
            .with_meta(meta)
    };
    WorkspaceTool::ALL.into_iter().map(describe).collect()
}

fn bash_description(limits: &BashLimits) -> String {
    format!(
        "Runs a shell command (bash -c) in the working directory. Every call is a new shell: `cd`, variables and functions do not last, so chain with && or use absolute paths. Standard input is empty; standard output and error come back together, at most 30,000 bytes (start and end kept, the rest in a file that is named). The exit code is told unless it is 0. After {} s (timeout: up to {} s) the command goes on as a background task: see BashOutput and KillBash. Processes left running live until the session ends. Use Read, Edit, Glob and Grep rather than cat, sed, find and grep.",
        limits.default_timeout.as_secs(),
        limits.max_timeout.as_secs()
    )
}

/// The schema of an arguments struct, without what tells the model nothing.
fn schema_of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    plain(&mut schema);
    schema.as_object().cloned().unwrap_or_default()
}

/// Drops the Rust name, formats such as `uint64`, and `null` as a type of what may simply be left out.
fn plain(schema: &mut Schema) {
    schema.remove("title");
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        property.remove("format");
        property.remove("default");
        if let Some(Value::Array(choices)) = property.get_mut("enum") {
            choices.retain(|choice| !choice.is_null());
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                property.insert("type".to_owned(), only);
            }
        }
    }
}
