//! A general shell parser finds the same simple commands as our reader, on lines that both can read.
//!
//! The other parser is for tests alone: on hostile text it takes exponential time and unbounded stack.

use std::io::Cursor;

use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, IoFileRedirectTarget, IoRedirect, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

use super::read;

/// A generator that needs no seed from outside.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.roll(among.len())]
    }
}

/// A command line of known constructs, in most of which others can stand.
fn line(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || dice.roll(3) == 0 {
        return simple(dice);
    }
    let mut inner = || line(dice, depth - 1);
    let (one, two) = (inner(), inner());
    match dice.roll(14) {
        0 => format!("({one})"),
        1 => format!("{{ {one}; }}"),
        2 => format!("if {one}; then {two}; else c9; fi"),
        3 => format!("while {one}\ndo {two}; done"),
        4 => format!("for i in a 'b c'; do {one}; done"),
        5 => format!("case $x in a|b) {one};; *) {two}\n;; esac"),
        6 => format!("f() {{ {one}; }}"),
        7 => format!("c8 <({one}) a"),
        8 => format!("until {one}; do {two}; done"),
        9 => format!("if {one}; then c9; elif c8; then {two}; fi > out"),
        10 => format!("! {one} 2>&1"),
        11 => format!("[[ -f x && $y == z ]] && {one}"),
        _ => format!("{one}{}{two}", dice.pick(&[" && ", " || ", "; ", " | ", " |& ", "\n", " &\n", " # c7\n"])),
    }
}

fn simple(dice: &mut Dice) -> String {
    let name = dice.pick(&[
        "c1",
        "c2 x",
        "c3 'a b' \"c;d\"",
        "a=1 c4",
        "c5 > f 2>&1",
        "c6 $x ${y:-z} \\; \\#",
        "c0 <<E\n;c7 $x\nE\n:",
    ]);
    let arguments = dice.pick(&["", " then", " { }", " 'if' | c9", " a=b", " <<< \"x;y\"", " &> g", " #c7"]);
    if arguments == " #c7" { format!("{name}{arguments}\nc8") } else { format!("{name}{arguments}") }
}

/// The names of the simple commands, sorted, as the other parser finds them; None where it cannot read the line.
fn other_names(text: &str) -> Option<Vec<String>> {
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    let program = Parser::new(Cursor::new(text.as_bytes()), &options).parse_program().ok()?;
    let mut names = Vec::new();
    program.complete_commands.iter().for_each(|list| in_list(list, &mut names));
    names.sort();
    Some(names)
}

fn in_list(list: &CompoundList, names: &mut Vec<String>) {
    let pipelines = list.0.iter().flat_map(|item| item.0.iter()).map(|(_, pipeline)| pipeline);
    pipelines.flat_map(|pipeline| &pipeline.seq).for_each(|command| in_command(command, names));
}

fn in_command(command: &Command, names: &mut Vec<String>) {
    match command {
        Command::Simple(simple) => in_simple(simple, names),
        Command::Compound(compound, _) => in_compound(compound, names),
        Command::Function(function) => in_compound(&function.body.0, names),
        Command::ExtendedTest(..) => {}
    }
}

fn in_simple(simple: &SimpleCommand, names: &mut Vec<String>) {
    names.extend(simple.word_or_name.iter().map(|word| word.value.clone()));
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    for item in prefix.chain(simple.suffix.iter().flat_map(|suffix| &suffix.0)) {
        match item {
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell)
            | CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::File(
                _,
                _,
                IoFileRedirectTarget::ProcessSubstitution(_, shell),
            )) => in_list(&shell.list, names),
            _ => {}
        }
    }
}

fn in_compound(compound: &CompoundCommand, names: &mut Vec<String>) {
    match compound {
        CompoundCommand::BraceGroup(group) => in_list(&group.list, names),
        CompoundCommand::Subshell(shell) => in_list(&shell.list, names),
        CompoundCommand::ForClause(clause) => in_list(&clause.body.list, names),
        CompoundCommand::CaseClause(clause) => {
            clause.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|list| in_list(list, names));
        }
        CompoundCommand::IfClause(clause) => {
            in_list(&clause.condition, names);
            in_list(&clause.then, names);
            for other in clause.elses.iter().flatten() {
                other.condition.iter().for_each(|list| in_list(list, names));
                in_list(&other.body, names);
            }
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            in_list(&clause.0, names);
            in_list(&clause.1.list, names);
        }
        CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) | CompoundCommand::Coprocess(_) => {}
    }
}

#[test]
fn both_find_the_same_commands() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let mut compared = 0;
    for _ in 0..3000 {
        let text = line(&mut dice, 3);
        let reading = read(&text);
        let Some(theirs) = other_names(&text).filter(|_| reading.doubts.is_empty()) else { continue };
        let mut ours: Vec<String> = reading.commands.iter().map(|command| command.words[0].source.clone()).collect();
        ours.sort();
        assert_eq!(ours, theirs, "{text}");
        compared += 1;
    }
    assert!(compared > 1500, "{compared}");
}
