//! The result object: the last line of stream-json, and all of json.
//!
//! Invariant: `is_error` is false if and only if the exit code is 0.

use peri_acp::extension::StopReason;
use serde_json::{Value, json};
use uuid::Uuid;

use super::denials::Denial;
use super::stream_json::usage;
use super::summary::{Summary, Verdict};
use crate::exit::Failure;

/// The result of a run. `failure` is the verdict's, as it is told; `session_id` is None where there was none yet.
pub fn result(
    summary: &Summary,
    verdict: &Verdict,
    failure: Option<&Failure>,
    denials: &[Denial],
    session_id: Option<&str>,
    line_id: Uuid,
) -> Value {
    let denials: Vec<Value> = denials.iter().map(Denial::to_json).collect();
    let mut result = json!({
        "type": "result",
        "subtype": subtype(verdict, summary.stop_reason()),
        "is_error": failure.is_some(),
        "duration_ms": millis(summary.elapsed()),
        "duration_api_ms": millis(summary.api_time()),
        "num_turns": summary.steps(),
        "result": words(summary, failure),
        "stop_reason": stop_word(verdict, summary.stop_reason()),
        "session_id": session_id,
        "usage": usage(&summary.usage()),
        "permission_denials": denials,
        "uuid": line_id.to_string(),
    });
    if let Some(failure) = failure {
        result["errors"] = json!([failure.message]);
        result["hint"] = json!(failure.hint);
    }
    result
}

/// The answer; where there is none, what is wrong. Programs show this member.
fn words<'a>(summary: &'a Summary, failure: Option<&'a Failure>) -> &'a str {
    match failure {
        Some(failure) if !summary.has_answer() => &failure.message,
        _ => summary.last_text(),
    }
}

fn subtype(verdict: &Verdict, reason: Option<StopReason>) -> &'static str {
    match (verdict, reason) {
        (Verdict::Answered, _) => "success",
        (Verdict::Limited(_), Some(StopReason::MaxTurnRequests)) => "error_max_turns",
        _ => "error_during_execution",
    }
}

fn stop_word(verdict: &Verdict, reason: Option<StopReason>) -> Option<&'static str> {
    match (verdict, reason) {
        (Verdict::Cancelled | Verdict::Signalled(_), _) => Some("cancelled"),
        (_, Some(StopReason::EndTurn)) => Some("end_turn"),
        (_, Some(StopReason::MaxTokens)) => Some("max_tokens"),
        (_, Some(StopReason::MaxTurnRequests)) => Some("max_turns"),
        (_, Some(StopReason::Refusal)) => Some("refusal"),
        (_, None) => None,
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    peri_acp_types::as_millis(duration)
}
