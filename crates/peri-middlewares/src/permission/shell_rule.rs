//! Patterns of `Bash(...)`: which commands a rule means.
//!
//! Two readings of one pattern: an allowing rule must be met to the letter; a refusing or asking one also by what may
//! come to the same. Invariant: what meets the strict reading meets the broad one.

use super::shell::{Command, Reading, Word, WordValue, read};

/// The pattern of a rule about shell commands.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ShellPattern {
    /// Assignments that stand in front.
    settings: Vec<String>,
    words: Vec<PatternWord>,
    pub(super) tail: Tail,
}

/// What may follow the words of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tail {
    Nothing,
    /// Any words: the pattern ends in `:*` or ` *`.
    Anything,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum PatternWord {
    Is(WordValue),
    /// Text with `*` for any characters.
    Glob(String),
}

/// Whether a pattern is met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Met {
    No,
    Maybe,
    Yes,
}

impl ShellPattern {
    /// Reads a pattern. None: every command. The error reads on from "its pattern".
    pub(super) fn parse(text: &str) -> Result<Option<ShellPattern>, String> {
        let text = text.trim();
        let (text, tail) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(words) => (words.trim_end(), Tail::Anything),
            None if text == "*" => ("", Tail::Anything),
            None => (text, Tail::Nothing),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let Reading { commands, files, doubts, .. } = read(text);
        let [Command { words, settings, .. }] = commands.as_slice() else {
            return Err("is not one simple command".to_owned());
        };
        if !files.is_empty() || !doubts.is_empty() {
            return Err("holds more than the words of a command".to_owned());
        }
        let words = words.iter().map(PatternWord::new).collect::<Result<_, _>>()?;
        Ok(Some(ShellPattern { settings: settings.clone(), words, tail }))
    }

    /// How many words the pattern spells out.
    pub(super) fn reach(&self) -> usize {
        self.words.len()
    }

    /// True where the pattern means this command and no other reading of it is possible.
    pub(super) fn covers(&self, command: &Command) -> bool {
        let same_name = self.words.first().zip(command.words.first()).is_some_and(|(pattern, word)| pattern.is(word));
        same_name && self.settings == command.settings && self.covers_words(&command.words)
    }

    /// Compares all words but the name.
    fn covers_words(&self, words: &[Word]) -> bool {
        let long_enough = match self.tail {
            Tail::Nothing => words.len() == self.words.len(),
            Tail::Anything => words.len() >= self.words.len(),
        };
        long_enough && self.words.iter().zip(words).skip(1).all(|(pattern, word)| pattern.is(word))
    }

    /// Whether the command comes to what the pattern means, in spite of paths, quotes, and options in between.
    pub(super) fn touches(&self, command: &Command) -> Met {
        let (Some(pattern_name), Some(name)) = (self.words.first(), command.words.first()) else {
            return Met::No;
        };
        let Some(name) = name.literal() else { return Met::Maybe };
        if !pattern_name.names(name) {
            return Met::No;
        }
        if self.covers_words(&command.words) {
            return Met::Yes;
        }
        let (options, operands): (Vec<&PatternWord>, Vec<&PatternWord>) =
            self.words.iter().skip(1).partition(|word| word.option().is_some());
        let arguments = command.words.get(1..).unwrap_or_default();
        // What is refused as `rm*` is meant to be refused with arguments as well.
        let tail = match self.words.last() {
            Some(PatternWord::Glob(glob)) if glob.ends_with('*') => Tail::Anything,
            _ => self.tail,
        };
        let met = operands_met(&operands, arguments, tail);
        options
            .iter()
            .filter_map(|option| option.option())
            .map(|option| option_met(option, arguments))
            .fold(met, Met::min)
    }
}

impl PatternWord {
    fn new(word: &Word) -> Result<PatternWord, String> {
        match &word.value {
            WordValue::Varying => {
                let is_glob = |c: char| c.is_alphanumeric() || "_./:=@%+,*-".contains(c);
                if word.source.chars().all(is_glob) {
                    Ok(PatternWord::Glob(word.source.clone()))
                } else {
                    Err(format!("holds `{}`, which has no fixed value", word.source))
                }
            }
            value => Ok(PatternWord::Is(value.clone())),
        }
    }

    fn is(&self, word: &Word) -> bool {
        match self {
            PatternWord::Is(value) => *value == word.value,
            PatternWord::Glob(glob) => word.literal().is_some_and(|text| matches_glob(glob, text)),
        }
    }

    /// True where a command of that name is the one that the pattern names, by whatever path.
    fn names(&self, name: &str) -> bool {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        match self {
            PatternWord::Is(WordValue::Literal(own) | WordValue::Home(own)) => last(own) == last(name),
            PatternWord::Is(WordValue::Varying) => false,
            PatternWord::Glob(glob) => matches_glob(glob, name) || matches_glob(&last(glob), &last(name)),
        }
    }

    fn option(&self) -> Option<&str> {
        match self {
            PatternWord::Is(WordValue::Literal(text)) if text.starts_with('-') => Some(text),
            PatternWord::Is(_) | PatternWord::Glob(_) => None,
        }
    }
}

