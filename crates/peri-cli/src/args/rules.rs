//! Rules between options of a print run.
//!
//! Owns: which combinations cannot have their effect. Must not: guess what was meant; a refusal tells what to type.

use clap::CommandFactory;

use super::{AcpArgs, Cli, InputFormat, OutputFormat, PrintArgs, StoreArg};
use crate::console::one_line;
use crate::exit::Failure;

/// How alike a word must be to a command's name to be taken for a slip: 1 is the same.
const ALIKE: f64 = 0.75;

pub(super) fn check_print(args: &PrintArgs) -> Result<(), Failure> {
    check_prompt(args)?;
    check_session(args)?;
    check_format(args)
}

pub(super) fn check_acp(args: &AcpArgs) -> Result<(), Failure> {
    check_store(args.no_session_persistence, &args.store)
}

fn check_prompt(args: &PrintArgs) -> Result<(), Failure> {
    let first = args.prompt.first().map(String::as_str).unwrap_or_default();
    if !args.print {
        return Err(no_print(first));
    }
    if args.prompt.len() > 1 {
        return Err(Failure::usage(format!("the prompt is {} arguments", args.prompt.len()))
            .hint(format!("quote it: peri -p \"{} ...\"", first.replace('"', "\\\""))));
    }
    if args.prompt.iter().any(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::usage("the prompt is empty").hint("peri -p \"what to do\""));
    }
    Ok(())
}

fn check_session(args: &PrintArgs) -> Result<(), Failure> {
    if args.continue_last && args.resume.is_some() {
        return Err(Failure::usage("--continue and --resume name two sessions").hint("give one of them"));
    }
    if args.continues() && args.session_id.is_some() {
        return Err(Failure::usage(
            "--session-id is the id of a new session, and --continue or --resume go on in an old one",
        )
        .hint("leave --session-id out, or the other"));
    }
    if args.continues() && args.model.append_system_prompt.is_some() {
        return Err(Failure::usage(
            "--append-system-prompt has no effect on a session that exists: its system prompt is fixed when it begins",
        )
        .hint("start a new session, or put the text into the prompt"));
    }
    if args.continues() && args.no_session_persistence {
        return Err(Failure::usage("--no-session-persistence keeps nothing, so there is nothing to go on in")
            .hint("leave --no-session-persistence out"));
    }
    check_store(args.no_session_persistence, &args.store)?;
    if args.resume.as_deref().is_some_and(|id| id.trim().is_empty()) {
        return Err(Failure::usage("--resume wants the id of a session, or its beginning").hint("peri sessions list"));
    }
    Ok(())
}

fn check_store(keeps_nothing: bool, store: &StoreArg) -> Result<(), Failure> {
    match keeps_nothing && store.db_path.is_some() {
        true => Err(Failure::usage("--db-path has no effect with --no-session-persistence").hint("give one of them")),
        false => Ok(()),
    }
}

fn check_format(args: &PrintArgs) -> Result<(), Failure> {
    if args.include_partial_messages && args.output_format != OutputFormat::StreamJson {
        return Err(Failure::usage("--include-partial-messages has no effect in this output format")
            .hint("add --output-format stream-json"));
    }
    if args.input_format == InputFormat::StreamJson {
        if args.output_format != OutputFormat::StreamJson {
            return Err(Failure::usage(
                "--input-format stream-json has an answer for each message, which this output format has no room for",
            )
            .hint("add --output-format stream-json"));
        }
        if !args.prompt.is_empty() {
            return Err(Failure::usage(
                "with --input-format stream-json the prompts come from standard input, and here is one more",
            )
            .hint("leave the argument out, or --input-format"));
        }
    }
    Ok(())
}

/// What a line without `-p` may have meant.
fn no_print(first: &str) -> Failure {
    let commands = Cli::command();
    let names = || commands.get_subcommands().map(clap::Command::get_name);
    if names().any(|name| name == first) {
        return Failure::usage(format!("`{first}` is taken for a prompt here, because options came before it"))
            .hint(format!("options come after a command: peri {first} ... [OPTIONS]"));
    }
    let alike = names().map(|name| (strsim::jaro_winkler(name, first), name)).filter(|(likeness, _)| *likeness > ALIKE);
    match alike.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((_, name)) => Failure::usage(format!("there is no command `{}`", one_line(first)))
            .hint(format!("did you mean peri {name}? For a prompt: peri -p \"{}\"", one_line(first))),
        None => Failure::usage("there is no terminal UI yet, so a prompt and options need -p to have an effect")
            .hint("peri -p \"what to do\" runs one prompt; peri --help shows the rest"),
    }
}
