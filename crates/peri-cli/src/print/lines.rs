//! Lines of standard input as messages: what `--input-format stream-json` accepts.
//!
//! Owns: the vocabulary, and the bound of a line. Must not: act on a message. Invariant: whatever comes, a line is a message,
//! a control request, or refused with its number and the reason.

use std::io;

use agent_client_protocol::v1::schema::{ContentBlock, ImageContent, TextContent};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::console::one_line;
use crate::exit::Failure;

/// The longest line, in bytes. A message may carry several images.
const MAX_LINE: usize = 32 << 20;

/// A line that was understood.
#[derive(Clone, PartialEq, Debug)]
pub enum Understood {
    Message(Message),
    Control(Control),
}

/// A prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    pub content: Vec<ContentBlock>,
    /// What its line took.
    pub bytes: usize,
}

/// Something to do about the session rather than in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Control {
    pub request_id: String,
    pub request: Value,
}

/// A line as it came, without its end.
#[derive(PartialEq, Eq, Debug)]
pub enum Line {
    Whole(Vec<u8>),
    /// It was longer than the bound, and was not read to its end.
    TooLong,
}

/// The next line, or None at the end. A last line without a line end counts.
///
/// # Errors
/// Those of the reader.
pub async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok((!line.is_empty()).then_some(Line::Whole(line)));
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let piece = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        if line.len() + piece.len() > MAX_LINE {
            return Ok(Some(Line::TooLong));
        }
        line.extend_from_slice(piece);
        let consumed = piece.len() + usize::from(end.is_some());
        reader.consume(consumed);
        if end.is_some() {
            return Ok(Some(Line::Whole(line)));
        }
    }
}

/// What a line says; None for an empty one.
///
/// # Errors
/// A usage [`Failure`] that names the line.
pub fn understand(line: &Line, number: usize) -> Result<Option<Understood>, Failure> {
    let refused = |reason: String| {
        Failure::usage(format!("line {number} of standard input {reason}")).hint(
            "a line is {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"what to do\"}}; what was read before it has been answered",
        )
    };
    let Line::Whole(bytes) = line else {
        return Err(refused(format!("is longer than {} MiB", MAX_LINE >> 20)));
    };
    let text =
        std::str::from_utf8(bytes).map_err(|error| refused(format!("is not UTF-8 (byte {})", error.valid_up_to())))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_str(text).map_err(|error| refused(format!("is not JSON: {error}")))?;
    let understood = match value.get("type").and_then(Value::as_str) {
        Some("user") => message(&value).map(|content| Understood::Message(Message { content, bytes: bytes.len() })),
        Some("control_request") => control(&value).map(Understood::Control),
        Some(other) => Err(format!("has the type `{}`, which is not known here", one_line(other))),
        None => Err("has no `type`".to_owned()),
    };
    understood.map(Some).map_err(refused)
}

fn control(value: &Value) -> Result<Control, String> {
    match (value.get("request_id").and_then(Value::as_str), value.get("request")) {
        (Some(id), Some(request)) => Ok(Control { request_id: id.to_owned(), request: request.clone() }),
        _ => Err("is a control request without `request_id` and `request`".to_owned()),
    }
}

fn message(value: &Value) -> Result<Vec<ContentBlock>, String> {
    let message = value.get("message").ok_or("has no `message`")?;
    match message.get("role").and_then(Value::as_str) {
        Some("user") | None => {}
        Some(other) => return Err(format!("has a message of the role `{}`, not `user`", one_line(other))),
    }
    let content = match message.get("content") {
        Some(Value::String(text)) => vec![text_block(text)],
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect::<Result<_, String>>()?,
        _ => return Err("has a message without `content`, which is text or a list of blocks".to_owned()),
    };
    let says_nothing = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty());
    match content.iter().all(says_nothing) {
        true => Err("has an empty message".to_owned()),
        false => Ok(content),
    }
}

fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

fn block(block: &Value) -> Result<ContentBlock, String> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => {
            text(block, "text").map(|text| text_block(&text)).ok_or("has a text block without `text`".to_owned())
        }
        Some("image") => {
            let source = block.get("source").unwrap_or(&Value::Null);
            match (text(source, "type").as_deref(), text(source, "media_type"), text(source, "data")) {
                (Some("base64"), Some(media_type), Some(data)) => {
                    Ok(ContentBlock::Image(ImageContent::new(data, media_type)))
                }
                _ => Err("has an image whose source is not base64 with `media_type` and `data`".to_owned()),
            }
        }
        Some(other) => Err(format!("has a block of the type `{}`; text and image are known", one_line(other))),
        None => Err("has a block without `type`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    fn check(line: &str, expect: Result<usize, &str>) {
        match (understand(&Line::Whole(line.as_bytes().to_vec()), 3), expect) {
            (Ok(Some(Understood::Message(message))), Ok(blocks)) => assert_eq!(message.content.len(), blocks, "{line}"),
            (Ok(Some(Understood::Control(_)) | None), Ok(0)) => {}
            (Err(failure), Err(part)) => {
                let text = failure.to_string();
                assert!(text.contains("line 3 of standard input") && text.contains(part), "{line}: {text}");
            }
            (got, expect) => panic!("{line}: {got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn lines_are_messages_or_refused_with_a_reason() {
        check(r#"{"type":"user","message":{"role":"user","content":"hi"}}"#, Ok(1));
        check(
            r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
            Ok(2),
        );
        check(
            r#"{"type":"user","session_id":"","parent_tool_use_id":null,"message":{"role":"user","content":[
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}}"#,
            Ok(1),
        );
        check(r#"{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}"#, Ok(0));
        check("  ", Ok(0));
        check("hello", Err("is not JSON"));
        check("[1]", Err("has no `type`"));
        check(r#"{"type":"assistant"}"#, Err("`assistant`, which is not known"));
        check(r#"{"type":"user"}"#, Err("has no `message`"));
        check(r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#, Err("role `assistant`"));
        check(r#"{"type":"user","message":{"role":"user"}}"#, Err("without `content`"));
        check(r#"{"type":"user","message":{"role":"user","content":" "}}"#, Err("empty"));
        check(r#"{"type":"user","message":{"role":"user","content":[]}}"#, Err("empty"));
        check(r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#, Err("`tool_result`"));
        check(
            r#"{"type":"user","message":{"content":[{"type":"image","source":{"type":"url","url":"x"}}]}}"#,
            Err("not base64"),
        );
        check(r#"{"type":"control_request"}"#, Err("request_id"));
    }

    #[tokio::test]
    async fn a_line_is_bounded() {
        let fits = [vec![b'a'; MAX_LINE], b"\nb".to_vec()].concat();
        let mut reader = BufReader::new(fits.as_slice());
        assert!(matches!(next_line(&mut reader).await, Ok(Some(Line::Whole(line))) if line.len() == MAX_LINE));
        assert_eq!(next_line(&mut reader).await.ok().flatten(), Some(Line::Whole(b"b".to_vec())));
        assert_eq!(next_line(&mut reader).await.ok().flatten(), None);
        let too_long = vec![b'a'; MAX_LINE + 1];
        assert_eq!(next_line(&mut BufReader::new(too_long.as_slice())).await.ok().flatten(), Some(Line::TooLong));
    }
}
