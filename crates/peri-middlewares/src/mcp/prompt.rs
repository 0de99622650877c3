//! Prompts of servers as commands: their names, and what follows a command as their arguments.
//!
//! Invariant: what the user wrote is never dropped: a word that no argument takes is an error, or the last argument's.

use peri_acp_types::CommandSpec;
use serde_json::{Map, Value};

use super::ListedPrompt;
use super::name::external_tool_name;

/// The longest line that describes a command, in characters.
const MAX_DESCRIPTION: usize = 200;

/// The command `mcp__SERVER__PROMPT`.
pub(super) fn command_of(server: &str, prompt: &ListedPrompt) -> CommandSpec {
    let line = prompt.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(&prompt.name);
    CommandSpec {
        name: external_tool_name(server, &prompt.name),
        description: line.chars().take(MAX_DESCRIPTION).collect(),
        input_hint: (!prompt.arguments.is_empty()).then(|| usage(prompt)),
    }
}

/// `<required> [optional]`.
fn usage(prompt: &ListedPrompt) -> String {
    let places = prompt.arguments.iter().map(|argument| match argument.required {
        true => format!("<{}>", argument.name),
        false => format!("[{}]", argument.name),
    });
    places.collect::<Vec<_>>().join(" ")
}

/// Gives each word to an argument, in order. The last argument takes all words that are left, so that text needs no
/// quotes there.
///
/// # Errors
/// A text for the user.
pub(super) fn arguments_of(prompt: &ListedPrompt, input: &str) -> Result<Map<String, Value>, String> {
    let words = words(input)?;
    let complaint = |what: String| match usage(prompt).as_str() {
        "" => format!("`{}` takes no arguments", prompt.name),
        usage => format!("`{}` {what}; it takes {usage}", prompt.name),
    };
    let mut words = words.into_iter();
    let mut arguments = Map::new();
    let last = prompt.arguments.len().saturating_sub(1);
    for (index, argument) in prompt.arguments.iter().enumerate() {
        let value = match index == last {
            true => words.by_ref().collect::<Vec<_>>().join(" "),
            false => words.next().unwrap_or_default(),
        };
        if !value.is_empty() {
            arguments.insert(argument.name.clone(), Value::String(value));
        } else if argument.required {
            return Err(complaint(format!("needs `{}`", argument.name)));
        }
    }
    match words.next() {
        Some(_) => Err(complaint(String::new())),
        None => Ok(arguments),
    }
}

/// Words as a shell splits them: blanks separate, quotes hold together, a backslash takes the next character as it is
/// (within double quotes only a quote or a backslash; within single quotes nothing).
fn words(input: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    // None between words.
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = input.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some('"'), '\\') => {
                let taken = characters.next_if(|next| matches!(next, '"' | '\\')).unwrap_or('\\');
                word.get_or_insert_default().push(taken);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a quote ({open}) is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::super::PromptArgument;
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_words(input: &str, expect: &[&str]) {
        assert_eq!(words(input).expect("words"), expect, "{input}");
    }

    #[test]
    fn words_as_in_a_shell() {
        check_words("", &[]);
        check_words("  a  b\tc\n", &["a", "b", "c"]);
        check_words("'a b' \"c d\"e", &["a b", "c de"]);
        check_words(r#"a\ b "c\"d\\e\n" '\'"#, &["a b", r#"c"d\e\n"#, r"\"]);
        check_words("'' x", &["", "x"]);
        check_words("ünï 日本", &["ünï", "日本"]);
        assert!(words("it's").is_err());
    }

    fn prompt(arguments: &[(&str, bool)]) -> ListedPrompt {
        let argument =
            |(name, required): &(&str, bool)| PromptArgument { name: (*name).to_owned(), required: *required };
        ListedPrompt {
            name: "review".to_owned(),
            description: "\n Looks at code. \nMore.".to_owned(),
            arguments: arguments.iter().map(argument).collect(),
        }
    }

    #[track_caller]
    fn check(arguments: &[(&str, bool)], input: &str, expect: Result<Value, &str>) {
        let given = arguments_of(&prompt(arguments), input);
        assert_eq!(given.map(Value::Object), expect.map_err(str::to_owned), "{input}");
    }

    #[test]
    fn arguments_by_place() {
        let two = [("file", true), ("note", false)];
        check(&two, "a.rs", Ok(json!({"file": "a.rs"})));
        check(&two, "a.rs look at the end", Ok(json!({"file": "a.rs", "note": "look at the end"})));
        check(&two, "'a b.rs' x", Ok(json!({"file": "a b.rs", "note": "x"})));
        check(&two, " ", Err("`review` needs `file`; it takes <file> [note]"));
        check(&[], "", Ok(json!({})));
        check(&[], "x", Err("`review` takes no arguments"));
        check(&[("a", false)], "\"x", Err("a quote (\") is not closed"));
    }

    #[test]
    fn a_command_says_what_it_does_and_takes() {
        let command = command_of("docs", &prompt(&[("file", true), ("note", false)]));
        assert_eq!(command.name, "mcp__docs__review");
        assert_eq!(command.description, "Looks at code.");
        assert_eq!(command.input_hint.as_deref(), Some("<file> [note]"));
        assert_eq!(command_of("docs", &prompt(&[])).input_hint, None);
    }
}
