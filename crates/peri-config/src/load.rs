//! Finding the settings in force: reads every source, applies trust, merges.
//!
//! Owns: which sources there are and their order. Invariant: a document of the workspace counts in full only if the trust
//! store vouched for the same files before and after it was read.

use peri_acp_types::ports::{
    ConfigDocument, ConfigPlace, ConfigSource, ConfigSourceError, TrustState, TrustStore, TrustVerdict,
};

use crate::default_providers::default_providers;
use crate::mcp::read_mcp_file;
use crate::merge::Merge;
use crate::parse::parse_object;
use crate::path::shown_text;
use crate::read_document::read_document;
use crate::reader::Sink;
use crate::tighten::{TRUST_HINT, tighten};
use crate::*;

/// What came of all sources.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolution {
    pub settings: Settings,
    /// Warnings, in the order of the sources. Each is to be shown once.
    pub diagnostics: Vec<Diagnostic>,
    pub origins: Origins,
    /// The documents that were found, lowest first.
    pub documents: Vec<Origin>,
    pub trust: WorkspaceTrust,
}

/// Finds the settings in force for a workspace (an absolute path). Reads only; may be repeated and dropped at any point.
///
/// # Errors
/// [`ConfigError::Invalid`] with every finding where a source holds an error. That no model is chosen or that its key is
/// missing is no error here, but of [`Settings::chosen_model`] and [`Settings::provider_for`].
pub async fn load(
    source: &dyn ConfigSource,
    trust: &dyn TrustStore,
    workspace: &str,
    overlay: &CommandLineOverlay,
) -> Result<Resolution, ConfigError> {
    let before = trust.verdict(workspace).await;
    let documents = read_documents(source, workspace, overlay.settings.as_ref()).await;
    let verdict = recheck(trust, workspace, before).await;

    let mut loading = Loading {
        trust: WorkspaceTrust::of(verdict, overlay.trust_workspace),
        merge: Merge::new(source),
        diagnostics: Vec::new(),
        documents: Vec::new(),
    };
    loading.note_trust(workspace);
    for (layer, document) in documents {
        match layer {
            Layer::WorkspaceMcp => loading.add_mcp_file(document),
            _ => loading.add_document(layer, document),
        }
    }
    if let Some(SettingsArgument::Inline(text)) = &overlay.settings {
        loading.add_bytes(Origin::new(Layer::Argument, "--settings"), text.as_bytes());
    }
    loading.add_environment();
    loading.add_command_line(overlay);
    loading.add_default_providers();
    loading.settle(workspace);
    loading.finish()
}

/// Asks again after the documents were read, where the first answer would open the door.
async fn recheck(
    trust: &dyn TrustStore,
    workspace: &str,
    before: Result<TrustVerdict, String>,
) -> Result<TrustVerdict, String> {
    match before {
        Ok(verdict) if verdict.state == TrustState::Trusted => {
            let after = trust.verdict(workspace).await?;
            let same = after.digest == verdict.digest && after.state == TrustState::Trusted;
            Ok(if same { after } else { TrustVerdict { state: TrustState::Changed, ..after } })
        }
        other => other,
    }
}

type FoundDocument = (Layer, Result<ConfigDocument, ConfigSourceError>);

async fn read_documents(
    source: &dyn ConfigSource,
    workspace: &str,
    argument: Option<&SettingsArgument>,
) -> Vec<FoundDocument> {
    let root = workspace.to_owned();
    let mut places = vec![
        (Layer::User, ConfigPlace::User),
        (Layer::WorkspaceMcp, ConfigPlace::WorkspaceMcp { root: root.clone() }),
        (Layer::Workspace, ConfigPlace::Workspace { root: root.clone() }),
        (Layer::WorkspaceLocal, ConfigPlace::WorkspaceLocal { root }),
    ];
    if let Some(SettingsArgument::File(path)) = argument {
        places.push((Layer::Argument, ConfigPlace::File { path: path.clone() }));
    }
    let mut found: Vec<FoundDocument> = Vec::new();
    for (layer, place) in places {
        let document = match (source.read(&place).await.transpose(), place) {
            (Some(document), _) => document,
            (None, ConfigPlace::File { path: origin }) => {
                Err(ConfigSourceError::Unreadable { origin, reason: "there is no such file".to_owned() })
            }
            (None, _) => continue,
        };
        // The user's own file stays the user's where the workspace is the folder that holds it.
        let again = |(_, known): &FoundDocument| matches!((known, &document), (Ok(a), Ok(b)) if a.origin == b.origin);
        if !(layer.needs_trust() && found.iter().any(again)) {
            found.push((layer, document));
        }
    }
    found
}

