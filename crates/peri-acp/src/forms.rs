//! Forms of MCP servers, shown by the client.
//!
//! Invariant: a person has few of them open at once, and one that goes wrong is one that was cancelled.

use agent_client_protocol::UntypedMessage;
use agent_client_protocol::v1::schema::CreateElicitationResponse;
use peri_acp_types::{ElicitationAnswer, ElicitationRequest};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::map::form;
use crate::methods::ToClient;

/// Forms that a session may have open at once: a server may ask as often as it likes.
const MAX_FORMS: usize = 4;

/// Shows forms of one session.
pub(crate) struct Forms {
    client: ToClient,
    free: Semaphore,
}

impl Forms {
    pub(crate) fn new(client: ToClient) -> Forms {
        Forms { client, free: Semaphore::new(MAX_FORMS) }
    }

    /// Shows a form and waits for as long as the person takes. Dropping the future withdraws the form.
    pub(crate) async fn show(&self, request: &ElicitationRequest) -> ElicitationAnswer {
        let Ok(_open) = self.free.try_acquire() else { return ElicitationAnswer::Cancelled };
        let Some(params) = form::form(request) else { return ElicitationAnswer::Cancelled };
        let message = UntypedMessage { method: form::METHOD.to_owned(), params };
        let response = self.client.send_request(message).block_task().await;
        match response.ok().and_then(|response| CreateElicitationResponse::deserialize(response).ok()) {
            Some(response) => form::answer(response, &request.schema),
            None => ElicitationAnswer::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent_client_protocol::{Agent, Channel};
    use futures::channel::oneshot;
    use futures::future::join_all;
    use futures::{FutureExt, SinkExt, StreamExt};
    use peri_acp_types::SessionId;
    use serde_json::{Map, Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::transport::{ClientSide, FrameReceiver, in_process};

    fn request() -> ElicitationRequest {
        ElicitationRequest {
            session_id: SessionId(Uuid::nil()),
            server: "books".to_owned(),
            message: "Who?".to_owned(),
            schema: json!({"type": "object", "properties": {"name": {"type": "string"}}}),
        }
    }

    /// Runs the work with forms on one end, and the client on the other.
    async fn connected<T>(work: impl AsyncFnOnce(Arc<Forms>) -> T, client: impl AsyncFnOnce(ClientSide) -> ()) -> T {
        let (agent, side) = in_process();
        let (done, result) = oneshot::channel();
        let channel: Channel = agent.channel;
        let serving = Agent.v1().connect_with(channel, async move |to_client: ToClient| {
            let _ = done.send(work(Arc::new(Forms::new(to_client))).await);
            Ok(())
        });
        let (served, ()) = futures::join!(serving, client(side));
        served.expect("the connection ends in order");
        result.await.expect("the work was done")
    }

    async fn next_form(frames: &mut FrameReceiver) -> Value {
        let frame = frames.next().await.expect("a frame");
        assert_eq!(frame["method"], "elicitation/create", "{frame}");
        frame
    }

    async fn check(answer: Value, expected: ElicitationAnswer) {
        let got = connected(
            async |forms| forms.show(&request()).await,
            async |side| {
                let (mut outgoing, mut frames) = side.into_frames();
                let mut message = json!({"jsonrpc": "2.0", "id": next_form(&mut frames).await["id"]});
                message.as_object_mut().expect("an object").extend(answer.as_object().cloned().expect("an object"));
                outgoing.send(message).await.expect("it is sent");
            },
        )
        .await;
        assert_eq!(got, expected, "{answer}");
    }

    #[tokio::test]
    async fn every_answer_has_its_meaning_and_rubbish_is_none() {
        let name = Map::from_iter([("name".to_owned(), json!("Ada"))]);
        let accept = json!({"result": {"action": "accept", "content": {"name": "Ada"}}});
        check(accept, ElicitationAnswer::Accepted(name)).await;
        check(json!({"result": {"action": "decline"}}), ElicitationAnswer::Declined).await;
        check(json!({"result": {"action": "cancel"}}), ElicitationAnswer::Cancelled).await;
        check(json!({"result": {"action": 7}}), ElicitationAnswer::Cancelled).await;
        check(json!({"result": {"action": "accept", "content": {"name": {}}}}), ElicitationAnswer::Cancelled).await;
        check(json!({"result": null}), ElicitationAnswer::Cancelled).await;
        check(json!({"error": {"code": -32601, "message": "no"}}), ElicitationAnswer::Cancelled).await;
    }

    #[tokio::test]
    async fn a_person_is_not_buried_in_forms() {
        let answers = connected(
            async |forms| {
                let request = request();
                let shown = join_all((0..MAX_FORMS).map(|_| forms.show(&request))).fuse();
                let mut shown = std::pin::pin!(shown);
                assert!(shown.as_mut().now_or_never().is_none(), "they wait for the person");
                assert_eq!(forms.show(&request).await, ElicitationAnswer::Cancelled, "one too many");
                shown.await
            },
            async |side| {
                let (mut outgoing, mut frames) = side.into_frames();
                for _ in 0..MAX_FORMS {
                    let id = next_form(&mut frames).await["id"].take();
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
                    outgoing.send(answer).await.expect("it is sent");
                }
            },
        )
        .await;
        assert_eq!(answers, vec![ElicitationAnswer::Declined; MAX_FORMS]);
    }

    #[tokio::test]
    async fn a_form_that_nobody_waits_for_any_more_is_withdrawn() {
        let (seen, was_seen) = oneshot::channel::<()>();
        connected(
            async move |forms| {
                let request = request();
                let shown = std::pin::pin!(forms.show(&request));
                futures::future::select(shown, was_seen).await;
            },
            async move |side| {
                let (_outgoing, mut frames) = side.into_frames();
                let form = next_form(&mut frames).await;
                seen.send(()).expect("the form waits");
                let withdrawal = frames.next().await.expect("a frame");
                assert_eq!(withdrawal["method"], "$/cancel_request");
                assert_eq!(withdrawal["params"]["requestId"], form["id"]);
            },
        )
        .await;
    }
}
