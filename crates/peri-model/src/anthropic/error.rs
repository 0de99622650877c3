//! Errors as this protocol writes them: `{"type":"error","error":{"type":"overloaded_error","message":"..."}}`.

use peri_acp_types::ModelFailureKind;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{ProviderError, says_too_long};

#[derive(Deserialize)]
struct ErrorDocument {
    error: Value,
}

/// The error in a JSON document, if there is one. Endpoints that imitate the protocol write it in several ways.
pub(super) fn in_document(document: &[u8]) -> Option<ProviderError> {
    let document: ErrorDocument = serde_json::from_slice(document).ok()?;
    (!document.error.is_null()).then(|| in_value(&document.error))
}

/// The error that an `error` member holds.
pub(super) fn in_value(error: &Value) -> ProviderError {
    let word = error.get("type").and_then(Value::as_str).unwrap_or_default();
    let message = match (error.get("message").and_then(Value::as_str), error.as_str()) {
        (Some(message), _) | (None, Some(message)) if !message.is_empty() => message.to_owned(),
        _ => error.to_string(),
    };
    let kind = match word {
        "overloaded_error" => ModelFailureKind::Overloaded,
        "rate_limit_error" => ModelFailureKind::RateLimited,
        "authentication_error" | "permission_error" => ModelFailureKind::Auth,
        "request_too_large" => ModelFailureKind::ContextTooLong,
        "invalid_request_error" if says_too_long(&message) => ModelFailureKind::ContextTooLong,
        "invalid_request_error" | "not_found_error" | "billing_error" => ModelFailureKind::BadRequest,
        // `api_error`, `timeout_error`, and words of a newer protocol: an answer had begun, so the request was not at fault.
        _ => ModelFailureKind::Server,
    };
    let message = if word.is_empty() || message.contains(word) { message } else { format!("{word}: {message}") };
    ProviderError { kind, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(document: &str, expect: Option<(ModelFailureKind, &str)>) {
        let expect = expect.map(|(kind, message)| ProviderError { kind, message: message.to_owned() });
        assert_eq!(in_document(document.as_bytes()), expect);
    }

    #[test]
    fn errors_are_read_in_every_form_that_is_met() {
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Some((ModelFailureKind::Overloaded, "overloaded_error: Overloaded")),
        );
        check(
            r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}"#,
            Some((ModelFailureKind::ContextTooLong, "invalid_request_error: prompt is too long: 2 tokens > 1 maximum")),
        );
        check(r#"{"error":"no such route"}"#, Some((ModelFailureKind::Server, "no such route")));
        check(r#"{"error":{"code":7}}"#, Some((ModelFailureKind::Server, r#"{"code":7}"#)));
        check(r#"{"error":null}"#, None);
        check(r#"{"type":"message"}"#, None);
        check("<html>", None);
    }
}
