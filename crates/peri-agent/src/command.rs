//! Commands: inputs whose text begins with `/NAME`.
//!
//! Must not: know what a command does; the middleware that contributed it runs it. Invariant: the transcript keeps what
//! was typed, followed by what the command made of it.

use peri_acp_types::{CommandSpec, Content, TurnError};

use crate::Middleware;

/// A command in an input.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Invocation<'a> {
    /// The whole text, as it was typed.
    line: &'a str,
    name: &'a str,
    /// What follows the name, trimmed.
    input: &'a str,
}

/// The input as it is committed: unchanged, or with the text of its command put after what was typed. May wait as long
/// as the command takes; dropping the future drops the command.
///
/// # Errors
/// [`TurnError::Command`] where the command could not be run.
pub(crate) async fn expanded(
    content: Vec<Content>,
    commands: &[CommandSpec],
    middlewares: &[std::sync::Arc<dyn Middleware>],
) -> Result<Vec<Content>, TurnError> {
    let Some((index, invocation)) = find(&content, commands) else { return Ok(content) };
    let text = run(&invocation, middlewares).await?;
    let mut expanded = content.clone();
    if !text.trim().is_empty() {
        expanded.insert(index + 1, Content::Text(text));
    }
    Ok(expanded)
}

/// Whether an input is a command.
pub(crate) fn begins_with_command(content: &[Content], commands: &[CommandSpec]) -> bool {
    find(content, commands).is_some()
}

/// The command in the first text of an input, and where that text is. A name that nobody contributed is ordinary text:
/// `/usr/bin is full`.
fn find<'a>(content: &'a [Content], commands: &[CommandSpec]) -> Option<(usize, Invocation<'a>)> {
    let (index, line) = content.iter().enumerate().find_map(|(index, content)| match content {
        Content::Text(text) => Some((index, text.as_str())),
        Content::Image(_) | Content::Resource { .. } => None,
    })?;
    let after_slash = line.trim_start().strip_prefix('/')?;
    let (name, input) = after_slash.split_once(char::is_whitespace).unwrap_or((after_slash, ""));
    let known = commands.iter().any(|command| command.name == name);
    known.then_some((index, Invocation { line, name, input: input.trim() }))
}

async fn run(invocation: &Invocation<'_>, middlewares: &[std::sync::Arc<dyn Middleware>]) -> Result<String, TurnError> {
    let failed = |reason: String| TurnError::Command { name: invocation.name.to_owned(), reason };
    for middleware in middlewares {
        if let Some(result) = middleware.run_command(invocation.name, invocation.input).await {
            return result.map_err(failed);
        }
    }
    Err(failed("its provider is gone".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, String)> {
        let named = |name: &str| CommandSpec { name: name.into(), description: String::new(), input_hint: None };
        let content = [Content::Resource { uri: "file:///a".into(), mime_type: None, text: None }, text_block(text)];
        let (index, invocation) = find(&content, &[named("review"), named("docs:page")])?;
        assert_eq!((index, invocation.line), (1, text));
        Some((invocation.name.to_owned(), invocation.input.to_owned()))
    }

    fn text_block(text: &str) -> Content {
        Content::Text(text.into())
    }

    #[test]
    fn only_a_contributed_name_right_after_the_slash_is_a_command() {
        let some = |name: &str, input: &str| Some((name.to_owned(), input.to_owned()));
        assert_eq!(found("/review"), some("review", ""));
        assert_eq!(found("  /review  src/lib.rs \nand its tests\n"), some("review", "src/lib.rs \nand its tests"));
        assert_eq!(found("/docs:page\t2"), some("docs:page", "2"));
        for text in ["review", "/ review", "//review", "/reviewer", "/Review", "/review/src", "say /review", "/", ""] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
