//! The loop guard: notices when a turn does the same thing with the same result again and again.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use peri_acp_types::{ToolArguments, ToolCall, ToolResult};

/// The longest cycle that is looked for, in steps: A A A, A B A B, A B C A B C.
const LONGEST_CYCLE: usize = 3;

/// Watches the steps of one turn.
pub(crate) struct LoopGuard {
    /// Repetitions until the model is told; twice as many stop the turn. 0: off.
    limit: usize,
    /// Fingerprints of the last steps, enough for twice the limit of the longest cycle.
    recent: VecDeque<u64>,
    noticed: bool,
}

/// What the guard thinks of the last step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoopVerdict {
    Fine,
    /// The model should be told, once.
    Notice {
        repetitions: usize,
    },
    /// Telling it did not help.
    Stop {
        repetitions: usize,
    },
}

impl LoopGuard {
    pub(crate) fn new(limit: u32) -> LoopGuard {
        LoopGuard { limit: limit as usize, recent: VecDeque::new(), noticed: false }
    }

    /// Takes in a step: its calls with their results.
    pub(crate) fn observe(&mut self, calls: &[ToolCall], results: &[ToolResult]) -> LoopVerdict {
        if self.limit == 0 || calls.is_empty() {
            return LoopVerdict::Fine;
        }
        self.recent.push_back(fingerprint(calls, results));
        if self.recent.len() > self.limit * 2 * LONGEST_CYCLE {
            self.recent.pop_front();
        }
        let repetitions = (1..=LONGEST_CYCLE).map(|cycle| self.repetitions(cycle)).max().unwrap_or(1);
        if repetitions >= self.limit * 2 {
            LoopVerdict::Stop { repetitions }
        } else if repetitions >= self.limit && !self.noticed {
            self.noticed = true;
            LoopVerdict::Notice { repetitions }
        } else {
            self.noticed &= repetitions >= self.limit;
            LoopVerdict::Fine
        }
    }

    /// How often the last `cycle` steps occur at the end, one after the other.
    fn repetitions(&self, cycle: usize) -> usize {
        let newest_first: Vec<u64> = self.recent.iter().rev().copied().collect();
        let alike = newest_first.iter().zip(newest_first.iter().skip(cycle)).take_while(|(a, b)| a == b).count();
        alike / cycle + 1
    }
}

fn fingerprint(calls: &[ToolCall], results: &[ToolResult]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for call in calls {
        call.name.hash(&mut hasher);
        match &call.arguments {
            ToolArguments::Object(map) => serde_json::Value::Object(map.clone()).to_string().hash(&mut hasher),
            ToolArguments::Invalid { raw, .. } => raw.hash(&mut hasher),
        }
    }
    for result in results {
        result.output.is_error.hash(&mut hasher);
        result.output.joined_text().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peri_acp_types::{ToolCallId, ToolOutput};

    /// Feeds one letter per step; the verdict of the last step counts.
    fn verdict(steps: &str) -> LoopVerdict {
        let mut guard = LoopGuard::new(3);
        let mut last = LoopVerdict::Fine;
        for letter in steps.chars() {
            let id = ToolCallId("x".into());
            let call = ToolCall {
                id: id.clone(),
                name: letter.to_lowercase().to_string(),
                arguments: ToolArguments::Object(Default::default()),
            };
            let output = ToolOutput::text(letter.to_string());
            last = guard.observe(&[call], &[ToolResult { call_id: id, output }]);
        }
        last
    }

    #[test]
    fn repeated_steps_are_noticed_then_stopped() {
        assert_eq!(verdict("aa"), LoopVerdict::Fine);
        assert_eq!(verdict("aaa"), LoopVerdict::Notice { repetitions: 3 });
        assert_eq!(verdict("aaaa"), LoopVerdict::Fine, "told once");
        assert_eq!(verdict("aaaaaa"), LoopVerdict::Stop { repetitions: 6 });
    }

    #[test]
    fn cycles_of_up_to_three_steps_are_seen() {
        assert_eq!(verdict("xababab"), LoopVerdict::Notice { repetitions: 3 });
        assert_eq!(verdict("abcabcabc"), LoopVerdict::Notice { repetitions: 3 });
        assert_eq!(verdict("abababababab"), LoopVerdict::Stop { repetitions: 6 });
    }

    #[test]
    fn the_same_call_with_another_result_is_progress() {
        assert_eq!(verdict("aAaaAa"), LoopVerdict::Fine);
        assert_eq!(verdict("abcd"), LoopVerdict::Fine);
    }

    #[test]
    fn a_step_in_between_starts_the_count_anew() {
        assert_eq!(verdict("aabaa"), LoopVerdict::Fine);
    }
}
