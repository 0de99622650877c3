//! The verdict on a shell command: each simple command in it, each file that the shell opens, each doubt.
//!
//! Invariant: a command line is allowed by patterns only if every simple command in it is, and denied if any is.

use peri_acp_types::{PermissionMode, ToolSpec};

use super::judge::{FileRuling, Grounds, Question, Verdict, about, file_ruling, objection};
use super::rule::{Pattern, Rule};
use super::shell::{Access, Command, Doubt, FileUse, Reading, Runs, Standing, read};
use super::shell_rule::{Met, ShellPattern, Tail};
use super::suggest;

/// What stands against running it, the gravest first.
#[derive(Default)]
struct Findings {
    denied: Option<String>,
    /// A deny rule may be about it; that cannot be ruled out.
    may_be_denied: Option<String>,
    /// An ask rule is or may be about it.
    asked: Option<String>,
    /// No rule and no mode allows it.
    objections: Vec<String>,
    candidates: Vec<peri_config::PermissionRule>,
}

/// Judges a command line.
pub(super) async fn judge_shell(tool: &ToolSpec, command: &str, grounds: Grounds<'_>) -> Verdict {
    let reading = read(command);
    let mut findings = Findings::default();
    let rules = grounds.rules;
    let (deny, ask, allow) = (about(tool, &rules.deny), about(tool, &rules.ask), about(tool, &rules.allow));
    findings.weigh_rules(&reading, &deny, &ask, &allow);
    findings.weigh_commands(&reading, &allow);
    for file in &reading.files {
        findings.weigh_file(file, &reading, grounds).await;
    }
    if allow.iter().any(|rule| matches!(rule.pattern, Pattern::Every)) {
        findings.objections.clear();
    }
    findings.verdict(grounds.mode)
}

impl Findings {
    fn verdict(self, mode: PermissionMode) -> Verdict {
        if let Some(reason) = self.denied {
            return Verdict::Deny(reason);
        }
        let bypass = mode == PermissionMode::Bypass;
        match self.may_be_denied {
            Some(reason) if bypass => return Verdict::Deny(reason),
            Some(reason) => return Verdict::Ask(Question::by_rule(reason)),
            None if bypass => return Verdict::Allow { granted: Vec::new() },
            None => {}
        }
        if let Some(reason) = self.asked {
            return Verdict::Ask(Question::by_rule(reason));
        }
        if self.objections.is_empty() {
            return Verdict::Allow { granted: Vec::new() };
        }
        Verdict::Ask(Question { reason: self.objections.join("; "), candidates: self.candidates, granted: Vec::new() })
    }

    /// Rules that refuse or ask.
    fn weigh_rules(&mut self, reading: &Reading, deny: &[&Rule], ask: &[&Rule], allow: &[&Rule]) {
        let commands: Vec<&Command> = flatten(&reading.commands).into_iter().chain(flatten(&reading.hinted)).collect();
        let unseen = reading.doubts.iter().find(|doubt| matches!(doubt, Doubt::Unseen(_)));
        for rule in deny {
            if let Some(what) = commands.iter().find(|command| met(rule, command, allow) == Met::Yes) {
                self.denied.get_or_insert_with(|| format!("{} denies `{}`", rule.told, what.shown()));
            }
            if matches!(rule.pattern, Pattern::Every) {
                self.denied.get_or_insert_with(|| format!("{} denies every command", rule.told));
            }
            if let Some(why) = uncertainty(rule, &commands, unseen, allow) {
                self.may_be_denied.get_or_insert_with(|| format!("{} may deny it: {why}", rule.told));
            }
        }
        for rule in ask {
            let met = commands.iter().any(|command| met(rule, command, allow) == Met::Yes);
            if met || matches!(rule.pattern, Pattern::Every) {
                self.asked.get_or_insert_with(|| format!("{} says so", rule.told));
            }
            if let Some(why) = uncertainty(rule, &commands, unseen, allow) {
                self.asked.get_or_insert_with(|| format!("{} may want it asked: {why}", rule.told));
            }
        }
    }

    /// A file that the shell opens needs what a tool would need that does the same.
    async fn weigh_file(&mut self, file: &FileUse, reading: &Reading, grounds: Grounds<'_>) {
        let (tool, verb) = match file.access {
            Access::Read => ("Read", "reads"),
            Access::Write => ("Edit", "writes"),
        };
        let known = file.path.as_deref().filter(|path| path.starts_with(['/', '~']) || !changes_folder(reading));
        let Some(path) = known else {
            if let Some(rule) = grounds.rules.deny.iter().find(|rule| rule.is_about_builtin(tool)) {
                let reason = format!("{} may deny it: it {verb} a file that is not written out", rule.told);
                self.may_be_denied.get_or_insert(reason);
            }
            self.object(format!("it {verb} a file that is not written out"));
            return;
        };
        let resolved = grounds.place.resolve(path).await;
        match file_ruling(tool, &resolved.path, grounds.rules, grounds.place).await {
            FileRuling::Deny(rule) => {
                let reason = format!("{} denies `{}`, which the command {verb}", rule.told, resolved.path);
                self.denied.get_or_insert(reason);
            }
            FileRuling::Ask(rule) => {
                let reason = format!("{} wants `{}` asked about, which the command {verb}", rule.told, resolved.path);
                self.asked.get_or_insert(reason);
            }
            FileRuling::Allow => {}
            FileRuling::Silent => {
                if let Some(reason) = objection(&resolved.path, resolved.inside, file.access, grounds).await {
                    self.object(format!("it {verb} `{path}` ({reason})"));
                    self.suggest(suggest::file_rules(tool, &resolved.path, grounds.place).await);
                }
            }
        }
    }

