//! Commands that run commands.
//!
//! Owns: who they are and where in their words the other command stands. Invariant: of a launcher's options only known
//! ones are skipped; where another stands, what is run counts as unseen.

use super::Standing;
use super::interpreter;
use super::variables::is_harmless;
use super::word::Word;

/// What a command runs, by its words.
pub(super) enum Launch {
    /// Only itself.
    Itself,
    /// Only itself, and it sets these variables.
    Sets { names: Vec<String> },
    /// These commands, with these assignments in front. The first `reach` words spell out which.
    Words { commands: Vec<Vec<Word>>, settings: Vec<String>, reach: usize, standing: Standing },
    /// This text, as a shell reads it.
    Script { text: String, reach: usize },
    /// Something that its words do not show.
    Unseen(String),
}

/// Options that a launcher may have before the command.
#[derive(Clone, Copy, Default)]
struct Options {
    flags: &'static [&'static str],
    /// Those that take a value, in the next word or in their own.
    valued: &'static [&'static str],
    /// Words between options and command.
    operands: usize,
}

/// Launchers that add nothing of their own, by name.
fn transparent(name: &str) -> Option<Options> {
    let none = Options::default();
    Some(match name {
        "builtin" | "exec" | "nohup" | "busybox" | "toybox" => none,
        "command" | "time" => Options { flags: &["-p"], ..none },
        "setsid" => Options { flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"], ..none },
        "nice" => Options { valued: &["-n", "--adjustment"], ..none },
        "ionice" => {
            Options { flags: &["-t", "--ignore"], valued: &["-c", "-n", "--class", "--classdata"], operands: 0 }
        }
        "timeout" => Options {
            flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
            valued: &["-s", "-k", "--signal", "--kill-after"],
            operands: 1,
        },
        "stdbuf" => Options { valued: &["-i", "-o", "-e", "--input", "--output", "--error"], ..none },
        _ => return None,
    })
}

/// Launchers that give other rights or another place, by name.
fn elevated(name: &str) -> Option<Options> {
    let none = Options::default();
    Some(match name {
        "sudo" => Options {
            flags: &["-n", "-S", "-H", "-k", "-E", "--non-interactive", "--preserve-env"],
            valued: &["-u", "-g", "--user", "--group"],
            operands: 0,
        },
        "doas" => Options { flags: &["-n"], valued: &["-u"], operands: 0 },
        "chroot" => Options { operands: 1, ..none },
        "pkexec" | "fakeroot" => none,
        _ => return None,
    })
}

/// Commands that run what they are given in ways that are not looked into; shells of another grammar among them.
const OPAQUE: [&str; 76] = [
    ".",
    "alias",
    "ash",
    "at",
    "batch",
    "bind",
    "bwrap",
    "capsh",
    "catchsegv",
    "cgexec",
    "choom",
    "chrt",
    "compgen",
    "complete",
    "crontab",
    "csh",
    "dbus-run-session",
    "elvish",
    "enable",
    "entr",
    "expect",
    "faketime",
    "fc",
    "firejail",
    "fish",
    "flatpak-spawn",
    "flock",
    "gdb",
    "gosu",
    "hash",
    "hyperfine",
    "i386",
    "ksh",
    "let",
    "linux32",
    "linux64",
    "ltrace",
    "mksh",
    "nsenter",
    "nu",
    "numactl",
    "parallel",
    "perf",
    "prlimit",
    "proxychains",
    "pwsh",
    "rbash",
    "rlwrap",
    "runcon",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "shopt",
    "source",
    "ssh",
    "ssh-agent",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "tcsh",
    "tmux",
    "uname26",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "x86_64",
    "xonsh",
    "xvfb-run",
    "yash",
    "zsh",
];
/// What the loaders of programs begin with; their names end in a version.
const LOADERS: [&str; 4] = ["ld-linux", "ld-musl", "ld.so", "ld-2."];
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];

