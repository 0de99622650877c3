//! The prompt: from the argument, or from standard input where there is none.
//!
//! Owns: the bounds of a prompt. Must not: touch standard input where an argument was given; it may be a pipe that never
//! closes. Invariant: what is read is whole, or refused.

use std::io::{IsTerminal, Read};

use crate::exit::Failure;

/// The most that is read from standard input.
pub const MAX_PROMPT_BYTES: usize = 10 << 20;

/// Finds the prompt. Blocks while standard input is open; that is before any session exists, so a signal just ends the
/// process.
///
/// # Errors
/// A usage [`Failure`] where there is no prompt, or one that cannot be taken.
pub fn find_prompt(argument: Option<&str>) -> Result<String, Failure> {
    let stdin = std::io::stdin();
    match argument {
        Some(prompt) => Ok(prompt.to_owned()),
        None if stdin.is_terminal() => {
            Err(Failure::usage("there is no prompt").hint("peri -p \"what to do\", or pipe the prompt in"))
        }
        None => read_to_end(stdin.lock()),
    }
}

fn read_to_end(stdin: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more than the bound tells a prompt that fits from one that does not.
    let limit = MAX_PROMPT_BYTES as u64 + 1;
    stdin.take(limit).read_to_end(&mut bytes).map_err(|error| {
        Failure::usage(format!("the prompt cannot be read from standard input: {error}"))
            .hint("give it as an argument: peri -p \"what to do\"")
    })?;
    decode(bytes)
}

fn decode(bytes: Vec<u8>) -> Result<String, Failure> {
    if bytes.len() > MAX_PROMPT_BYTES {
        return Err(Failure::usage(format!("the prompt on standard input is over {} MiB", MAX_PROMPT_BYTES >> 20))
            .hint("write it to a file, and name the file in a shorter prompt"));
    }
    let prompt = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::usage(format!("the prompt on standard input is not UTF-8 (byte {offset})"))
            .hint("convert it, or name the file in the prompt instead of piping it in")
    })?;
    match prompt.trim().is_empty() {
        true => Err(Failure::usage("the prompt on standard input is empty").hint("peri -p \"what to do\"")),
        false => Ok(prompt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: Result<&str, &str>) {
        match (read_to_end(bytes), expect) {
            (Ok(prompt), Ok(expected)) => assert_eq!(prompt, expected),
            (Err(failure), Err(part)) => assert!(failure.message.contains(part), "{failure}"),
            (got, expect) => panic!("{got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn standard_input_is_taken_whole_or_refused() {
        check("héllo 🦀\n".as_bytes(), Ok("héllo 🦀\n"));
        check(b" \n", Err("empty"));
        check(b"ab\xff", Err("not UTF-8 (byte 2)"));
        check(&vec![b'a'; MAX_PROMPT_BYTES], Ok(&"a".repeat(MAX_PROMPT_BYTES)));
        check(&vec![b'a'; MAX_PROMPT_BYTES + 1], Err("over 10 MiB"));
    }
}
