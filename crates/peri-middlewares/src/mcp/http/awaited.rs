//! The request that an exchange over HTTP is about, and what can be its answer.
//!
//! Invariant: an answer to another request is never taken for this one's.

use futures::StreamExt;
use futures::stream::BoxStream;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

/// Events as they come.
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A request that waits for its answer.
pub(super) struct Awaited(RequestId);

impl Awaited {
    /// None for what has no answer.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Awaited> {
        let JsonRpcMessage::Request(request) = message else { return None };
        Some(Awaited(request.id.clone()))
    }

    /// The message as the answer; None for one to another request. An error that names no request is this one's: no other is
    /// talked about here.
    pub(super) fn answer(&self, mut message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        if let ServerJsonRpcMessage::Error(error) = &mut message {
            error.id.get_or_insert_with(|| self.0.clone());
        }
        self.is_no_stray(&message).then_some(message)
    }

    /// False for an answer to another request.
    fn is_no_stray(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            ServerJsonRpcMessage::Response(answer) => Some(&answer.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        // Some servers answer a number with the same number in quotes.
        id.is_none_or(|id| id.to_string() == self.0.to_string())
    }

    /// The events of the exchange: rmcp takes the first answer for this one's and reads no further, and during the handshake
    /// gives up at what is no message.
    pub(super) fn without_strays(self, events: Events) -> Events {
        let is_wanted = move |event: &Result<Sse, SseError>| match event {
            Ok(Sse { data: Some(data), .. }) if !data.trim().is_empty() => {
                serde_json::from_str(data).is_ok_and(|message| self.is_no_stray(&message))
            }
            Ok(_) | Err(_) => true,
        };
        events.filter(move |event| std::future::ready(is_wanted(event))).boxed()
    }
}