/// Tells what a command runs. `words` begins with its name.
pub(super) fn launch(words: &[Word]) -> Launch {
    let Some(name) = words.first().and_then(Word::literal) else {
        return Launch::Unseen("the name of a command is not written out".to_owned());
    };
    if name.is_empty() || name.contains('=') {
        return Launch::Unseen(format!("`{name}` is no plain name of a command"));
    }
    let name = name.rsplit('/').next().unwrap_or(name);
    if let Some(options) = transparent(name) {
        return prefixed(words, name, options, Standing::Transparent);
    }
    if let Some(options) = elevated(name) {
        return prefixed(words, name, options, Standing::Elevated);
    }
    match name {
        _ if OPAQUE.contains(&name) => Launch::Unseen(format!("what `{name}` runs is not in the text")),
        _ if SHELLS.contains(&name) => shell(words, name),
        _ if LOADERS.iter().any(|loader| name.starts_with(loader)) => {
            Launch::Unseen(format!("what `{name}` runs is not in the text"))
        }
        "eval" => eval(words),
        "trap" => trap(words),
        "env" => env(words),
        "xargs" => xargs(words),
        "find" => find(words),
        "fd" | "fdfind" => fd(words),
        "git" => git(words),
        "export" | "declare" | "typeset" | "local" | "readonly" => declaration(words, name),
        "read" | "mapfile" | "readarray" | "getopts" => input(words, name),
        "printf" | "unset" | "test" | "[" | "wait" => subscripts(words, name),
        _ if interpreter::runs_argument(name, words) => {
            Launch::Unseen(format!("the arguments of `{name}` may run other commands"))
        }
        _ => Launch::Itself,
    }
}

