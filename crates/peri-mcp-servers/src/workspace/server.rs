//! MCP requests to tools and back.
//!
//! Must not do a tool's work. Invariant: whatever is wrong with a call is an error *result*, which the model reads; a
//! protocol error would end the turn.

use std::path::PathBuf;
use std::sync::Arc;

use globset::{GlobBuilder, GlobSetBuilder};
use peri_acp_types::ports::{META_GRANTED_PATHS, META_HIDDEN_PATHS, META_TOOL_DETAILS};
use peri_acp_types::{CancellationToken, Content, FileDiff, ToolDetails, ToolLocation, ToolOutput};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::SERVER_NAME;
use super::arguments::{
    BashArguments, BashOutputArguments, EditArguments, GlobArguments, GrepArguments, KillBashArguments, ReadArguments,
    WriteArguments, parse,
};
use super::catalog::{WorkspaceTool, tools};
use super::failure::Failure;
use super::paths::Grants;
use super::session::Session;
use super::{files, search, terminal, threads};

pub(super) struct Handler {
    session: Arc<Session>,
    closing: CancellationToken,
}

impl Handler {
    /// Calls stop when `closing` is cancelled.
    pub(super) fn new(session: Arc<Session>, closing: CancellationToken) -> Handler {
        Handler { session, closing }
    }

    async fn call(&self, name: &str, arguments: JsonObject, grants: Grants, stop: &CancellationToken) -> ToolOutput {
        let Some(tool) = WorkspaceTool::from_name(name) else {
            let known: Vec<&str> = WorkspaceTool::ALL.into_iter().map(WorkspaceTool::name).collect();
            return ToolOutput::error(format!("There is no tool `{name}`. There are: {}.", known.join(", ")));
        };
        let output = self.run(tool, arguments, grants, stop).await;
        output.unwrap_or_else(|failure| ToolOutput::error(failure.to_string()))
    }

    async fn run(
        &self,
        tool: WorkspaceTool,
        arguments: JsonObject,
        grants: Grants,
        stop: &CancellationToken,
    ) -> Result<ToolOutput, Failure> {
        let name = tool.name();
        match tool {
            WorkspaceTool::Read => {
                let arguments: ReadArguments = parse(name, arguments)?;
                self.blocking(stop, move |session, stop| files::read(session, &arguments, &grants, stop)).await
            }
            WorkspaceTool::Write => {
                let arguments: WriteArguments = parse(name, arguments)?;
                self.blocking(stop, move |session, _| files::write(session, &arguments, &grants)).await
            }
            WorkspaceTool::Edit => {
                let arguments: EditArguments = parse(name, arguments)?;
                self.blocking(stop, move |session, _| files::edit(session, &arguments, &grants)).await
            }
            WorkspaceTool::Glob => {
                let arguments: GlobArguments = parse(name, arguments)?;
                self.blocking(stop, move |session, stop| search::glob(session, &arguments, &grants, stop)).await
            }
            WorkspaceTool::Grep => {
                let arguments: GrepArguments = parse(name, arguments)?;
                self.blocking(stop, move |session, stop| search::grep(session, &arguments, &grants, stop)).await
            }
            WorkspaceTool::Bash => {
                let arguments: BashArguments = parse(name, arguments)?;
                terminal::bash(&self.session.tasks, &arguments, stop).await
            }
            WorkspaceTool::BashOutput => {
                let arguments: BashOutputArguments = parse(name, arguments)?;
                terminal::bash_output(&self.session.tasks, &arguments)
            }
            WorkspaceTool::KillBash => {
                let arguments: KillBashArguments = parse(name, arguments)?;
                terminal::kill_bash(&self.session.tasks, &arguments, stop).await
            }
        }
    }

    /// Runs work that blocks on the file system. A cancelled call returns at once; the work then gives up at its next
    /// look at the token, and a change to a file that has begun is completed, never left half done.
    async fn blocking(
        &self,
        stop: &CancellationToken,
        work: impl FnOnce(&Session, &CancellationToken) -> Result<ToolOutput, Failure> + Send + 'static,
    ) -> Result<ToolOutput, Failure> {
        let (session, work_stop) = (self.session.clone(), stop.clone());
        let under_way = session.work_begins();
        let running = threads::run(move || {
            let _under_way = under_way;
            work(&session, &work_stop)
        });
        tokio::select! {
            done = running => done.unwrap_or_else(|unfinished| Err(Failure::unfinished(&unfinished))),
            () = stop.cancelled() => Err(Failure::new("The call was cancelled.")),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools(self.session.tasks.limits())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let grants = match grants(context.meta.get(META_GRANTED_PATHS), context.meta.get(META_HIDDEN_PATHS)) {
            Ok(grants) => grants,
            Err(reason) => return Ok(result(ToolOutput::error(reason)).into()),
        };
        // One token for both reasons to stop.
        let stop = self.closing.child_token();
        let call = self.call(&request.name, request.arguments.unwrap_or_default(), grants, &stop);
        tokio::pin!(call);
        let output = tokio::select! {
            output = &mut call => output,
            () = context.ct.cancelled() => {
                stop.cancel();
                call.await
            }
        };
        Ok(result(output).into())
    }
}

/// The host's word on paths. Of what it opens only absolute paths count; what it hides must be understood whole.
fn grants(opened: Option<&Value>, hidden: Option<&Value>) -> Result<Grants, String> {
    let texts = |meta: Option<&'_ Value>| -> Vec<String> {
        let texts = meta.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let mut globs = GlobSetBuilder::new();
    for text in texts(hidden) {
        let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build();
        globs
            .add(glob.map_err(|error| format!("A rule that hides files is no glob ({error}); nothing was searched."))?);
    }
    let hidden = globs.build().map_err(|error| format!("The rules that hide files are too many ({error})."))?;
    let opened = texts(opened).into_iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
    Ok(Grants { opened, hidden })
}

fn result(output: ToolOutput) -> CallToolResult {
    let content = output.content.into_iter().map(block).collect();
    let mut result = if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    if output.details != ToolDetails::default() {
        let mut meta = MetaObject::new();
        meta.insert(META_TOOL_DETAILS.to_owned(), details(output.details));
        result.meta = Some(meta);
    }
    result
}

fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image(image) => ContentBlock::image(image.base64, image.mime_type),
        // No tool here gives one; its text is what a model could read of it.
        Content::Resource { uri, text, .. } => ContentBlock::text(text.unwrap_or(uri)),
    }
}

fn details(details: ToolDetails) -> Value {
    json!({
        "locations": details.locations.into_iter().map(location).collect::<Vec<_>>(),
        "diffs": details.diffs.into_iter().map(diff).collect::<Vec<_>>(),
    })
}

fn location(location: ToolLocation) -> Value {
    match location.line {
        Some(line) => json!({"path": location.path, "line": line}),
        None => json!({"path": location.path}),
    }
}

fn diff(diff: FileDiff) -> Value {
    match diff.old_text {
        Some(old_text) => json!({"path": diff.path, "oldText": old_text, "newText": diff.new_text}),
        None => json!({"path": diff.path, "newText": diff.new_text}),
    }
}
