//! A stored thread as Markdown, for people to read and to send on.
//!
//! Must not: let what a model or a tool said change the document's structure: results stand in fences that they cannot end.

use peri_acp_types::{AssistantPart, Content, Message, MessageBody, StoredTurnEnd, Thread, ToolResult};

use super::sessions::when;
use super::transcript::arguments;

/// The whole thread.
pub fn of(thread: &Thread) -> String {
    let meta = &thread.meta;
    let title = meta.title.as_deref().unwrap_or("A session without a prompt");
    let mut text = format!(
        "# {}\n\n- Session: `{}`\n- Directory: `{}`\n- Begun: {}\n- Last changed: {}\n",
        title.replace('\n', " "),
        meta.id,
        meta.cwd,
        when(meta.created_at_ms),
        when(meta.updated_at_ms)
    );
    let mut messages = thread.messages.iter().peekable();
    while let Some(message) = messages.next() {
        text.push_str(&message_text(message));
        if messages.peek().is_none_or(|next| next.turn_id != message.turn_id) {
            text.push_str(&turn_end(thread, message));
        }
    }
    text
}

/// What is worth saying of the end of the turn that this message is the last of.
fn turn_end(thread: &Thread, last: &Message) -> String {
    match thread.turns.iter().find(|turn| turn.turn_id == last.turn_id).map(|turn| &turn.end) {
        Some(StoredTurnEnd::Completed(_)) => String::new(),
        Some(StoredTurnEnd::Interrupted(reason)) => format!("\n*Interrupted: {reason}*\n"),
        None => "\n*This turn has no end; its effects are unknown.*\n".to_owned(),
    }
}

fn message_text(message: &Message) -> String {
    match &message.body {
        MessageBody::User(content) => format!("\n## User\n\n{}\n", contents(content)),
        MessageBody::Assistant(assistant) => {
            let parts: String = assistant.parts.iter().map(part).collect();
            format!("\n## {}\n{parts}", assistant.model)
        }
        MessageBody::ToolResults(results) => results.iter().map(result).collect(),
        MessageBody::Summary(summary) => format!("\n## Summary for the model\n\n{}\n", summary.text),
        MessageBody::Notice(words) => format!("\n*{words}*\n"),
    }
}

fn part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(text) => format!("\n{}\n", text.trim_end()),
        // What the model thought is in the JSON form; here it would hide what it said.
        AssistantPart::Thought(_) => String::new(),
        AssistantPart::ToolCall(call) => {
            format!("\n**{}**\n\n{}", call.name, fenced("json", &format!("{:#}", arguments(&call.arguments))))
        }
    }
}

fn result(result: &ToolResult) -> String {
    let failed = if result.output.is_error { "\n*Failed:*\n" } else { "" };
    format!("{failed}\n{}", fenced("text", &contents(&result.output.content)))
}

fn contents(content: &[Content]) -> String {
    let shown: Vec<String> = content
        .iter()
        .map(|content| match content {
            Content::Text(text) => text.clone(),
            Content::Image(image) => format!("*({} image)*", image.mime_type),
            Content::Resource { uri, text: Some(text), .. } => format!("`{uri}`\n\n{}", fenced("", text)),
            Content::Resource { uri, text: None, .. } => format!("`{uri}`"),
        })
        .collect();
    shown.join("\n\n")
}

/// A code block whose fence is longer than any run of backticks within.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_cannot_be_ended_from_within() {
        assert_eq!(fenced("text", "a\n"), "```text\na\n```\n");
        assert_eq!(fenced("", "```\nrm\n````x"), "`````\n```\nrm\n````x\n`````\n");
    }
}