/// Looks for the operands in order. An option and one word after it may stand in between.
fn operands_met(operands: &[&PatternWord], arguments: &[Word], tail: Tail) -> Met {
    let mut met = Met::Yes;
    let mut rest = arguments.iter();
    for operand in operands {
        let mut after_option = false;
        loop {
            let Some(word) = rest.next() else { return Met::No };
            let is_option = match &word.value {
                WordValue::Varying => return Met::Maybe,
                _ if operand.is(word) => break,
                WordValue::Literal(text) => text.starts_with('-'),
                WordValue::Home(_) => false,
            };
            if !is_option && !after_option {
                return Met::No;
            }
            met = Met::Maybe;
            after_option = is_option;
        }
    }
    let ends =
        rest.all(|word| word.value == WordValue::Varying || word.literal().is_some_and(|text| text.starts_with('-')));
    match tail {
        Tail::Anything => met,
        Tail::Nothing if ends && arguments.len() == operands.len() => met,
        Tail::Nothing if ends => Met::Maybe,
        Tail::Nothing => Met::No,
    }
}

/// Whether an option is given, in this spelling or maybe another.
fn option_met(option: &str, arguments: &[Word]) -> Met {
    let met = |word: &Word| match word.literal() {
        None if word.value == WordValue::Varying => Met::Maybe,
        Some(text) if text == option => Met::Yes,
        Some(text) if may_be_same_option(option, text) => Met::Maybe,
        _ => Met::No,
    };
    arguments.iter().map(met).max().unwrap_or(Met::No)
}

fn may_be_same_option(option: &str, given: &str) -> bool {
    let given_name = given.split('=').next().unwrap_or_default();
    match (option.strip_prefix("--"), given_name.strip_prefix("--")) {
        // Long options may be shortened or carry a value.
        (Some(option), Some(given)) => !given.is_empty() && (option.starts_with(given) || given.starts_with(option)),
        (Some(option), None) => given.starts_with('-') && option.chars().next().is_some_and(|c| given.contains(c)),
        (None, Some(given)) => given.chars().next().is_some_and(|c| option.contains(c)),
        (None, None) => given.starts_with('-') && option.chars().skip(1).any(|c| given.contains(c)),
    }
}

/// Matches text against a pattern in which `*` stands for any characters. Linear but for the stars.
fn matches_glob(glob: &str, text: &str) -> bool {
    let mut pieces = glob.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pattern says of a command: covered to the letter, or touched how.
    #[track_caller]
    fn check(pattern: &str, command: &str, covers: bool, touches: Met) {
        let compiled = ShellPattern::parse(pattern).expect("a readable pattern").expect("not every command");
        let reading = read(command);
        let command_read = reading.commands.last().expect("a command");
        assert_eq!(compiled.covers(command_read), covers, "{pattern} covers {command}");
        assert_eq!(compiled.touches(command_read), touches, "{pattern} touches {command}");
    }

    #[test]
    fn a_prefix_ends_at_a_word() {
        check("git status:*", "git status", true, Met::Yes);
        check("git status:*", "git status -s", true, Met::Yes);
        check("git status:*", "git statusx", false, Met::No);
        check("git status *", "git status -s", true, Met::Yes);
        check("git status:*", "git push", false, Met::No);
        check("git status:*", "git", false, Met::No);
        check("git status:*", "git \"status x\"", false, Met::No);
    }

    #[test]
    fn without_a_tail_the_words_are_all() {
        check("npm test", "npm test", true, Met::Yes);
        check("npm test", "npm 'test'", true, Met::Yes);
        check("npm test", "npm test x", false, Met::No);
        check("npm test", "npm $X", false, Met::Maybe);
        check("git commit -m 'it works'", "git commit -m \"it works\"", true, Met::Yes);
    }

    #[test]
    fn a_star_stands_for_characters_of_one_word() {
        check("npm run test*", "npm run test:unit", true, Met::Yes);
        check("npm run test*", "npm run build", false, Met::No);
        check("cargo * -p x", "cargo test -p x", true, Met::Yes);
        check("rm*", "rmdir x", false, Met::Yes);
    }

    #[test]
    fn refusing_rules_see_through_spellings() {
        check("rm:*", "/bin/rm -rf x", false, Met::Yes);
        check("rm:*", "\\rm x", true, Met::Yes);
        check("rm:*", "'r'm x", true, Met::Yes);
        check("rm:*", "$(echo rm) x", false, Met::Maybe);
        check("rm:*", "rmdir x", false, Met::No);
        check("git push:*", "git -C . push", false, Met::Maybe);
        check("git push:*", "git $X", false, Met::Maybe);
        check("git push:*", "git add *", false, Met::No);
        check("git push:*", "git commit -m push", false, Met::No);
        check("git push --force:*", "git push -f", false, Met::Maybe);
        check("git push --force:*", "git push origin --force", false, Met::Yes);
        check("git push --force:*", "git push -u origin main", false, Met::No);
        check("rm -rf:*", "rm -r -f x", false, Met::Maybe);
        check("rm -rf:*", "rm x", false, Met::No);
    }

    #[test]
    fn assignments_are_part_of_the_words() {
        check("npm test:*", "DATABASE=x npm test", false, Met::Yes);
        check("DATABASE=x npm test:*", "DATABASE=x npm test", true, Met::Yes);
        check("npm test:*", "CI=1 npm test", true, Met::Yes);
    }

    #[test]
    fn patterns_that_mean_everything_or_nothing() {
        assert_eq!(ShellPattern::parse("*"), Ok(None));
        assert_eq!(ShellPattern::parse(":*"), Ok(None));
        for text in ["git status && ls", "$X", "ls > f", "(", "echo $(ls)", "a; b", "git [ab]*"] {
            assert!(ShellPattern::parse(text).is_err(), "{text}");
        }
    }
}
