//! The text form of permission rules.

use peri_config::{PermissionRule, RuleError, RuleSubject, split_rule_list};

#[test]
fn rules_that_can_be_read_are_written_back_the_same() {
    let builtin = |tool: &str| RuleSubject::Builtin(tool.to_owned());
    let check = |text: &str, subject: RuleSubject, pattern: Option<&str>| {
        let rule: PermissionRule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((rule.subject(), rule.pattern()), (&subject, pattern), "{text}");
        assert_eq!(rule.to_string(), text.trim());
    };
    check("Read", builtin("Read"), None);
    check("  Read ", builtin("Read"), None);
    check("Bash(git status:*)", builtin("Bash"), Some("git status:*"));
    check("Bash(echo $(date) (x))", builtin("Bash"), Some("echo $(date) (x)"));
    check("Bash())", builtin("Bash"), Some(")"));
    check("Edit(~/notes/**/*.md)", builtin("Edit"), Some("~/notes/**/*.md"));
    check("Edit(/データ/🦀)", builtin("Edit"), Some("/データ/🦀"));
    check("mcp__git", RuleSubject::Server("git".to_owned()), None);
    check("mcp__git__log", RuleSubject::ServerTool { server: "git".to_owned(), tool: "log".to_owned() }, None);
    check("mcp__git__a.b__c", RuleSubject::ServerTool { server: "git".to_owned(), tool: "a.b__c".to_owned() }, None);
}

#[test]
fn text_that_is_no_rule() {
    let check = |text: &str, expect: RuleError| {
        assert_eq!(text.parse::<PermissionRule>(), Err(expect), "{text}");
    };
    check("", RuleError::Empty);
    check(" ", RuleError::Empty);
    check("Bash(", RuleError::Unclosed);
    check("Bash(a) b", RuleError::Unclosed);
    check("Bash()", RuleError::EmptyPattern);
    check("Bash(  )", RuleError::EmptyPattern);
    check("(rm)", RuleError::ToolName);
    check("Bash (rm)", RuleError::ToolName);
    check("Bash rm", RuleError::ToolName);
    check("Bäsh", RuleError::ToolName);
    check("*", RuleError::EveryTool);
    check("mcp__", RuleError::ServerName);
    check("mcp____tool", RuleError::ServerName);
    check("mcp__git__", RuleError::ServerName);
    check("mcp__git__*", RuleError::ServerName);
    check("mcp__git(x)", RuleError::PatternOnServer);
    check("Bash(a\nb)", RuleError::ControlCharacter);
    check("Bash(a\u{0}b)", RuleError::ControlCharacter);
    check("Bash(\u{202e}mr)", RuleError::ControlCharacter);
    check(&"x".repeat(5000), RuleError::TooLong);
}

#[test]
fn rules_are_made_from_parts_only_if_they_can_be_read_back() {
    let made = PermissionRule::builtin("Bash", Some("git log:*")).unwrap();
    assert_eq!(made, "Bash(git log:*)".parse().unwrap());
    assert_eq!(PermissionRule::builtin("Bash", Some("a\nb")), Err(RuleError::ControlCharacter));
    assert_eq!(PermissionRule::builtin("Bash", Some("")), Err(RuleError::EmptyPattern));
}

#[test]
fn lists_of_the_command_line() {
    let check = |text: &str, expect: &[&str]| assert_eq!(split_rule_list(text), expect, "{text}");
    check("", &[]);
    check(" , ,", &[]);
    check("Read", &["Read"]);
    check("Read,Edit Write", &["Read", "Edit", "Write"]);
    check("Bash(git log:*, x) , Read", &["Bash(git log:*, x)", "Read"]);
    check("Bash(echo $(a b)) Read", &["Bash(echo $(a b))", "Read"]);
    check("Bash(a b", &["Bash(a b"]);
    check("a) b", &["a)", "b"]);
}
