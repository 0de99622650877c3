//! A request as it came.

use std::time::SystemTime;

use serde_json::Value;

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

    /// The `messages` of the body.
    pub fn messages(&self) -> &[Value] {
        self.json["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// How many answers of the model the conversation holds. The same for a request that is sent again.
    pub fn answers_so_far(&self) -> usize {
        self.messages().iter().filter(|message| message["role"] == "assistant").count()
    }

    /// All tool results of the conversation, in order: call id and text.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let blocks = self.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let in_words = |block: &Value| {
            let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
            (id, text_of(&block["content"]))
        };
        results.map(in_words).collect()
    }

    /// The text of the last message.
    pub fn last_text(&self) -> String {
        self.messages().last().map(|message| text_of(&message["content"])).unwrap_or_default()
    }
}

/// The text of a content member: a string, or the text blocks of an array.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