    fn weigh_commands(&mut self, reading: &Reading, allow: &[&Rule]) {
        for command in &reading.commands {
            if !allowed(command, allow) {
                self.object(match &command.runs {
                    Runs::Unseen(why) => format!("{why}, in `{}`", command.shown()),
                    Runs::Itself | Runs::Others { .. } => format!("no rule allows `{}`", command.shown()),
                });
                self.suggest(suggest::command_rules(command, allow));
            }
        }
        for doubt in &reading.doubts {
            self.object(doubt.text().to_owned());
        }
        // What only opens files, a substitution of a file's text say, is no command that a rule could be about.
        if reading.commands.is_empty() && reading.doubts.is_empty() {
            self.object("it holds no command".to_owned());
        }
    }

    fn suggest(&mut self, rules: Vec<peri_config::PermissionRule>) {
        for rule in rules {
            if !self.candidates.contains(&rule) {
                self.candidates.push(rule);
            }
        }
    }

    fn object(&mut self, reason: String) {
        if !self.objections.contains(&reason) {
            self.objections.push(reason);
        }
    }
}

/// Every command, those that launchers run included.
fn flatten(commands: &[Command]) -> Vec<&Command> {
    let mut all = Vec::new();
    for command in commands {
        all.push(command);
        if let Runs::Others { commands, .. } = &command.runs {
            all.extend(flatten(commands));
        }
    }
    all
}

/// How far a refusing or asking rule is about a command.
fn met(rule: &Rule, command: &Command, allow: &[&Rule]) -> Met {
    match &rule.pattern {
        Pattern::Every => Met::Yes,
        Pattern::Shell(pattern) => match pattern.touches(command) {
            Met::No if unseen(command) && !allowed_to_the_letter(command, allow) => Met::Maybe,
            met => met,
        },
        Pattern::Path(_) | Pattern::Unreadable(_) => Met::Maybe,
    }
}

fn unseen(command: &Command) -> bool {
    matches!(command.runs, Runs::Unseen(_))
}

/// Why it cannot be ruled out that the rule is about the command line; None where it can.
fn uncertainty(rule: &Rule, commands: &[&Command], unseen: Option<&Doubt>, allow: &[&Rule]) -> Option<String> {
    if matches!(rule.pattern, Pattern::Every) {
        return None;
    }
    if let Pattern::Unreadable(why) = &rule.pattern {
        return Some(format!("its pattern {why}"));
    }
    if let Some(doubt) = unseen {
        return Some(doubt.text().to_owned());
    }
    let doubtful = commands.iter().find(|command| met(rule, command, allow) == Met::Maybe)?;
    Some(match &doubtful.runs {
        Runs::Unseen(why) => format!("{why}, in `{}`", doubtful.shown()),
        Runs::Itself | Runs::Others { .. } => {
            format!("what `{}` does depends on more than its words", doubtful.shown())
        }
    })
}

/// True where the rules allow the command and all that it runs.
pub(super) fn allowed(command: &Command, allow: &[&Rule]) -> bool {
    let covering = || shell_patterns(allow).filter(|pattern| pattern.covers(command));
    match &command.runs {
        Runs::Itself => covering().next().is_some(),
        Runs::Unseen(_) => allowed_to_the_letter(command, allow),
        Runs::Others { commands, reach, standing } => {
            let inner_allowed = || commands.iter().all(|inner| allowed(inner, allow));
            let spelled_out = covering().any(|pattern| pattern.reach() >= *reach);
            spelled_out
                || match standing {
                    Standing::Transparent => command.settings.is_empty() && inner_allowed(),
                    Standing::AlsoItself => covering().next().is_some() && inner_allowed(),
                    Standing::Elevated => false,
                }
        }
    }
}

/// True where a rule spells the command out to its last word.
fn allowed_to_the_letter(command: &Command, allow: &[&Rule]) -> bool {
    shell_patterns(allow).any(|pattern| pattern.tail == Tail::Nothing && pattern.covers(command))
}

fn shell_patterns<'a>(rules: &'a [&Rule]) -> impl Iterator<Item = &'a ShellPattern> {
    rules.iter().filter_map(|rule| match &rule.pattern {
        Pattern::Shell(pattern) => Some(pattern),
        Pattern::Every | Pattern::Path(_) | Pattern::Unreadable(_) => None,
    })
}

/// True where relative paths may mean something else by the time they are used.
fn changes_folder(reading: &Reading) -> bool {
    flatten(&reading.commands).iter().any(|command| matches!(command.name(), Some("cd" | "pushd" | "popd")))
}
