//! `${NAME}` and `${NAME:-default}` in what is written about MCP servers and in headers of providers.
//!
//! Invariants: what a variable holds is put in as it is and never looked at again; the work is linear in the text, and what
//! comes out is bounded, however often a long variable is named. Any other `${` stays as it is written: shells use it, too.

use crate::path::visible;

/// Looks a variable of the environment up.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A stretch of text, or a variable in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

/// Why a text cannot be filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FillError<'a> {
    /// This variable is not set, and there is no default.
    Unset(&'a str),
    TooLarge,
}

/// True where the text names a variable, so that it cannot be judged before that is filled in.
pub(crate) fn names_variables(text: &str) -> bool {
    variables_in(text).next().is_some()
}

/// The variables that the text names.
pub(crate) fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        Piece::Variable { name, .. } => Some(name),
        Piece::Text(_) => None,
    })
}

/// The text with its variables filled in. Takes what it needs out of `room`, in bytes.
pub(crate) fn fill<'a>(text: &'a str, variable: Variables<'_>, room: &mut usize) -> Result<String, FillError<'a>> {
    let mut filled = String::new();
    for piece in pieces(text) {
        let value;
        let part = match piece {
            Piece::Text(text) => text,
            Piece::Variable { name, default } => {
                value = variable(name);
                value.as_deref().or(default).ok_or(FillError::Unset(name))?
            }
        };
        *room = room.checked_sub(part.len()).ok_or(FillError::TooLarge)?;
        filled.push_str(part);
    }
    Ok(filled)
}

/// A secret text as people may see it: which variables it takes, nothing else of it.
pub(crate) fn shown_secret(text: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut only_names = true;
    for piece in pieces(text) {
        match piece {
            Piece::Text(_) => only_names = false,
            Piece::Variable { name, default } => {
                only_names &= default.is_none();
                names.push(format!("${{{}}}", visible(name)));
            }
        }
    }
    match (only_names, names.as_slice()) {
        (_, []) => crate::REDACTED.to_owned(),
        (true, names) => names.concat(),
        (false, names) => format!("{} with {}", crate::REDACTED, names.join(", ")),
    }
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    // Behind the last brace nothing can close, and before it every search for one succeeds.
    let (mut rest, tail) = text.split_at(text.rfind('}').map_or(0, |at| at + 1));
    let closed = std::iter::from_fn(move || {
        let mut from = 0;
        while let Some(start) = rest.get(from..).and_then(|tail| tail.find("${")).map(|at| from + at) {
            let (before, candidate) = rest.split_at(start);
            match variable_at(candidate) {
                None => from = start + 2,
                Some(_) if start > 0 => {
                    rest = candidate;
                    return Some(Piece::Text(before));
                }
                Some((variable, after)) => {
                    rest = after;
                    return Some(variable);
                }
            }
        }
        Some(Piece::Text(std::mem::take(&mut rest))).filter(|piece| *piece != Piece::Text(""))
    });
    closed.chain(Some(Piece::Text(tail)).filter(|_| !tail.is_empty()))
}

/// The variable with which the text begins, and what is behind it.
fn variable_at(text: &str) -> Option<(Piece<'_>, &str)> {
    let inner = text.strip_prefix("${")?;
    let (name, after) = inner.split_at(inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(after) = after.strip_prefix('}') {
        return Some((Piece::Variable { name, default: None }, after));
    }
    let (default, after) = after.strip_prefix(":-")?.split_once('}')?;
    Some((Piece::Variable { name, default: Some(default) }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let variable = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "B_2" => Some("${A}".to_owned()),
            _ => None,
        };
        match fill(text, &variable, &mut 100) {
            Ok(text) => text,
            Err(FillError::Unset(name)) => format!("unset {name}"),
            Err(FillError::TooLarge) => "too large".to_owned(),
        }
    }

    #[test]
    fn variables_are_filled_in_once() {
        for (text, expect) in [
            ("", ""),
            ("plain", "plain"),
            ("${A}", "a"),
            ("x${A}y${A}z", "xayaz"),
            ("${B_2}", "${A}"),
            ("${C}", "unset C"),
            ("${C:-d}", "d"),
            ("${C:-}", ""),
            ("${A:-d}", "a"),
            ("${C:-http://h:1/}x", "http://h:1/x"),
            ("${C:-${A}}", "${A}"),
            ("$A $$ ${ ${} ${1} ${A", "$A $$ ${ ${} ${1} ${A"),
            ("${A:0:3} ${#A} ${A-x} ${é}", "${A:0:3} ${#A} ${A-x} ${é}"),
            ("${${A}", "${a"),
            ("é${A}é", "éaé"),
        ] {
            assert_eq!(filled(text), expect, "{text}");
        }
        assert_eq!(filled(&"${A}".repeat(101)), "too large");
    }

    #[test]
    fn hostile_texts_cost_no_more_than_they_are_long() {
        for text in ["${", "${A", "${A:-", "${A:-${", "}${"] {
            let text = text.repeat(1 << 18);
            let _ = names_variables(&text);
            let _ = names_variables(&format!("{text}}}"));
        }
    }

    #[test]
    fn of_a_secret_only_its_variables_are_shown() {
        for (text, expect) in [
            ("geheim", "[redacted]"),
            ("", "[redacted]"),
            ("${TOKEN}", "${TOKEN}"),
            ("Bearer ${TOKEN}", "[redacted] with ${TOKEN}"),
            ("${TOKEN:-geheim}", "[redacted] with ${TOKEN}"),
            ("${A}:${B}", "[redacted] with ${A}, ${B}"),
        ] {
            assert_eq!(shown_secret(text), expect);
        }
    }
}
