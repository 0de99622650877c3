//! A request as it came.

use std::time::SystemTime;

use peri_model::ModelProtocol;
use serde_json::Value;

use super::wire;

/// A request that the endpoint received.
#[derive(Clone, Debug)]
pub struct CapturedRequest {
    /// Its place among the requests of its kind, from 0.
    pub number: usize,
    /// The connection that it came on, from 1: two requests with one number shared it.
    pub connection: usize,
    /// When its head was complete.
    pub arrived_at: SystemTime,
    pub method: String,
    /// With the query, if there is one.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body; null where it is not JSON.
    pub json: Value,
}

impl CapturedRequest {
    /// The first header of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path without the query.
    pub fn path_alone(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// The protocol that is spoken at the path.
    pub fn protocol(&self) -> Option<ModelProtocol> {
        wire::protocol_of(&self.path)
    }

    /// The conversation: the `messages` of the body, or the items of its `input`.
    pub fn messages(&self) -> &[Value] {
        let messages = self.json["messages"].as_array().or(self.json["input"].as_array());
        messages.map_or(&[], Vec::as_slice)
    }

    /// How many answers of the model the conversation holds. The same for a request that is sent again.
    pub fn answers_so_far(&self) -> usize {
        let by_model: Vec<bool> = self.messages().iter().map(is_by_model).collect();
        // An answer is one message, or several items in a row.
        let items = self.protocol() == Some(ModelProtocol::OpenAiResponses);
        let begins = |place: &usize| by_model[*place] && !(items && *place > 0 && by_model[*place - 1]);
        (0..by_model.len()).filter(begins).count()
    }

    /// All tool results of the conversation, in order: call id and text.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let blocks = self.messages().iter().flat_map(|message| match message["content"].as_array() {
            Some(blocks) if message["role"] != "tool" => blocks.as_slice(),
            _ => std::slice::from_ref(message),
        });
        blocks.filter_map(result_in_words).collect()
    }

    /// The text of the last message.
    pub fn last_text(&self) -> String {
        self.messages().last().map(|message| text_of(&message["content"])).unwrap_or_default()
    }
}

fn is_by_model(message: &Value) -> bool {
    let kind = message["type"].as_str().unwrap_or_default();
    message["role"] == "assistant" || matches!(kind, "reasoning" | "function_call")
}

/// Call id and text of a result, in whatever protocol.
fn result_in_words(result: &Value) -> Option<(String, String)> {
    let (id, content) = match (result["type"].as_str(), result["role"].as_str()) {
        (Some("tool_result"), _) => (&result["tool_use_id"], &result["content"]),
        (Some("function_call_output"), _) => (&result["call_id"], &result["output"]),
        (_, Some("tool")) => (&result["tool_call_id"], &result["content"]),
        _ => return None,
    };
    Some((id.as_str().unwrap_or_default().to_owned(), text_of(content)))
}

/// The text of a content member: a string, or the text blocks of an array.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
