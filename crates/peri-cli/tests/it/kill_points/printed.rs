//! What a run printed before it ended: every whole line of stream-json is an acknowledgement.

use serde_json::Value;

/// The acknowledgements of a run.
pub struct Printed {
    pub run: usize,
    /// The session is there.
    pub session_opened: bool,
    pub told_of_an_interruption: bool,
    /// Answers that were said to be stored, in order.
    pub assistants: Vec<Value>,
    /// Results that were said to be stored, in order.
    pub results: Vec<Value>,
    /// The turn was said to be done.
    pub finished: bool,
}

impl Printed {
    /// Reads standard output; a last line that was cut off says nothing.
    ///
    /// # Errors
    /// Words for a line that is not of the format.
    pub fn read(run: usize, stdout: &str) -> Result<Printed, String> {
        let mut printed = Printed {
            run,
            session_opened: false,
            told_of_an_interruption: false,
            assistants: Vec::new(),
            results: Vec::new(),
            finished: false,
        };
        for line in whole_lines(stdout) {
            let mut line: Value =
                serde_json::from_str(line).map_err(|error| format!("a line is not JSON ({error}): {line}"))?;
            match (line["type"].as_str(), line["subtype"].as_str()) {
                (Some("system"), Some("init")) => printed.session_opened = true,
                (Some("system"), Some("notice")) if line["kind"] == "interrupted" => {
                    printed.told_of_an_interruption = true;
                }
                (Some("assistant"), _) => printed.assistants.push(line["message"].take()),
                (Some("user"), _) => printed.results.push(line["message"].take()),
                (Some("result"), Some("success")) => printed.finished = true,
                _ => return Err(format!("an unexpected line: {line}")),
            }
        }
        Ok(printed)
    }
}

/// The lines that were written to their end.
pub fn whole_lines(output: &str) -> impl Iterator<Item = &str> {
    output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}
