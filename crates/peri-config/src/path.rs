//! Where in a document a value stands, and how that is shown.
//!
//! A path is a list that lives on the stack and is written out only when something is reported, so that a hostile
//! document cannot make paths cost more than the document itself. Must not: show a name at full length or unescaped.

/// The longest piece of a document's own text that a message repeats, in characters.
const SHOWN_CHARS: usize = 64;

/// The way from the document's root to a value.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(crate) fn key(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(name) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// `permissions.deny[1]`; a name that is no plain word is quoted. None for the root.
    pub(crate) fn shown(&self) -> Option<String> {
        let parent = self.parent.and_then(Path::shown);
        match (self.step, parent) {
            (Step::Root, _) => None,
            (Step::Key(name), None) => Some(shown_key(name)),
            (Step::Key(name), Some(parent)) => Some(format!("{parent}.{}", shown_key(name))),
            (Step::Index(index), parent) => Some(format!("{}[{index}]", parent.unwrap_or_default())),
        }
    }
}

fn shown_key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    if !name.is_empty() && name.len() <= SHOWN_CHARS && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", shown_text(name))
    }
}

/// Text of a document as a message may repeat it: cut, and without control characters.
pub(crate) fn shown_text(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => visible(text),
        Some((end, _)) => format!("{}…", visible(text.get(..end).unwrap_or_default())),
    }
}

/// The text with control characters escaped, so that it cannot steer a terminal.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers_display(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// True for characters that do something to a display instead of being shown: controls and changes of direction.
pub(crate) fn steers_display(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
