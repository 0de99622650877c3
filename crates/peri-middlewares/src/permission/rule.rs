//! Rules, ready to be matched: whose calls each means, and its pattern.
//!
//! Invariant: a rule whose pattern cannot be read never allows anything, and where it refuses or asks it may mean any
//! call of its tool; a notice names it.

use std::fmt;
use std::str::FromStr;

use peri_acp_types::{ToolOrigin, ToolSpec};
use peri_config::{Origin, PermissionRule, RuleError, RuleSubject, Sourced};

use super::path_rule::PathPattern;
use super::shell_rule::ShellPattern;
use crate::mcp::external_tool_name;

/// The tool of the workspace server that runs commands.
pub(super) const SHELL_TOOL: &str = "Bash";
/// The tools that change a file: a rule about either is one about both.
const EDIT_TOOLS: [&str; 2] = ["Edit", "Write"];
/// The tools that read files; a rule about the first covers all.
const READ_TOOLS: [&str; 3] = ["Read", "Grep", "Glob"];

/// A rule, and the file, variable or option that it comes from. `Display` names both, for refusals.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyRule {
    pub rule: PermissionRule,
    /// None: made in the session itself.
    pub origin: Option<Origin>,
}

impl From<&Sourced<PermissionRule>> for PolicyRule {
    fn from(sourced: &Sourced<PermissionRule>) -> PolicyRule {
        PolicyRule { rule: sourced.value.clone(), origin: Some(sourced.origin.clone()) }
    }
}

impl From<PermissionRule> for PolicyRule {
    fn from(rule: PermissionRule) -> PolicyRule {
        PolicyRule { rule, origin: None }
    }
}

impl FromStr for PolicyRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<PolicyRule, RuleError> {
        text.parse::<PermissionRule>().map(PolicyRule::from)
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "rule `{}` from {origin}", self.rule),
            None => write!(f, "rule `{}`", self.rule),
        }
    }
}

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
    pub(super) told: PolicyRule,
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
    pub(super) fn new(allow: &[PolicyRule], ask: &[PolicyRule], deny: &[PolicyRule]) -> Rules {
        let compile = |rules: &[PolicyRule]| rules.iter().cloned().map(Rule::new).collect();
        Rules { allow: compile(allow), ask: compile(ask), deny: compile(deny) }
    }

    /// A line for each rule that cannot be read.
    pub(super) fn complaints(&self) -> Vec<String> {
        let complain = |rule: &Rule, effect: &str| match &rule.pattern {
            Pattern::Unreadable(why) => Some(format!("permission {}: its pattern {why}; {effect}", rule.told)),
            _ => None,
        };
        let allow = self.allow.iter().filter_map(|rule| complain(rule, "it allows nothing"));
        let ask = self.ask.iter().filter_map(|rule| complain(rule, "every call of the tool is asked about"));
        let deny = self.deny.iter().filter_map(|rule| complain(rule, "every call of the tool is asked about"));
        allow.chain(ask).chain(deny).collect()
    }
}

impl Rule {
    pub(super) fn new(told: impl Into<PolicyRule>) -> Rule {
        let told = told.into();
        let unreadable = Pattern::Unreadable;
        let pattern = match (told.rule.subject(), told.rule.pattern()) {
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
        Rule { told, pattern }
    }

    pub(super) fn is_readable(&self) -> bool {
        !matches!(self.pattern, Pattern::Unreadable(_))
    }

    /// True where calls of the tool are what the rule is about. An external tool is known by its server's configured
    /// name; whatever it calls itself, it is never taken for a builtin one.
    pub(super) fn is_about(&self, tool: &ToolSpec) -> bool {
        match (self.told.rule.subject(), &tool.origin) {
            (RuleSubject::Builtin(_), ToolOrigin::Builtin(_)) => self.is_about_builtin(&tool.name),
            (RuleSubject::Server(server), ToolOrigin::External(origin)) => server == origin,
            (RuleSubject::ServerTool { server, tool: name }, ToolOrigin::External(origin)) => {
                server == origin && tool.name == external_tool_name(server, name)
            }
            _ => false,
        }
    }

    pub(super) fn is_about_builtin(&self, tool: &str) -> bool {
        let RuleSubject::Builtin(subject) = self.told.rule.subject() else { return false };
        subject == tool
            || EDIT_TOOLS.contains(&subject.as_str()) && EDIT_TOOLS.contains(&tool)
            || subject == "Read" && READ_TOOLS.contains(&tool)
    }
}

fn is_file_tool(tool: &str) -> bool {
    EDIT_TOOLS.contains(&tool) || READ_TOOLS.contains(&tool)
}
