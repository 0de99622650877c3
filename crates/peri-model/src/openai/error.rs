//! Errors as OpenAI writes them, and as those do who speak its protocols.
//!
//! OpenAI: `{"error":{"message":"...","type":"...","code":"..."}}`. Others write a number as code, a text in the place of
//! the object, the object without its wrapping, or what their framework makes of it (`detail`).

use peri_acp_types::ModelFailureKind;
use serde_json::Value;

use crate::failure::{ProviderError, kind_of_status, says_too_long};

/// The error in a JSON document, if there is one.
pub(crate) fn in_document(document: &[u8]) -> Option<ProviderError> {
    let document: Value = serde_json::from_slice(document).ok()?;
    in_value(document.as_array().and_then(|items| items.first()).unwrap_or(&document))
}

/// The error that an object is or holds, if it is one.
pub(crate) fn in_value(object: &Value) -> Option<ProviderError> {
    let members = object.as_object()?;
    if let Some(error) = members.get("error").filter(|error| !error.is_null()) {
        // Some write the words beside a bare title: `{"error": "Bad Request", "message": "..."}`.
        let told = if error.is_object() || !members.contains_key("message") { error } else { object };
        return Some(read(told));
    }
    let is_error = ["object", "type"].iter().any(|name| members.get(*name).is_some_and(|kind| kind == "error"));
    let has_words = members.contains_key("detail") || members.contains_key("message");
    let is_answer = members.contains_key("choices") || members.contains_key("output");
    (is_error || (has_words && !is_answer)).then(|| read(object))
}

/// Reads what is known to be an error.
pub(crate) fn read(error: &Value) -> ProviderError {
    let word = |name: &str| error.get(name).and_then(Value::as_str).filter(|word| !word.is_empty());
    let kind_word = word("type").filter(|word| *word != "error");
    let code = word("code").or(kind_word).unwrap_or_default();
    let words = words(error);
    let kind = kind(error, code, kind_word.unwrap_or_default(), &words);
    let message = if code.is_empty() || words.contains(code) { words } else { format!("{code}: {words}") };
    ProviderError { kind, message }
}

/// The provider's words, with those of who is behind it, which routers put into `metadata`.
fn words(error: &Value) -> String {
    let said = ["message", "detail", "error", "msg"].iter().find_map(|name| in_words(error.get(*name)?));
    let said = said.or_else(|| in_words(error)).unwrap_or_else(|| error.to_string());
    match error.pointer("/metadata/raw").and_then(in_words).filter(|raw| !said.contains(raw.as_str())) {
        Some(raw) => format!("{said}: {raw}"),
        None => said,
    }
}

/// A text, or the texts of a list of complaints: `[{"loc": ["body", "model"], "msg": "Field required"}]`.
fn in_words(value: &Value) -> Option<String> {
    let texts: Vec<String> = match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(complaint).collect(),
        Value::Object(members) => vec![in_words(members.get("message").or(members.get("detail"))?)?],
        _ => return None,
    };
    let text = texts.join("; ");
    (!text.trim().is_empty()).then_some(text)
}

fn complaint(item: &Value) -> Option<String> {
    if let Some(text) = item.as_str() {
        return Some(text.to_owned());
    }
    let text = item.get("msg").or(item.get("message"))?.as_str()?;
    let steps = item.get("loc").and_then(Value::as_array).into_iter().flatten();
    let place = steps.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned));
    let place = place.collect::<Vec<_>>().join(".");
    Some(if place.is_empty() { text.to_owned() } else { format!("{place}: {text}") })
}

