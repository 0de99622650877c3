//! Lists of models and learned limits, over real sockets.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::ModelFailureKind;
use peri_model::{LanguageModel, ModelEndpoint, ModelLimits, ModelProtocol, list_models};
use peri_testkit::gate::Gate;
use peri_testkit::loopback_http::LoopbackHttp;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Script};
use peri_testkit::runtime::{FakeClock, TokioClock};
use serde_json::{Value, json};

const PROTOCOLS: [ModelProtocol; 3] =
    [ModelProtocol::AnthropicMessages, ModelProtocol::OpenAiChat, ModelProtocol::OpenAiResponses];

fn endpoint(server: &FakeModelServer, protocol: ModelProtocol) -> ModelEndpoint {
    let base_url = match protocol {
        ModelProtocol::AnthropicMessages => server.base_url(),
        ModelProtocol::OpenAiChat | ModelProtocol::OpenAiResponses => format!("{}/v1", server.base_url()),
    };
    ModelEndpoint {
        provider: "mine".into(),
        protocol,
        base_url,
        api_key: None,
        headers: vec![],
        model: "m-1".into(),
        context_window: None,
        max_output_tokens: None,
        idle_timeout: Duration::from_secs(60),
    }
}

fn server(list: &Value) -> FakeModelServer {
    FakeModelServer::start(Script::in_order([Answer::new()]).with_models(list))
}

fn model(endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
    peri_model::connect(endpoint, Arc::new(LoopbackHttp), Arc::new(TokioClock::default()))
}

async fn learned(server: &FakeModelServer, endpoint: ModelEndpoint) -> ModelLimits {
    let model = model(endpoint);
    model.learn_limits().await;
    model.learn_limits().await;
    assert!(server.listings().len() <= 1, "asked once");
    model.limits()
}

#[tokio::test]
async fn every_protocol_lists_and_learns() {
    let list = json!({"data": [
        {"id": "other", "context_length": 1},
        {"id": "m-1", "display_name": "Model One", "max_input_tokens": 100_000, "max_tokens": 8000},
    ]});
    for protocol in PROTOCOLS {
        let server = server(&list);
        let endpoint = endpoint(&server, protocol);
        let http = Arc::new(LoopbackHttp);
        let models = list_models(&endpoint, http, Arc::new(TokioClock::default())).await.expect("a list");
        assert_eq!((models[1].id.as_str(), models[1].display_name.as_deref()), ("m-1", Some("Model One")));
        assert_eq!(server.listings()[0].path_alone(), "/v1/models");
        let fresh = self::server(&list);
        let limits = learned(&fresh, self::endpoint(&fresh, protocol)).await;
        // Only the protocol that wants a figure in every request is given one.
        let output = (protocol == ModelProtocol::AnthropicMessages).then_some(8000);
        assert_eq!(limits, ModelLimits { context_window: 100_000, max_output_tokens: output });
        assert!(fresh.requests().is_empty() && fresh.unexpected().is_empty());
    }
}

#[tokio::test]
async fn what_settings_say_is_not_asked_for() {
    let list = json!({"data": [{"id": "m-1", "max_input_tokens": 100_000, "max_tokens": 8000}]});
    for protocol in PROTOCOLS {
        let server = server(&list);
        let stated =
            ModelEndpoint { context_window: Some(5), max_output_tokens: Some(6), ..endpoint(&server, protocol) };
        let limits = learned(&server, stated).await;
        assert_eq!(limits, ModelLimits { context_window: 5, max_output_tokens: Some(6) });
        assert!(server.listings().is_empty());
    }
    let server = server(&list);
    let half = ModelEndpoint { context_window: Some(5), ..endpoint(&server, ModelProtocol::AnthropicMessages) };
    let limits = learned(&server, half).await;
    assert_eq!(limits, ModelLimits { context_window: 5, max_output_tokens: Some(8000) });
}

#[tokio::test]
async fn a_list_in_pages_is_read_to_its_end() {
    let pages = [("a", true), ("m-1", false)].map(|(id, more)| {
        json!({"data": [{"id": id, "max_input_tokens": 7}], "has_more": more, "last_id": id, "first_id": id})
    });
    let server = server(&pages[0]);
    let endpoint = endpoint(&server, ModelProtocol::AnthropicMessages);
    let clock: Arc<TokioClock> = Arc::new(TokioClock::default());
    // An endpoint that begins anew with every page.
    let models = list_models(&endpoint, Arc::new(LoopbackHttp), clock).await.expect("a list");
    assert_eq!(models.len(), 2);
    let paths: Vec<String> = server.listings().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a"]);
}

#[tokio::test]
async fn endpoints_without_a_good_list_are_told_so_and_the_defaults_hold() {
    let odd: Vec<(Reply, ModelFailureKind, &str)> = vec![
        (Reply::status(404).body("404 page not found"), ModelFailureKind::BadRequest, "404 page not found"),
        (Reply::status(401).error_body("authentication_error", "no key"), ModelFailureKind::Auth, "no key"),
        (Reply::status(200).body("<html>Sign in</html>"), ModelFailureKind::Protocol, "Sign in"),
        (Reply::status(200).json_body(&json!({"data": 7})), ModelFailureKind::Protocol, "no list of models"),
        (Reply::status(200).body(vec![b' '; 17 << 20]), ModelFailureKind::Protocol, "longer than"),
        (Reply::raw(["HTTP/1.1 "]), ModelFailureKind::Connect, "connection broke"),
    ];
    for (reply, kind, words) in odd {
        for protocol in PROTOCOLS {
            let script = Script::in_order([Answer::new()]).answering_models(reply.clone());
            let server = FakeModelServer::start(script);
            let endpoint = endpoint(&server, protocol);
            let clock = Arc::new(TokioClock::default());
            let failure = list_models(&endpoint, Arc::new(LoopbackHttp), clock).await.expect_err("no list");
            assert_eq!(failure.kind, kind, "{failure}");
            assert!(failure.message.contains(words), "{failure}");
            let model = model(endpoint);
            model.learn_limits().await;
            assert_eq!(model.limits(), ModelLimits { context_window: 200_000, max_output_tokens: None });
        }
    }
}

#[tokio::test]
async fn a_list_that_does_not_come_is_not_waited_for() {
    for protocol in PROTOCOLS {
        let gate = Gate::shut();
        let reply = Reply::status(200).json_body(&json!({"data": []})).before_head(&gate);
        let server = FakeModelServer::start(Script::in_order([Answer::new()]).answering_models(reply));
        let clock = FakeClock::manual();
        let endpoint = endpoint(&server, protocol);
        let model = peri_model::connect(endpoint, Arc::new(LoopbackHttp), Arc::new(clock.clone()));
        tokio::join!(model.learn_limits(), async {
            gate.reached().await;
            clock.slept(1).await;
            clock.advance(Duration::from_secs(5));
        });
        assert_eq!(model.limits().context_window, 200_000);
        server.hung_up(1).await;
    }
}
