//! What a way to a server gives to whoever opens it: the messages, and the work of carrying them.
//!
//! Invariant: a request that is on its way when its server is lost gets an answer that says why, so that nobody waits for
//! one that cannot come.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use peri_acp_types::ports::McpDuplex;
use serde_json::{Value, json};

/// The code of an answer that comes from the way to a server and not from the server itself. In the range that JSON-RPC
/// leaves to implementations.
pub(super) const LOST: i32 = -32_099;

/// A server that is being talked to.
pub struct Link {
    /// The client's end.
    pub duplex: McpDuplex,
    /// Carries the messages until one side is gone, then ends what was started for the server. To be run by whoever
    /// opened it; dropping it ends the server without waiting for it. The error tells what could not be confirmed.
    pub serving: BoxFuture<'static, Result<(), String>>,
}

/// The requests that the client still waits for.
#[derive(Default)]
pub(super) struct Outstanding {
    by_id: BTreeMap<String, Value>,
    has_begun: bool,
}

impl Outstanding {
    /// Whether the client has sent anything yet.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Notes a message of the client's.
    pub(super) fn sent(&mut self, message: &Value) {
        self.has_begun = true;
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(_), Some(id)) => {
                self.by_id.insert(id.to_string(), id.clone());
            }
            (Some("notifications/cancelled"), None) => {
                if let Some(id) = message.pointer("/params/requestId") {
                    self.by_id.remove(&id.to_string());
                }
            }
            _ => {}
        }
    }

    /// Notes a message of the server's.
    pub(super) fn received(&mut self, message: &Value) {
        if message.get("method").is_none()
            && let Some(id) = message.get("id")
        {
            self.by_id.remove(&id.to_string());
        }
    }

    /// The answer to one request that will have no other; None where the client no longer waits for it.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn give_up(&mut self, id: &Value, reason: &str) -> Option<Value> {
        self.by_id.remove(&id.to_string()).map(|id| lost(&id, reason))
    }

    /// The answers to all that are left.
    pub(super) fn give_up_all(&mut self, reason: &str) -> Vec<Value> {
        std::mem::take(&mut self.by_id).into_values().map(|id| lost(&id, reason)).collect()
    }
}

fn lost(id: &Value, reason: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": LOST, "message": reason}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_or_cancelled_is_not_given_up() {
        let mut outstanding = Outstanding::default();
        for id in [json!(1), json!("1"), json!(2), json!(3)] {
            outstanding.sent(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call"}));
        }
        outstanding.sent(&json!({"method": "notifications/cancelled", "params": {"requestId": 2}}));
        outstanding.sent(&json!({"id": 9, "result": {}}));
        outstanding.received(&json!({"id": 1, "result": {}}));
        outstanding.received(&json!({"id": 3, "method": "ping"}));
        assert_eq!(outstanding.give_up(&json!(1), "gone"), None);
        let answers = outstanding.give_up_all("gone");
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!("1"), &json!(3)]);
        assert_eq!(answers[0]["error"]["message"], "gone");
        assert!(outstanding.give_up_all("gone").is_empty());
    }
}