fn kind(error: &Value, code: &str, kind: &str, words: &str) -> ModelFailureKind {
    if says_too_long(words) || says_too_long(code) || says_too_long(kind) {
        return ModelFailureKind::ContextTooLong;
    }
    for word in [code, kind] {
        let known = match word {
            "rate_limit_exceeded" | "rate_limit_error" | "rate_limit" | "tokens" | "requests" => {
                ModelFailureKind::RateLimited
            }
            "overloaded" | "overloaded_error" | "server_is_overloaded" | "slow_down" | "engine_overloaded_error" => {
                ModelFailureKind::Overloaded
            }
            "invalid_api_key" | "authentication_error" | "permission_error" | "invalid_authentication_error" => {
                ModelFailureKind::Auth
            }
            "insufficient_quota"
            | "model_not_found"
            | "not_found_error"
            | "invalid_request_error"
            | "invalid_prompt"
            | "BadRequestError"
            | "NotFoundError"
            | "billing_hard_limit_reached" => ModelFailureKind::BadRequest,
            _ => continue,
        };
        return known;
    }
    // Many put the HTTP status of who is behind them here.
    let status = ["code", "status", "status_code"].iter().find_map(|name| {
        let status = error.get(*name)?;
        status.as_u64().or_else(|| status.as_str()?.parse().ok())
    });
    match status.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status)) {
        Some(status) => kind_of_status(status, None, words),
        // An answer had begun, so the request was not at fault.
        None => ModelFailureKind::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ModelFailureKind::{Auth, BadRequest, ContextTooLong, Overloaded, RateLimited, Server};

    #[track_caller]
    fn check(document: &str, expect: Option<(ModelFailureKind, &str)>) {
        let expect = expect.map(|(kind, message)| ProviderError { kind, message: message.to_owned() });
        assert_eq!(in_document(document.as_bytes()), expect, "{document}");
    }

    #[test]
    fn errors_of_openai() {
        check(
            r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            Some((Auth, "invalid_api_key: Incorrect API key provided")),
        );
        check(
            r#"{"error":{"message":"Too many input tokens","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            Some((ContextTooLong, "context_length_exceeded: Too many input tokens")),
        );
        check(
            r#"{"error":{"message":"Quota is used up","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Some((BadRequest, "insufficient_quota: Quota is used up")),
        );
        check(
            r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#,
            Some((RateLimited, "rate_limit_exceeded: Rate limit reached")),
        );
        check(
            r#"{"error":{"message":"The server had an error","type":"server_error","code":null}}"#,
            Some((Server, "server_error: The server had an error")),
        );
        check(r#"{"type":"error","code":"slow_down","message":"Later"}"#, Some((Overloaded, "slow_down: Later")));
    }

    #[test]
    fn errors_of_others() {
        check(
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            Some((ContextTooLong, "exceed_context_size_error: the request exceeds the available context size")),
        );
        check(
            r#"{"object":"error","message":"No such model","type":"NotFoundError","code":404}"#,
            Some((BadRequest, "NotFoundError: No such model")),
        );
        check(
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"upstream is busy","provider_name":"X"}}}"#,
            Some((RateLimited, "Provider returned error: upstream is busy")),
        );
        check(
            r#"[{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}]"#,
            Some((Server, "Overloaded")),
        );
        check(r#"{"detail":"Not Found"}"#, Some((Server, "Not Found")));
        check(
            r#"{"detail":[{"type":"missing","loc":["body","model",0],"msg":"Field required"},{"msg":"x"}]}"#,
            Some((Server, "body.model.0: Field required; x")),
        );
        check(r#"{"object":"error","message":{"detail":[{"msg":"bad"}]}}"#, Some((Server, "bad")));
        check(r#"{"error":"model \"x\" not found"}"#, Some((Server, "model \"x\" not found")));
        check(r#"{"error":"Bad Request","message":"the words"}"#, Some((Server, "the words")));
        check(r#"{"error":{"oops":7}}"#, Some((Server, r#"{"oops":7}"#)));
        check(r#"{"message":"Forbidden"}"#, Some((Server, "Forbidden")));
    }

    #[test]
    fn what_is_no_error() {
        for document in [r#"{"error":null,"choices":[]}"#, r#"{"choices":[],"message":"x"}"#, "[]", "7", "<html>", "{}"]
        {
            check(document, None);
        }
    }
}