struct Loading<'a> {
    trust: WorkspaceTrust,
    merge: Merge<'a>,
    diagnostics: Vec<Diagnostic>,
    documents: Vec<Origin>,
}

impl Loading<'_> {
    /// Says what trust means here for files that are no settings of ours.
    fn note_trust(&mut self, workspace: &str) {
        if let TrustGrounds::Unknown(reason) = &self.trust.grounds {
            let origin = Origin::new(Layer::Workspace, workspace);
            let message = format!("counts as not trusted: {}", shown_text(reason));
            self.diagnostics.push(Diagnostic::whole(Severity::Warning, &origin, message).with_hint(TRUST_HINT));
        }
        let Some(verdict) = &self.trust.verdict else { return };
        for file in &verdict.files {
            let inside = file.strip_prefix(verdict.root.as_str()).map(|rest| rest.trim_start_matches('/'));
            if !inside.is_some_and(|inside| inside.starts_with(".claude/")) {
                continue;
            }
            let origin = Origin::new(Layer::Workspace, file);
            let finding = if self.trust.is_trusted() {
                Diagnostic::whole(Severity::Warning, &origin, "is recognised, but has no effect in this version")
            } else {
                ignored_file(&origin, &self.trust)
            };
            self.diagnostics.push(finding);
        }
    }

    /// `.mcp.json` counts in a trusted workspace only. Whatever is wrong with it is a warning.
    fn add_mcp_file(&mut self, document: Result<ConfigDocument, ConfigSourceError>) {
        let origin = |name: &str| Origin::new(Layer::WorkspaceMcp, name);
        match &document {
            _ if !self.trust.is_trusted() => {
                let name = document.as_ref().map_or_else(|error| unreadable(error).0, |document| &document.origin);
                self.diagnostics.push(ignored_file(&origin(name), &self.trust));
            }
            Ok(document) => {
                let origin = origin(&document.origin);
                let (servers, findings) = read_mcp_file(&origin, &document.bytes);
                self.merge.apply_servers(servers, &origin);
                self.diagnostics.extend(findings);
                self.documents.push(origin);
            }
            Err(error) => {
                let (name, reason) = unreadable(error);
                let message = format!("{reason}: the file is left out");
                self.diagnostics.push(Diagnostic::whole(Severity::Warning, &origin(name), message));
            }
        }
    }

    fn add_document(&mut self, layer: Layer, document: Result<ConfigDocument, ConfigSourceError>) {
        match document {
            Ok(document) => self.add_bytes(Origin::new(layer, document.origin), &document.bytes),
            Err(error) => {
                let (origin, reason) = unreadable(&error);
                self.diagnostics.push(Diagnostic::whole(Severity::Error, &Origin::new(layer, origin), reason));
            }
        }
    }

    fn add_bytes(&mut self, origin: Origin, bytes: &[u8]) {
        let sink = Sink::new(origin.clone());
        if let Some(mut map) = parse_object(bytes, &sink) {
            if origin.layer.needs_trust() && !self.trust.is_trusted() {
                tighten(&mut map, &self.trust, &sink);
            }
            let document = read_document(&map, &sink);
            self.merge.apply(document, &origin);
        }
        self.documents.push(origin);
        self.diagnostics.extend(sink.into_findings());
    }

    fn add_environment(&mut self) {
        if let Some(text) = self.merge.variable("PERI_MODEL") {
            let origin = Origin::variable(Layer::Environment, "PERI_MODEL");
            self.set_model(&text, &origin);
        }
    }

    fn add_command_line(&mut self, overlay: &CommandLineOverlay) {
        if let Some(text) = &overlay.model {
            self.set_model(text, &Origin::option("--model"));
        }
        let allow = self.rules(&overlay.allowed_tools, "--allowed-tools");
        self.apply_permissions(PermissionsDocument { allow, ..PermissionsDocument::default() }, "--allowed-tools");
        let deny = self.rules(&overlay.disallowed_tools, "--disallowed-tools");
        self.apply_permissions(PermissionsDocument { deny, ..PermissionsDocument::default() }, "--disallowed-tools");
        let mode = overlay.permission_mode;
        self.apply_permissions(PermissionsDocument { mode, ..PermissionsDocument::default() }, "--permission-mode");

        let thinking = ThinkingDocument { effort: overlay.effort, ..ThinkingDocument::default() };
        let document = SettingsDocument { thinking: Some(thinking), ..SettingsDocument::default() };
        self.merge.apply(document, &Origin::option("--effort"));
        let max_turns = overlay.max_turns.map(std::num::NonZeroU32::get);
        let document = SettingsDocument { max_turns, ..SettingsDocument::default() };
        self.merge.apply(document, &Origin::option("--max-turns"));
        let append_system_prompt = overlay.append_system_prompt.clone();
        let document = SettingsDocument { append_system_prompt, ..SettingsDocument::default() };
        self.merge.apply(document, &Origin::option("--append-system-prompt"));
    }

    fn apply_permissions(&mut self, permissions: PermissionsDocument, option: &str) {
        let document = SettingsDocument { permissions: Some(permissions), ..SettingsDocument::default() };
        self.merge.apply(document, &Origin::option(option));
    }

    fn set_model(&mut self, text: &str, origin: &Origin) {
        match text.trim().parse() {
            Ok(model) => {
                let document = SettingsDocument { model: Some(model), ..SettingsDocument::default() };
                self.merge.apply(document, origin);
            }
            Err(ModelRefError) => {
                let message = format!("`{}` {ModelRefError}", shown_text(text));
                let finding = Diagnostic::whole(Severity::Error, origin, message);
                self.diagnostics.push(match self.with_the_one_provider(text.trim()) {
                    Some(model) => finding.with_hint(format!("did you mean `{model}`?")),
                    None => finding,
                });
            }
        }
    }

    /// A model's bare name with the provider that it can only be of.
    fn with_the_one_provider(&self, name: &str) -> Option<ModelRef> {
        let configured = &self.merge.settings.providers;
        match configured.len() {
            0 => match default_providers(&|name| self.merge.variable(name)).providers.as_slice() {
                [(only, _)] => format!("{only}/{name}").parse().ok(),
                _ => None,
            },
            1 => configured.keys().find_map(|only| format!("{only}/{name}").parse().ok()),
            _ => None,
        }
    }

    fn rules(&mut self, texts: &[String], option: &str) -> Option<Vec<PermissionRule>> {
        let mut rules = Vec::new();
        for text in texts.iter().flat_map(|text| split_rule_list(text)) {
            let origin = Origin::option(option);
            match text.parse::<PermissionRule>() {
                Ok(rule) => {
                    if let Some((message, hint)) = rule.unknown_tool() {
                        let message = format!("rule `{}` {message}", shown_text(&text));
                        let finding = Diagnostic::whole(Severity::Warning, &origin, message);
                        self.diagnostics.push(Diagnostic { hint, ..finding });
                    }
                    rules.push(rule);
                }
                Err(error) => self.error(&origin, format!("rule `{}` {error}", shown_text(&text))),
            }
        }
        Some(rules)
    }

    fn error(&mut self, origin: &Origin, message: String) {
        self.diagnostics.push(Diagnostic::whole(Severity::Error, origin, message));
    }

    /// The environment makes providers only where no source names one.
    fn add_default_providers(&mut self) {
        if !self.merge.settings.providers.is_empty() {
            return;
        }
        let found = default_providers(&|name| self.merge.variable(name));
        self.diagnostics.extend(found.findings);
        for (name, provider) in found.providers {
            self.merge.origins.insert(format!("providers.{name}"), provider.origin.clone());
            self.merge.settings.providers.insert(name.to_owned(), provider);
        }
        if let (None, Some((model, origin))) = (&self.merge.settings.model, found.model) {
            self.set_model(&model, &origin);
        }
    }

    /// What can be said only once all sources are merged.
    fn settle(&mut self, workspace: &str) {
        self.settle_servers();
        let bash = &mut self.merge.settings.bash;
        bash.default_timeout = bash.default_timeout.min(bash.max_timeout);

        let home = self.merge.variable("HOME");
        let directories = &mut self.merge.settings.permissions.additional_directories;
        for Sourced { value, origin } in directories {
            match absolute(value, workspace, home.as_deref()) {
                Some(path) => *value = path,
                None => {
                    let message = format!("`{}` begins with `~`, but HOME is not set", shown_text(value));
                    let finding = Diagnostic::whole(Severity::Error, origin, message).with_hint("write the whole path");
                    self.diagnostics.push(finding.with_key("permissions.additionalDirectories"));
                }
            }
        }
    }

    /// Fills in what environment variables hold; a server that cannot be used is there, but not enabled.
    fn settle_servers(&mut self) {
        for Sourced { value: name, origin } in std::mem::take(&mut self.merge.idle_switches) {
            let finding = Diagnostic::whole(Severity::Warning, &origin, "switches a server that no lower source names");
            self.diagnostics.push(finding.with_key(format!("mcpServers.{name}")));
        }
        for (name, Sourced { value, origin }) in std::mem::take(&mut self.merge.mcp_servers) {
            let (server, faults) = McpServer::resolve(&name, value, &|variable| self.merge.variable(variable));
            self.diagnostics.extend(faults.into_iter().map(|fault| {
                let message = format!("{}: the server is left out", fault.message);
                let finding = Diagnostic::whole(Severity::Warning, &origin, message).with_key(fault.key);
                Diagnostic { hint: Some(fault.hint).filter(|hint| !hint.is_empty()), ..finding }
            }));
            self.merge.settings.mcp_servers.insert(name, Sourced { value: server, origin });
        }
    }

    fn finish(self) -> Result<Resolution, ConfigError> {
        if self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Err(ConfigError::Invalid(self.diagnostics));
        }
        Ok(Resolution {
            settings: self.merge.settings,
            diagnostics: self.diagnostics,
            origins: self.merge.origins,
            documents: self.documents,
            trust: self.trust,
        })
    }
}

/// Says that a workspace's file has no effect.
fn ignored_file(origin: &Origin, trust: &WorkspaceTrust) -> Diagnostic {
    Diagnostic::whole(Severity::Warning, origin, format!("ignored: {}", trust.refusal())).with_hint(TRUST_HINT)
}

/// The document that cannot be read, and why.
fn unreadable(error: &ConfigSourceError) -> (&str, String) {
    match error {
        ConfigSourceError::Unreadable { origin, reason } => (origin, format!("cannot be read: {reason}")),
        ConfigSourceError::Unwritable { origin, .. } | ConfigSourceError::Changed { origin } => {
            (origin, error.to_string())
        }
    }
}

/// None where it takes a home and there is none.
fn absolute(path: &str, workspace: &str, home: Option<&str>) -> Option<String> {
    let below = |folder: &str, rest: &str| match rest.trim_start_matches('/') {
        "" => folder.to_owned(),
        rest => format!("{}/{rest}", folder.trim_end_matches('/')),
    };
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(below(home?, rest)),
        _ if path.starts_with('/') => Some(path.to_owned()),
        _ => Some(below(workspace, path)),
    }
}
