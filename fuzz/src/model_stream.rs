//! The answer of an endpoint: any bytes, in any pieces, for each protocol.
//!
//! Holds: exactly one terminal event, and it is the last; the pieces make no difference; calls have ids of their own;
//! the key is never shown.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt as _;
use peri_acp_types::AssistantPart;
use peri_model::{ModelEndpoint, ModelProtocol, ModelStreamEvent};
use peri_testkit::runtime::FakeClock;

use crate::endpoint::{KEY, endpoint, hello};
use crate::transport::{Answer, FakeTransport, Piece};

const PROTOCOLS: [ModelProtocol; 3] =
    [ModelProtocol::AnthropicMessages, ModelProtocol::OpenAiChat, ModelProtocol::OpenAiResponses];
const STATUSES: [u16; 8] = [200, 200, 200, 200, 200, 400, 429, 529];
const TYPES: [&str; 4] = ["text/event-stream", "text/event-stream", "application/json", ""];

/// The first byte chooses the protocol, the second how the answer begins and ends, the third how it is cut in pieces; the
/// rest is the body.
pub fn check(data: &[u8]) {
    let Some((&[protocol, frame, cuts], body)) = data.split_first_chunk::<3>() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let case = Case { protocol: PROTOCOLS[usize::from(protocol) % PROTOCOLS.len()], frame };
    let whole = runtime.block_on(case.events(vec![Piece::Bytes(body.to_vec())]));
    let in_pieces = runtime.block_on(case.events(pieces(body, cuts)));
    for events in [&whole, &in_pieces] {
        check_events(events);
    }
    assert_eq!(seen(&whole), seen(&in_pieces), "the pieces make a difference");
}

struct Case {
    protocol: ModelProtocol,
    frame: u8,
}

impl Case {
    async fn events(&self, mut body: Vec<Piece>) -> Vec<ModelStreamEvent> {
        match self.frame & 3 {
            0 | 1 => {}
            2 => body.push(Piece::Break),
            _ => body.push(Piece::Silence),
        }
        let kind = TYPES[usize::from(self.frame >> 2) % TYPES.len()];
        let status = STATUSES[usize::from(self.frame >> 4) % STATUSES.len()];
        let headers: &[(&str, &str)] = if kind.is_empty() { &[] } else { &[("content-type", kind)] };
        let http = Arc::new(FakeTransport::new([Answer::with(status, headers, body)]));
        let endpoint = ModelEndpoint { protocol: self.protocol, ..endpoint() };
        let model = peri_model::connect(endpoint, http, Arc::new(FakeClock::automatic()));
        model.stream(hello()).collect().await
    }
}

/// One byte at a time, or pieces of lengths that follow from the seed.
fn pieces(body: &[u8], cuts: u8) -> Vec<Piece> {
    let mut state = u32::from(cuts);
    let mut rest = body;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = if cuts == 0 { 1 } else { (state >> 16) as usize % (usize::from(cuts) + 1) };
        let (piece, later) = rest.split_at(length.min(rest.len()));
        pieces.push(Piece::Bytes(piece.to_vec()));
        rest = later;
    }
    pieces
}

fn check_events(events: &[ModelStreamEvent]) {
    let terminals = events.iter().filter(|event| event.is_terminal()).count();
    assert!(terminals == 1 && events.last().is_some_and(ModelStreamEvent::is_terminal), "not one end: {events:?}");
    let Some(end) = events.last() else { return };
    match end {
        ModelStreamEvent::Finished(answer) => {
            let mut ids = HashSet::new();
            for part in &answer.parts {
                if let AssistantPart::ToolCall(call) = part {
                    assert!(!call.id.0.is_empty() && ids.insert(&call.id), "an id twice: {answer:?}");
                }
            }
        }
        ModelStreamEvent::Failed(failure) => {
            assert!(!format!("{failure} {failure:?}").contains(KEY), "the key is shown: {failure}");
            assert!(failure.message.len() < 16 * 1024, "a long failure: {failure}");
        }
        _ => {}
    }
}

/// What a client sees and what counts, without the figures that depend on the pieces.
fn seen(events: &[ModelStreamEvent]) -> (String, String, Vec<String>, String) {
    let (mut text, mut thought, mut calls, mut end) = (String::new(), String::new(), Vec::new(), String::new());
    for event in events {
        match event {
            ModelStreamEvent::TextDelta(delta) => text.push_str(delta),
            ModelStreamEvent::ThoughtDelta(delta) => thought.push_str(delta),
            ModelStreamEvent::ToolCallStarted { id, name } => calls.push(format!("{} {name}", id.0)),
            ModelStreamEvent::Finished(answer) => end = format!("{answer:?}"),
            ModelStreamEvent::Failed(failure) => end = format!("{:?}", failure.kind),
        }
    }
    (text, thought, calls, end)
}
