//! Programs whose arguments may hold commands, although running commands is not what they are for.
//!
//! Owns: how to tell their harmless uses. Invariant: where an argument is not known to be harmless, it may run commands.

use super::word::Word;

/// Options of tar that take a command. Long ones may be shortened.
const TAR_COMMANDS: [&str; 8] = [
    "--checkpoint-action",
    "--info-script",
    "--new-volume-script",
    "--rmt-command",
    "--rsh-command",
    "--to-command",
    "--use-compress-program",
    "--use-compress-prog",
];

/// True where the program may run a command that its arguments hold.
pub(super) fn runs_argument(name: &str, words: &[Word]) -> bool {
    let arguments = words.get(1..).unwrap_or_default();
    let any = |test: &dyn Fn(&str) -> bool| arguments.iter().filter_map(Word::literal).any(test);
    match name {
        "jobs" => any(&|text| text.starts_with("-x")),
        "split" => any(&|text| shortens(text, "--filter")),
        "tar" | "gtar" | "bsdtar" => {
            // The first word may be letters of options without a dash.
            let letters = arguments.first().and_then(Word::literal).is_some_and(|text| has_letter(text, ['I', 'F']));
            letters
                || any(&|text| {
                    TAR_COMMANDS.iter().any(|option| shortens(text, option))
                        || is_short(text) && has_letter(text, ['I', 'F'])
                })
        }
        "make" | "gmake" => make_runs(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk_runs(arguments),
        "sed" | "gsed" => sed_runs(arguments),
        _ => false,
    }
}

/// True where a long option is given, whole or shortened, with or without a value.
fn shortens(given: &str, option: &str) -> bool {
    let name = given.split('=').next().unwrap_or_default();
    name.len() > 2 && option.starts_with(name)
}

fn is_short(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

fn has_letter(text: &str, letters: [char; 2]) -> bool {
    !text.starts_with("--") && !text.contains(['/', '.']) && text.contains(letters)
}

/// A makefile that is read from input or given in the words.
fn make_runs(arguments: &[Word]) -> bool {
    let is_input = |text: &str| text == "-" || text.starts_with("/dev/");
    arguments.iter().enumerate().any(|(index, word)| {
        let Some(text) = word.literal() else { return false };
        let long = ["--file", "--makefile"].iter().any(|option| shortens(text, option));
        let value = match text.split_once('=') {
            Some((_, value)) if long => Some(value),
            _ if long || is_short(text) && text.ends_with('f') => arguments.get(index + 1).and_then(Word::literal),
            _ if is_short(text) => text.split_once('f').map(|(_, value)| value),
            _ => None,
        };
        value.is_some_and(is_input)
            || shortens(text, "--eval")
            || is_short(text) && text.contains('E')
            || text.starts_with("SHELL=")
    })
}

/// A program of awk may call `system`, read from and write to commands, and call a function by a computed name.
fn awk_runs(arguments: &[Word]) -> bool {
    let holds = |text: &str| {
        let text = text.replace("||", "");
        text.contains("system") || text.contains(['|', '@'])
    };
    let mut after_option = false;
    for word in arguments {
        match word.literal() {
            // A separator or the value of a variable is no program.
            _ if after_option => after_option = false,
            None => return true,
            Some("-v" | "-F" | "-f") => after_option = true,
            Some(text) if text.starts_with("-v") || text.starts_with("-F") || text == "--" => {}
            Some(text) if text.starts_with('-') => return true,
            Some(program) => return holds(program),
        }
    }
    false
}

fn sed_runs(arguments: &[Word]) -> bool {
    let mut scripts = Vec::new();
    let mut operand = None;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            Some("-e" | "--expression") => scripts.push(rest.next().and_then(Word::literal)),
            Some("-f" | "--file") => return true,
            Some("-n" | "-E" | "-r" | "-i" | "-s" | "-u" | "-z" | "--quiet" | "--silent" | "--in-place") => {}
            Some("--sandbox") => return false,
            Some(text) if text.starts_with("-i") => {}
            Some(text) if text.starts_with('-') && text.len() > 1 => return text != "--version" && text != "--help",
            _ => {
                operand = operand.or(Some(word.literal()));
            }
        }
    }
    let operand = operand.filter(|_| scripts.is_empty());
    scripts.into_iter().chain(operand).any(|script| script.is_none_or(|script| !is_tame(script)))
}

/// True where every command of a sed script is known to edit text and do nothing else.
fn is_tame(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}', '!', ',', '$', '~', '+']);
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(command) = rest.chars().next() else { return true };
        let after = rest.get(command.len_utf8()..).unwrap_or_default();
        let next = match command {
            ' ' | '\t' | '\n' | ';' | '{' | '}' | '!' | ',' | '$' | '~' | '+' => Some(rest),
            '/' => delimited(after, '/').map(|rest| rest.trim_start_matches('I')),
            's' | 'y' => substitution(after),
            'p' | 'P' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'q' | 'x' | '=' => Some(after),
            _ => None,
        };
        match next {
            Some(next) => rest = next,
            None => return false,
        }
    }
}

/// What follows `s/a/b/` and its flags.
fn substitution(text: &str) -> Option<&str> {
    let delimiter = text.chars().next().filter(char::is_ascii_punctuation).filter(|&c| c != '\\')?;
    let text = delimited(text.get(1..)?, delimiter).and_then(|text| delimited(text, delimiter))?;
    let text = text.trim_start_matches(|c: char| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit());
    (text.is_empty() || text.starts_with([' ', ';', '\n', '}'])).then_some(text)
}

/// What follows the delimiter. Programs differ in whether one in brackets counts, so that there none may stand.
fn delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == delimiter => {
                let inside = text.get(..at)?;
                let is_open = inside.matches('[').count() > inside.matches(']').count();
                return if is_open { None } else { text.get(at + 1..) };
            }
            _ => {}
        }
    }
    None
}
