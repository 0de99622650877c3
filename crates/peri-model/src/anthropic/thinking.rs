//! How a request says how much the model may think. The wire has two forms, and most models refuse one of them.
//!
//! Claude 4.6 and later think as much as they hold right, guided by an effort; budgets are deprecated there and refused by
//! later ones. Earlier models, and those of others who imitate the protocol, know budgets only.

use peri_acp_types::Effort;
use serde::Serialize;

use crate::{ModelRequest, Thinking};

/// The first version that takes an effort beside adaptive thinking.
const FIRST_ADAPTIVE: (u32, u32) = (4, 6);
/// The least budget for thoughts that the wire allows.
const MIN_BUDGET: u32 = 1024;

/// What the request says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireThinking {
    Enabled {
        budget_tokens: u32,
    },
    Adaptive {
        /// Later models keep their thoughts to themselves unless they are asked for a summary.
        display: &'static str,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

/// The members `thinking` and `output_config`.
pub(super) fn wire_thinking(model: &str, request: &ModelRequest) -> (Option<WireThinking>, Option<OutputConfig>) {
    let Some(effort) = request.thinking.effort() else { return (None, None) };
    if version(model).is_some_and(|version| version >= FIRST_ADAPTIVE) {
        let thinking = WireThinking::Adaptive { display: "summarized" };
        return (Some(thinking), Some(OutputConfig { effort: effort.as_str() }));
    }
    let budget_tokens = match request.thinking {
        // The answer needs room beside the thoughts.
        Thinking::Budget(tokens) => tokens.min(request.output_tokens().saturating_sub(1)),
        Thinking::Unset | Thinking::Effort(_) => budget(effort).min(request.output_tokens() / 2),
    };
    ((budget_tokens >= MIN_BUDGET).then_some(WireThinking::Enabled { budget_tokens }), None)
}

/// What an effort is worth to a model that knows budgets only, in tokens.
fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::Low => 4_000,
        Effort::Medium => 10_000,
        Effort::High => 24_000,
    }
}

/// The version in the name of a Claude model: `claude-opus-4-6`, `anthropic/claude-sonnet-4.6`, `claude-3-7-sonnet-20250219`.
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude")?;
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    // Longer numbers are dates.
    let number = |word: &str| (word.len() <= 2).then(|| word.parse::<u32>().ok()).flatten();
    let major = words.by_ref().find_map(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelMessage;
    use serde_json::{Value, json};

    #[test]
    fn versions_are_read_from_names() {
        for (model, expect) in [
            ("claude-opus-4-6", Some((4, 6))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("anthropic/claude-sonnet-4.6", Some((4, 6))),
            ("us.anthropic.claude-opus-4-7-v1:0", Some((4, 7))),
            ("claude-fable-5", Some((5, 0))),
            ("claude-latest", None),
            ("some-model-9", None),
        ] {
            assert_eq!(version(model), expect, "{model}");
        }
    }

    #[track_caller]
    fn check(model: &str, thinking: Thinking, max_output_tokens: u32, expect: &[Value; 2]) {
        let request = ModelRequest {
            system: vec![],
            tools: vec![],
            messages: vec![ModelMessage::User(vec![])],
            max_output_tokens: Some(max_output_tokens),
            output_room: 100_000,
            thinking,
        };
        let (thinking, output) = wire_thinking(model, &request);
        assert_eq!([json!(thinking), json!(output)], *expect, "{model}");
    }

    #[test]
    fn each_model_is_asked_in_the_form_that_it_takes() {
        let adaptive = json!({"type": "adaptive", "display": "summarized"});
        let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
        let high = json!({"effort": "high"});
        check("claude-opus-4-6", Thinking::Effort(Effort::High), 32_000, &[adaptive.clone(), high.clone()]);
        check("claude-sonnet-5", Thinking::Budget(20_000), 32_000, &[adaptive, high]);
        check("claude-haiku-4-5", Thinking::Effort(Effort::Medium), 32_000, &[enabled(10_000), Value::Null]);
        check("claude-haiku-4-5", Thinking::Effort(Effort::High), 32_000, &[enabled(16_000), Value::Null]);
        check("other", Thinking::Effort(Effort::Low), 2_000, &[Value::Null, Value::Null]);
        check("other", Thinking::Budget(20_000), 5_000, &[enabled(4_999), Value::Null]);
        check("claude-opus-4-6", Thinking::Unset, 32_000, &[Value::Null, Value::Null]);
    }
}
