//! "Always": adding rules that allow or deny to the workspace's local settings.
//!
//! Owns: what the new document looks like. Must not: decide which rule to write. Invariant: everything else that the
//! document says stays as it is; a document that cannot be read is not touched.

use peri_acp_types::ports::{ConfigPlace, ConfigSource, ConfigSourceError};
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value};

use crate::parse::{MAX_DOCUMENT_BYTES, parse_object};
use crate::reader::Sink;
use crate::{ConfigError, Layer, Origin, PermissionRule, WorkspaceTrust};

/// How often a write is tried again when somebody else was faster.
const MAX_TRIES: usize = 5;

/// The list of a document to which rules are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleList {
    /// `permissions.allow`.
    Allow,
    /// `permissions.deny`.
    Deny,
}

impl RuleList {
    fn key(self) -> &'static str {
        match self {
            RuleList::Allow => "allow",
            RuleList::Deny => "deny",
        }
    }
}

/// Adds rules to that list of `<workspace>/.peri/settings.local.json`, making it if need be, and gives the path. What others
/// write meanwhile is kept. May be repeated: a rule that is there already is not added again.
///
/// # Errors
/// [`ConfigError::RuleWouldNotApply`] where the workspace's own rules do not count; [`ConfigError::Invalid`] for a document
/// that has to be mended first; [`ConfigError::Source`] where it cannot be written. Nothing is written then.
pub async fn add_local_rules(
    source: &dyn ConfigSource,
    trust: &WorkspaceTrust,
    workspace: &str,
    list: RuleList,
    rules: &[PermissionRule],
) -> Result<String, ConfigError> {
    let place = ConfigPlace::WorkspaceLocal { root: workspace.to_owned() };
    let path = format!("{}/.peri/settings.local.json", workspace.trim_end_matches('/'));
    if !trust.keeps_rules() {
        let reason = trust.refusal().to_owned();
        return Err(ConfigError::RuleWouldNotApply { workspace: workspace.to_owned(), reason });
    }
    let mut tries = 1;
    loop {
        let document = source.read(&place).await?;
        let origin = document.as_ref().map_or(path.clone(), |document| document.origin.clone());
        let bytes = document.as_ref().map(|document| document.bytes.as_slice());
        let Some(patched) = local_rule_patch(&origin, bytes, list, rules)? else { return Ok(origin) };
        match source.write(&place, document.as_ref().map(|document| &document.revision), patched).await {
            Ok(_) => return Ok(origin),
            Err(ConfigSourceError::Changed { .. }) if tries < MAX_TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The bytes of a document with those rules added at the end of the list; None where all are there.
/// Order of keys, indentation and the line break at the end are kept. `origin` is the document's path, for messages.
///
/// # Errors
/// [`ConfigError::Invalid`] where the document cannot be understood, or would become too large.
pub fn local_rule_patch(
    origin: &str,
    bytes: Option<&[u8]>,
    list: RuleList,
    rules: &[PermissionRule],
) -> Result<Option<Vec<u8>>, ConfigError> {
    let sink = Sink::new(Origin::new(Layer::WorkspaceLocal, origin));
    let patched = patch(bytes.unwrap_or_default(), list, rules, &sink);
    match (patched, sink.into_findings()) {
        (Some(bytes), findings) if findings.is_empty() => Ok(bytes),
        (_, findings) => Err(ConfigError::Invalid(findings)),
    }
}

/// The outer None: reported to the sink.
fn patch(bytes: &[u8], list: RuleList, rules: &[PermissionRule], sink: &Sink) -> Option<Option<Vec<u8>>> {
    let mut map = parse_object(bytes, sink)?;
    let permissions = map.entry("permissions").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(permissions) = permissions else {
        sink.error_at("permissions".to_owned(), "must be an object", None);
        return None;
    };
    let listed = permissions.entry(list.key()).or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(listed) = listed else {
        sink.error_at(format!("permissions.{}", list.key()), "must be a list", None);
        return None;
    };
    let before = listed.len();
    for rule in rules.iter().map(PermissionRule::to_string) {
        if !listed.iter().any(|known| known.as_str().map(str::trim) == Some(rule.as_str())) {
            listed.push(Value::String(rule));
        }
    }
    if listed.len() == before {
        return Some(None);
    }
    let written = written_like(bytes, &map).filter(|written| written.len() <= MAX_DOCUMENT_BYTES);
    if written.is_none() {
        sink.whole_error("would become too large".to_owned(), "remove rules that are no longer needed");
    }
    Some(Some(written?))
}

/// The object as text, indented like the document that it replaces.
fn written_like(model: &[u8], map: &Map<String, Value>) -> Option<Vec<u8>> {
    let mut written = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent_of(model));
    map.serialize(&mut serde_json::Serializer::with_formatter(&mut written, formatter)).ok()?;
    written.push(b'\n');
    Some(written)
}

/// The white space before the first indented line.
fn indent_of(model: &[u8]) -> &[u8] {
    let blank = |line: &&[u8]| line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let lines = model.split(|byte| *byte == b'\n');
    let indented = lines.map(|line| line.get(..blank(&line)).unwrap_or_default()).find(|indent| !indent.is_empty());
    indented.unwrap_or(b"  ")
}