/// Where the command begins after a launcher's options; None where an option is not known, not written out, or given
/// twice, since programs differ in which value counts.
fn skip_options(words: &[Word], options: Options) -> Option<usize> {
    let mut given: Vec<&str> = Vec::new();
    let mut index = 1;
    while let Some(word) = words.get(index) {
        let text = word.literal()?;
        if text == "--" {
            index += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let is_joined = |option: &&str| match option.strip_prefix("--") {
            Some(_) => text.strip_prefix(*option).is_some_and(|value| value.starts_with('=')),
            None => !text.starts_with("--") && text.starts_with(*option),
        };
        if options.flags.contains(&text) {
            index += 1;
            continue;
        }
        let is_whole = |option: &&str| *option == text;
        let valued = || options.valued.iter().copied();
        let option = valued().find(is_whole).or_else(|| valued().find(is_joined))?;
        if given.contains(&option) {
            return None;
        }
        given.push(option);
        index += if option == text { 2 } else { 1 };
    }
    let begin = index + options.operands;
    // A word that varies may become several, and the command with them.
    words.iter().take(begin).all(|word| word.literal().is_some()).then_some(begin)
}

fn prefixed(words: &[Word], name: &str, options: Options, standing: Standing) -> Launch {
    let asks_only = name == "command" && matches!(words.get(1).and_then(Word::literal), Some("-v" | "-V"));
    if asks_only || words.len() == 1 {
        return Launch::Itself;
    }
    let Some(begin) = skip_options(words, options) else {
        return Launch::Unseen(format!("an option of `{name}` is not known"));
    };
    match words.get(begin..) {
        None | Some([]) => Launch::Unseen(format!("`{name}` names no command")),
        Some(command) => {
            Launch::Words { commands: vec![command.to_vec()], settings: Vec::new(), reach: begin + 1, standing }
        }
    }
}

fn shell(words: &[Word], name: &str) -> Launch {
    let mut takes_script = false;
    let mut index = 1;
    while let Some(word) = words.get(index) {
        let Some(text) = word.literal() else {
            return Launch::Unseen(format!("an argument of `{name}` is not written out"));
        };
        if matches!(text, "--version" | "--help") && words.len() == 2 {
            return Launch::Itself;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { break };
        // Those that only change how a script runs, and `c`.
        if letters.is_empty() || letters.contains(|c| !"ceufxv".contains(c)) {
            return Launch::Unseen(format!("an option of `{name}` is not known"));
        }
        takes_script |= letters.contains('c');
        index += 1;
    }
    match (words.get(index).and_then(Word::literal), takes_script) {
        (Some(text), true) => Launch::Script { text: text.to_owned(), reach: index + 1 },
        // A file that is run is judged by its name, as a program is.
        (Some(_), false) => Launch::Itself,
        (None, _) => Launch::Unseen(format!("`{name}` runs what it reads")),
    }
}

fn eval(words: &[Word]) -> Launch {
    let arguments: Option<Vec<&str>> = words.iter().skip(1).map(Word::literal).collect();
    match arguments {
        Some(arguments) => Launch::Script { text: arguments.join(" "), reach: words.len() },
        None => Launch::Unseen("what `eval` runs is not written out".to_owned()),
    }
}

fn trap(words: &[Word]) -> Launch {
    match words.get(1).map(Word::literal) {
        None | Some(Some("" | "-" | "-p" | "-l")) => Launch::Itself,
        Some(Some(text)) if !text.starts_with('-') => Launch::Script { text: text.to_owned(), reach: 2 },
        Some(_) => Launch::Unseen("what `trap` runs is not written out".to_owned()),
    }
}

fn env(words: &[Word]) -> Launch {
    let mut settings = Vec::new();
    for (index, word) in words.iter().enumerate().skip(1) {
        match word.literal().map(|text| (text, text.split_once('='))) {
            Some((_, Some((name, _)))) if is_identifier(name) => {
                if !is_harmless(name) {
                    settings.push(word.source.clone());
                }
            }
            Some((text, None)) if !text.starts_with('-') => {
                let commands = vec![words.get(index..).unwrap_or_default().to_vec()];
                return Launch::Words { commands, settings, reach: index + 1, standing: Standing::Transparent };
            }
            _ => return Launch::Unseen("an argument of `env` is not plain".to_owned()),
        }
    }
    Launch::Itself
}

fn xargs(words: &[Word]) -> Launch {
    let options = Options {
        flags: &["-0", "-r", "-t", "-x", "--null", "--no-run-if-empty", "--verbose", "--exit"],
        valued: &["-n", "-P", "-L", "-d", "-s", "-I", "--max-args", "--max-procs", "--delimiter", "--max-chars"],
        operands: 0,
    };
    let Some(begin) = skip_options(words, options) else {
        return Launch::Unseen("an option of `xargs` is not known".to_owned());
    };
    let (own, command) = words.split_at(begin.min(words.len()));
    if command.is_empty() {
        return Launch::Itself;
    }
    let mut command = command.to_vec();
    let own: Option<Vec<&str>> = own.iter().skip(1).map(Word::literal).collect();
    let Some(own) = own.filter(|own| replaced_text(own).is_some() || !own.iter().any(|text| text.starts_with("-I")))
    else {
        // Which of several options decides where the input goes is settled by their order.
        return Launch::Unseen("`xargs -I` stands beside other options".to_owned());
    };
    match replaced_text(&own) {
        None => command.push(Word::varying("...")),
        Some(text) => {
            for word in &mut command {
                if word.literal().is_none_or(|literal| literal.contains(text)) {
                    *word = Word::varying(word.source.clone());
                }
            }
        }
    }
    Launch::Words { commands: vec![command], settings: Vec::new(), reach: begin + 1, standing: Standing::Transparent }
}

/// What `xargs -I` puts its input in place of.
fn replaced_text<'a>(own: &[&'a str]) -> Option<&'a str> {
    match own {
        ["-I", text] => Some(text),
        [text] => text.strip_prefix("-I"),
        _ => None,
    }
}

