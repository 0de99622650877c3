//! How much of a result reaches the session.
//!
//! Builtin tools keep well below these bounds by themselves; they are for servers that know none.
//! Invariant: text is cut at characters' borders, its beginning and end are kept, and the cut says how much is missing.

use peri_acp_types::{Content, ToolOutput};

/// All text of a result, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// An image, in characters of base64; providers take no larger ones.
const MAX_IMAGE: usize = 5 * 1024 * 1024;
/// All images of a result.
const MAX_IMAGES: usize = 20 * 1024 * 1024;
const MAX_PARTS: usize = 256;
/// The text of a file in a diff; larger ones are not shown.
const MAX_DIFF_SIDE: usize = 1024 * 1024;

/// Cuts a result down to what may be kept of it.
pub(super) fn bounded(mut output: ToolOutput) -> ToolOutput {
    let parts = output.content.len();
    output.content.truncate(MAX_PARTS);
    let (mut text_left, mut images_left) = (MAX_TEXT, MAX_IMAGES);
    for part in &mut output.content {
        match part {
            Content::Text(text) | Content::Resource { text: Some(text), .. } => {
                cut(text, text_left);
                text_left = text_left.saturating_sub(text.len());
            }
            Content::Resource { text: None, .. } => {}
            Content::Image(image) => match image.base64.len() {
                size if size <= MAX_IMAGE.min(images_left) => images_left -= size,
                size => {
                    let note = format!("[an image of {size} bytes ({}) was left out: too large]", image.mime_type);
                    *part = Content::Text(note);
                }
            },
        }
    }
    if parts > MAX_PARTS {
        output.content.push(Content::Text(format!("[{} more parts were left out]", parts - MAX_PARTS)));
    }
    let is_shown = |text: &str| text.len() <= MAX_DIFF_SIDE;
    output.details.diffs.retain(|diff| diff.old_text.as_deref().is_none_or(is_shown) && is_shown(&diff.new_text));
    output
}

/// Keeps two thirds from the beginning and one from the end.
fn cut(text: &mut String, limit: usize) {
    if text.len() <= limit {
        return;
    }
    let head_end = text.floor_char_boundary(limit / 3 * 2);
    let tail_begin = text.ceil_char_boundary(text.len() - limit / 3);
    let (head, middle) = text.split_at(head_end);
    let (middle, tail) = middle.split_at(tail_begin - head_end);
    let lines = middle.matches('\n').count();
    *text = format!("{head}\n[... {} bytes, {lines} lines left out ...]\n{tail}", middle.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use peri_acp_types::Image;

    #[test]
    fn a_long_text_keeps_its_ends() {
        let output = bounded(ToolOutput::text(format!("begin{}end", "🦀\n".repeat(1_000_000))));
        let text = output.joined_text();
        assert!(text.len() < MAX_TEXT + 100, "{}", text.len());
        assert!(text.starts_with("begin🦀") && text.ends_with("end"));
        assert!(text.contains(" bytes, ") && text.contains(" lines left out ...]"));
    }

    #[test]
    fn the_bound_is_for_all_parts_together() {
        let content = vec![Content::Text("x".repeat(MAX_TEXT)); 1000];
        let output = bounded(ToolOutput { content, ..ToolOutput::default() });
        assert!(output.joined_text().len() < MAX_TEXT + MAX_PARTS * 100);
        assert_eq!(output.content.last(), Some(&Content::Text("[744 more parts were left out]".into())));
    }

    #[test]
    fn an_image_too_large_is_named_instead() {
        let image = |size| Content::Image(Image { mime_type: "image/png".into(), base64: "A".repeat(size) });
        let output = bounded(ToolOutput { content: vec![image(10), image(MAX_IMAGE + 1)], ..ToolOutput::default() });
        assert_eq!(output.content.first(), Some(&image(10)));
        assert!(matches!(output.content.get(1), Some(Content::Text(_))));
    }
}
