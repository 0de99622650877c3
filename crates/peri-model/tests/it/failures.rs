//! Statuses, and the provider's own words.

use std::time::Duration;

use peri_acp_types::ModelFailureKind;
use peri_acp_types::ports::HttpError;

use crate::endpoint::{KEY, failure};
use crate::transport::{Answer, Piece};

#[track_caller]
fn json(kind: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[tokio::test]
async fn a_status_has_its_kind_and_the_providers_words() {
    for (status, word, message, kind) in [
        (400, "invalid_request_error", "messages: at least one", ModelFailureKind::BadRequest),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ModelFailureKind::ContextTooLong),
        (401, "authentication_error", "invalid x-api-key", ModelFailureKind::Auth),
        (403, "permission_error", "not yours", ModelFailureKind::Auth),
        (404, "not_found_error", "model: nope", ModelFailureKind::BadRequest),
        (413, "request_too_large", "too many bytes", ModelFailureKind::ContextTooLong),
        (429, "rate_limit_error", "slow down", ModelFailureKind::RateLimited),
        (500, "api_error", "oh no", ModelFailureKind::Server),
        (504, "timeout_error", "late", ModelFailureKind::Server),
        (529, "overloaded_error", "Overloaded", ModelFailureKind::Overloaded),
    ] {
        let refused = failure(Answer::status(status, &[], &json(word, message))).await;
        assert_eq!((refused.kind, refused.status), (kind, Some(status)));
        assert_eq!(refused.message, format!("{word}: {message}"));
    }
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_told() {
    for (value, wait) in [("7", 7_000), ("Tue, 14 Nov 2023 22:13:50 GMT", 30_000)] {
        let limited = failure(Answer::status(429, &[("retry-after", value)], "")).await;
        assert_eq!(limited.retry_after, Some(Duration::from_millis(wait)), "{value}");
    }
}

#[tokio::test]
async fn words_are_bounded_and_free_of_the_key_and_of_control_characters() {
    let echo = json("authentication_error", &format!("bad key {KEY}\u{1b}[31m\n{}", "漢".repeat(5000)));
    let refused = failure(Answer::status(401, &[], &echo)).await;
    assert!(refused.message.starts_with("authentication_error: bad key [redacted][31m 漢"), "{refused}");
    assert!(refused.message.len() < 2100);
    let in_page = failure(Answer::status(502, &[], &format!("<p>Bad gateway for {KEY}</p>"))).await;
    assert!(in_page.message.ends_with("answered: Bad gateway for [redacted]"), "{in_page}");
}

#[tokio::test]
async fn a_body_that_says_nothing_leaves_the_address() {
    let refused = failure(Answer::status(404, &[], "")).await;
    assert_eq!(refused.message, "http://127.0.0.1:9/v1/messages answered: (no text)");
}

#[tokio::test]
async fn a_redirect_is_named_and_not_followed() {
    let moved = failure(Answer::status(308, &[("location", "https://new.example/v1/messages?t=1")], "")).await;
    assert_eq!(moved.kind, ModelFailureKind::Protocol);
    assert!(moved.message.contains("redirects to https://new.example/v1/messages;"), "{moved}");
}

#[tokio::test]
async fn a_huge_error_body_is_read_in_part() {
    let body = (0..1000).map(|_| Piece::Bytes(vec![b'x'; 1024])).collect();
    let refused = failure(Answer::with(500, &[], body)).await;
    assert_eq!((refused.kind, refused.received_bytes), (ModelFailureKind::Server, 64 * 1024));
}

#[tokio::test]
async fn no_answer_is_no_connection() {
    for (error, kind) in [
        (HttpError::Connect("connection refused".into()), ModelFailureKind::Connect),
        (HttpError::Broken("reset".into()), ModelFailureKind::Connect),
        (HttpError::Invalid("no such scheme".into()), ModelFailureKind::BadRequest),
    ] {
        let failed = failure(Answer::NoHead(error)).await;
        assert_eq!((failed.kind, failed.status), (kind, None));
        assert!(failed.message.ends_with("(http://127.0.0.1:9/v1/messages)"), "{failed}");
    }
}