fn find(words: &[Word]) -> Launch {
    let mut commands = Vec::new();
    let mut index = 1;
    while let Some(word) = words.get(index) {
        index += 1;
        match word.literal() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let given = words.get(index..).unwrap_or_default();
                let command = found_command(given);
                if command.is_empty() {
                    return Launch::Unseen("`find -exec` names no command".to_owned());
                }
                index += command.len() + 1;
                commands.push(command);
            }
            Some("-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls") => {
                return Launch::Unseen("`find` is told to delete or write files".to_owned());
            }
            Some("-files0-from") | None => {
                return Launch::Unseen("an argument of `find` is not written out".to_owned());
            }
            Some(_) => {}
        }
    }
    if commands.is_empty() {
        return Launch::Itself;
    }
    Launch::Words { commands, settings: Vec::new(), reach: words.len(), standing: Standing::AlsoItself }
}

/// The command after `-exec`: up to `;`, or a `+` that follows `{}`.
fn found_command(given: &[Word]) -> Vec<Word> {
    let mut command: Vec<Word> = Vec::new();
    let mut after_path = false;
    for word in given {
        match word.literal() {
            Some(";") => break,
            Some("+") if after_path => break,
            Some(text) if !text.contains("{}") => command.push(word.clone()),
            _ => command.push(Word::varying(word.source.clone())),
        }
        after_path = word.literal() == Some("{}");
    }
    command
}

fn fd(words: &[Word]) -> Launch {
    let runs = words.iter().skip(1).any(|word| match word.literal() {
        Some(text) if text.starts_with("--") => text.starts_with("--exec"),
        Some(text) => text.starts_with('-') && text.contains(['x', 'X']),
        None => true,
    });
    if runs { Launch::Unseen("`fd` may be told to run a command".to_owned()) } else { Launch::Itself }
}

/// Settings of git that may be given for one call; many others name commands.
const GIT_SETTINGS: [&str; 6] = ["user.", "color.", "advice.", "core.quotepath=", "init.defaultbranch=", "log."];

/// git runs commands that its settings and some of its own commands are given.
fn git(words: &[Word]) -> Launch {
    let unseen = |what: &str| Launch::Unseen(format!("`git {what}` may run other commands"));
    let mut rest = words.iter().skip(1);
    let mut subcommand = "";
    while let Some(word) = rest.next() {
        match word.literal() {
            Some("-c") => {
                let setting = rest.next().and_then(Word::literal).unwrap_or_default().to_ascii_lowercase();
                if !GIT_SETTINGS.iter().any(|known| setting.starts_with(known)) {
                    return unseen("-c");
                }
            }
            Some("-C" | "--git-dir" | "--work-tree" | "--namespace") => drop(rest.next()),
            Some(text) if text.starts_with("--config-env") || text.starts_with("--exec-path") => return unseen(text),
            Some(text) if text.starts_with('-') => {}
            // What stands in its place is found out by the rules, as with any argument.
            other => {
                subcommand = other.unwrap_or_default();
                break;
            }
        }
    }
    let arguments: Vec<&str> = rest.filter_map(Word::literal).collect();
    let has = |options: &[&str]| arguments.iter().any(|it| options.iter().any(|option| it.starts_with(option)));
    let runs = match subcommand {
        "filter-branch" | "mergetool" => true,
        "bisect" => has(&["run"]),
        "submodule" => has(&["foreach"]),
        "rebase" => has(&["-x", "--exec"]),
        "difftool" => has(&["-x", "--extcmd"]),
        "grep" => has(&["-O", "--open-files-in-pager"]),
        "config" => !is_known_git_setting(&arguments),
        _ => false,
    };
    if runs { unseen(subcommand) } else { Launch::Itself }
}

