//! Rules, ready to be matched: whose calls each means, and its pattern.
//!
//! Invariant: a rule whose pattern cannot be read never allows anything, and where it refuses or asks it may mean any
//! call of its tool; a notice names it.

use peri_acp_types::{ToolOrigin, ToolSpec};
use peri_config::{PermissionRule, RuleSubject};

use super::path_rule::PathPattern;
use super::shell_rule::ShellPattern;
use crate::mcp::external_tool_name;

/// The tool of the workspace server that runs commands.
pub(super) const SHELL_TOOL: &str = "Bash";
/// The tools that change a file: a rule about either is one about both.
const EDIT_TOOLS: [&str; 2] = ["Edit", "Write"];
/// The tools that read files; a rule about the first covers all.
const READ_TOOLS: [&str; 3] = ["Read", "Grep", "Glob"];

/// The rules of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) allow: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
    pub(super) deny: Vec<Rule>,
}

/// A rule, ready to be matched.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) text: PermissionRule,
    pub(super) pattern: Pattern,
}

/// Which calls of its tool a rule means.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Every,
    Shell(ShellPattern),
    Path(PathPattern),
    /// The pattern cannot be read, for this reason.
    Unreadable(String),
}

impl Rules {
    pub(super) fn new(allow: &[PermissionRule], ask: &[PermissionRule], deny: &[PermissionRule]) -> Rules {
        let compile = |rules: &[PermissionRule]| rules.iter().map(Rule::new).collect();
        Rules { allow: compile(allow), ask: compile(ask), deny: compile(deny) }
    }

    /// A line for each rule that cannot be read.
    pub(super) fn complaints(&self) -> Vec<String> {
        let complain = |rule: &Rule, effect: &str| match &rule.pattern {
            Pattern::Unreadable(why) => Some(format!("permission rule `{}`: its pattern {why}; {effect}", rule.text)),
            _ => None,
        };
        let allow = self.allow.iter().filter_map(|rule| complain(rule, "it allows nothing"));
        let ask = self.ask.iter().filter_map(|rule| complain(rule, "every call of the tool is asked about"));
        let deny = self.deny.iter().filter_map(|rule| complain(rule, "every call of the tool is asked about"));
        allow.chain(ask).chain(deny).collect()
    }
}

impl Rule {
    pub(super) fn new(text: &PermissionRule) -> Rule {
        let unreadable = Pattern::Unreadable;
        let pattern = match (text.subject(), text.pattern()) {
            (_, None) => Pattern::Every,
            (RuleSubject::Builtin(tool), Some(pattern)) if tool == SHELL_TOOL => match ShellPattern::parse(pattern) {
                Ok(None) => Pattern::Every,
                Ok(Some(pattern)) => Pattern::Shell(pattern),
                Err(why) => unreadable(why),
            },
            (RuleSubject::Builtin(tool), Some(pattern)) if is_file_tool(tool) => {
                PathPattern::parse(pattern).map(Pattern::Path).unwrap_or_else(unreadable)
            }
            (_, Some(_)) => unreadable("has no meaning for this tool".to_owned()),
        };
        Rule { text: text.clone(), pattern }
    }

    pub(super) fn is_readable(&self) -> bool {
        !matches!(self.pattern, Pattern::Unreadable(_))
    }

    /// True where calls of the tool are what the rule is about. An external tool is known by its server's configured
    /// name; whatever it calls itself, it is never taken for a builtin one.
    pub(super) fn is_about(&self, tool: &ToolSpec) -> bool {
        match (self.text.subject(), &tool.origin) {
            (RuleSubject::Builtin(_), ToolOrigin::Builtin(_)) => self.is_about_builtin(&tool.name),
            (RuleSubject::Server(server), ToolOrigin::External(origin)) => server == origin,
            (RuleSubject::ServerTool { server, tool: name }, ToolOrigin::External(origin)) => {
                server == origin && tool.name == external_tool_name(server, name)
            }
            _ => false,
        }
    }

    pub(super) fn is_about_builtin(&self, tool: &str) -> bool {
        let RuleSubject::Builtin(subject) = self.text.subject() else { return false };
        subject == tool
            || EDIT_TOOLS.contains(&subject.as_str()) && EDIT_TOOLS.contains(&tool)
            || subject == "Read" && READ_TOOLS.contains(&tool)
    }
}

fn is_file_tool(tool: &str) -> bool {
    EDIT_TOOLS.contains(&tool) || READ_TOOLS.contains(&tool)
}
