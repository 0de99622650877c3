//! What must hold for every request that a session sends, checked on captured ones.

use peri_acp_types::{AssistantPart, ToolCallId};
use peri_model::{ModelMessage, ModelRequest};

use crate::diff::debug_differences;

/// Checks the requests of one session, in the order in which they were sent.
///
/// # Panics
/// Where a call lacks its one result, or where a request does not begin with the one before it.
#[track_caller]
pub fn check_requests(requests: &[ModelRequest]) {
    for (index, request) in requests.iter().enumerate() {
        if let Err(fault) = calls_are_answered(&request.messages) {
            panic!("request {index}: {fault}\n{:#?}", request.messages);
        }
    }
    for (index, pair) in requests.windows(2).enumerate() {
        let [earlier, later] = pair else { continue };
        if let Err(fault) = begins_with(later, earlier) {
            panic!("request {}: {fault}\n{}", index + 1, debug_differences(earlier, later));
        }
    }
}

fn calls_are_answered(messages: &[ModelMessage]) -> Result<(), String> {
    let mut following = messages.iter().skip(1).map(Some).chain([None]);
    for message in messages {
        let next = following.next().flatten();
        let calls = calls_of(message);
        let answered: Vec<&ToolCallId> = match next {
            Some(ModelMessage::ToolResults(results)) => results.iter().map(|result| &result.call_id).collect(),
            _ => Vec::new(),
        };
        let follows_results = matches!(next, Some(ModelMessage::ToolResults(_)));
        if calls != answered || (calls.is_empty() && follows_results) {
            return Err(format!("calls {calls:?} are answered by {answered:?}"));
        }
    }
    Ok(())
}

fn calls_of(message: &ModelMessage) -> Vec<&ToolCallId> {
    let ModelMessage::Assistant(parts) = message else { return Vec::new() };
    parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(&call.id),
            AssistantPart::Text(_) | AssistantPart::Thought(_) => None,
        })
        .collect()
}

fn begins_with(later: &ModelRequest, earlier: &ModelRequest) -> Result<(), &'static str> {
    if later.system != earlier.system {
        return Err("the system prompt changed");
    }
    if later.tools != earlier.tools {
        return Err("the tools changed");
    }
    if !later.messages.starts_with(&earlier.messages) {
        return Err("the messages do not begin with those of the request before");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use peri_acp_types::{Content, ToolArguments, ToolCall, ToolOutput, ToolResult};
    use peri_model::Thinking;

    fn request(messages: Vec<ModelMessage>) -> ModelRequest {
        let system = vec!["s".to_owned()];
        ModelRequest {
            system,
            tools: vec![],
            messages,
            max_output_tokens: None,
            output_room: 1,
            thinking: Thinking::Unset,
        }
    }

    fn user(text: &str) -> ModelMessage {
        ModelMessage::User(vec![Content::Text(text.into())])
    }

    fn call(id: &str) -> ModelMessage {
        let arguments = ToolArguments::Object(Default::default());
        ModelMessage::Assistant(vec![AssistantPart::ToolCall(ToolCall {
            id: ToolCallId(id.into()),
            name: "Read".into(),
            arguments,
        })])
    }

    fn result(id: &str) -> ModelMessage {
        ModelMessage::ToolResults(vec![ToolResult { call_id: ToolCallId(id.into()), output: ToolOutput::text("x") }])
    }

    fn holds(requests: &[ModelRequest]) -> bool {
        std::panic::catch_unwind(|| check_requests(requests)).is_ok()
    }

    #[test]
    fn what_breaks_the_contract_is_found() {
        assert!(holds(&[request(vec![user("a")]), request(vec![user("a"), call("1"), result("1")])]));
        assert!(!holds(&[request(vec![user("a"), call("1")])]), "a call without a result");
        assert!(!holds(&[request(vec![user("a"), call("1"), result("2")])]), "another call's result");
        assert!(!holds(&[request(vec![user("a"), result("1")])]), "a result without a call");
        assert!(!holds(&[request(vec![user("a")]), request(vec![user("b"), user("a")])]), "another prefix");
        let other = ModelRequest { system: vec!["t".to_owned()], ..request(vec![user("a")]) };
        assert!(!holds(&[request(vec![user("a")]), other]), "another system prompt");
    }
}