/// True where `git config` only shows settings, or changes some that name no command.
fn is_known_git_setting(arguments: &[&str]) -> bool {
    const SHOWING: [&str; 7] = ["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"];
    const SCOPES: [&str; 3] = ["--global", "--local", "--worktree"];
    let first = arguments.iter().find(|argument| !SCOPES.contains(argument)).copied().unwrap_or_default();
    let setting = first.to_ascii_lowercase();
    SHOWING.contains(&first) || GIT_SETTINGS.iter().any(|known| setting.starts_with(known.trim_end_matches('=')))
}

/// `export NAME=value` and its kin.
fn declaration(words: &[Word], name: &str) -> Launch {
    let mut names = Vec::new();
    for word in words.iter().skip(1) {
        let target = word.source.split(['=', '+']).next().unwrap_or_default();
        if target.starts_with(['-', '+']) || word.source.starts_with('+') {
            // Others make a name stand for another, or evaluate the value.
            if word.literal().is_none_or(|text| !text.trim_start_matches('-').chars().all(|c| "gprx".contains(c))) {
                return Launch::Unseen(format!("an option of `{name}` changes what its values mean"));
            }
        } else if target.is_empty() || !target.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Launch::Unseen(format!("an argument of `{name}` is not plain"));
        } else if name != "export" && word.literal().is_none_or(|text| text.contains("=(")) {
            // If the variable is an array, some shells read the value as its elements.
            return Launch::Unseen(format!("a value for `{name}` may be evaluated"));
        } else {
            names.push(target.to_owned());
        }
    }
    Launch::Sets { names }
}

/// Commands that put input into variables.
fn input(words: &[Word], name: &str) -> Launch {
    for word in words.iter().skip(1) {
        match word.literal() {
            Some("-C" | "-c") if name != "read" => return Launch::Unseen(format!("`{name}` runs a command")),
            Some(text) if text.contains('[') => return Launch::Unseen(format!("`{name}` evaluates a subscript")),
            Some(text) if !text.starts_with('-') && name != "getopts" && !is_harmless(text) && is_identifier(text) => {
                return Launch::Unseen(format!("`{name}` sets `{text}`"));
            }
            Some(_) => {}
            None => return Launch::Unseen(format!("an argument of `{name}` is not written out")),
        }
    }
    Launch::Itself
}

/// Commands that evaluate the subscript of a variable that they are told to look at or set.
fn subscripts(words: &[Word], name: &str) -> Launch {
    let arguments = words.get(1..).unwrap_or_default();
    let tells = |text: &str| match name {
        "unset" => true,
        "wait" => text == "-p",
        "printf" => text.starts_with("-v"),
        _ => matches!(text, "-v" | "-R"),
    };
    let may_tell = |index: usize, word: &Word| match (word.literal(), name) {
        (Some(text), _) => tells(text),
        (None, "wait") => word.source != "$!",
        (None, "printf") => index == 0,
        (None, "unset") => true,
        (None, _) => may_be_operator(arguments, index),
    };
    let looks = arguments.iter().enumerate().any(|(index, word)| may_tell(index, word));
    let plain = arguments.iter().all(|word| {
        word.literal().is_some_and(|text| !text.contains('[') && (is_harmless(text) || !is_identifier(text)))
    });
    if looks && !plain {
        return Launch::Unseen(format!("`{name}` is told to look at or set a variable that is not plain"));
    }
    Launch::Itself
}

/// True where an argument of `test` that varies may be an operator: it may become several words, or no operator stands
/// right before or after it.
fn may_be_operator(arguments: &[Word], index: usize) -> bool {
    let is_operator = |word: Option<&Word>| {
        word.and_then(Word::literal)
            .is_some_and(|text| matches!(text, "=" | "==" | "!=" | "<" | ">") || text.starts_with('-'))
    };
    let source = arguments.get(index).map_or("", |word| word.source.as_str());
    let is_one = source.len() > 1 && source.starts_with('"') && source.ends_with('"') && !source.contains(['@', '*']);
    let before = index.checked_sub(1).and_then(|before| arguments.get(before));
    !is_one || !(is_operator(before) || is_operator(arguments.get(index + 1)))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
