//! Failures: what went wrong with a request, in the words of [`ModelFailure`].
//!
//! Owns the judging of statuses and of providers' words, and their cleaning: every text that came from outside passes
//! through [`FailureContext::failure`], the only place that makes a [`ModelFailure`].
//! Invariant: a failure's message is bounded, has no control characters and none of the endpoint's secrets.

use std::time::Duration;

use peri_acp_types::ports::{HeaderValue, HttpError, HttpResponse, Secret};
use peri_acp_types::{ModelFailure, ModelFailureKind};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::ModelEndpoint;

/// The longest message of a failure, in bytes.
const MAX_MESSAGE_BYTES: usize = 2048;
/// The longest excerpt of a body that was not expected, in bytes, and how much of the body it is taken from.
const MAX_EXCERPT_BYTES: usize = 512;
const MAX_EXCERPT_SOURCE_BYTES: usize = 16 * 1024;
/// No provider is believed to want a longer wait.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How providers say that the input is too long for the model's window.
const TOO_LONG_WORDS: [&str; 12] = [
    "prompt is too long",
    "input is too long",
    "context limit",
    "context length",
    "context size",
    "context window",
    "context_length_exceeded",
    "exceed_context_size",
    "maximum number of tokens",
    "maximum prompt length",
    "input tokens exceed",
    "reduce the length of the messages",
];
/// How they say that a wait will not help: the account has nothing left. A rate that is too high has the same status.
const NO_QUOTA_WORDS: &str = "insufficient_quota";

/// An error in the provider's own words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProviderError {
    pub kind: ModelFailureKind,
    pub message: String,
}

/// What a failure of this request is told with.
#[derive(Clone, Debug)]
pub(crate) struct FailureContext {
    model: String,
    /// Where the request went, without user information and query.
    url: String,
    secrets: Vec<Secret>,
}

/// How far a request had come.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Progress {
    /// None before the head of an answer came.
    pub status: Option<u16>,
    pub retry_after: Option<Duration>,
    pub received_bytes: u64,
    pub elapsed: Duration,
}

impl FailureContext {
    pub(crate) fn new(endpoint: &ModelEndpoint, model: &str, url: &str) -> FailureContext {
        let headers = endpoint.headers.iter().filter_map(|(_, value)| match value {
            HeaderValue::Secret(secret) => Some(secret),
            HeaderValue::Plain(_) => None,
        });
        let secrets = endpoint.api_key.iter().chain(headers).cloned().collect();
        FailureContext { model: model.to_owned(), url: shown_url(url), secrets }
    }

    pub(crate) fn failure(&self, kind: ModelFailureKind, message: &str, progress: Progress) -> ModelFailure {
        ModelFailure {
            kind,
            model: self.model.clone(),
            message: cut(self.redact(message), MAX_MESSAGE_BYTES),
            status: progress.status,
            retry_after: progress.retry_after,
            received_bytes: progress.received_bytes,
            elapsed: progress.elapsed,
        }
    }

    /// No head of an answer came.
    pub(crate) fn not_sent(&self, error: &HttpError, progress: Progress) -> ModelFailure {
        let kind = match error {
            HttpError::Connect(_) | HttpError::Broken(_) => ModelFailureKind::Connect,
            HttpError::Invalid(_) => ModelFailureKind::BadRequest,
        };
        self.failure(kind, &format!("{error} ({})", self.url), progress)
    }

    /// An answer with another status than 200. `told` is what the adapter read in its body.
    pub(crate) fn refused(
        &self,
        status: u16,
        told: Option<ProviderError>,
        body: &[u8],
        location: Option<&str>,
        progress: Progress,
    ) -> ModelFailure {
        let words = told.as_ref().map_or_else(|| String::from_utf8_lossy(body), |told| told.message.as_str().into());
        let kind = kind_of_status(status, told.as_ref().map(|told| told.kind), &words);
        let message = match (told, location) {
            (Some(told), _) => told.message,
            (None, Some(location)) => format!(
                "{} redirects to {}; redirects are not followed, so set the endpoint's base URL to where it is now",
                self.url,
                shown_url(location)
            ),
            (None, None) => format!("{} answered: {}", self.url, self.excerpt(body)),
        };
        self.failure(kind, &message, progress)
    }

    /// A body that is not what was expected, cut to what helps to recognise it.
    pub(crate) fn excerpt(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT_SOURCE_BYTES)]);
        let words = if text.trim_start().starts_with('<') { without_tags(&text) } else { text.into_owned() };
        let words = self.redact(&words);
        if words.is_empty() { "(no text)".to_owned() } else { cut(words, MAX_EXCERPT_BYTES) }
    }

    /// Secrets leave after the control characters, which could split them, and before any cut, which could halve them.
    fn redact(&self, text: &str) -> String {
        let printable: String = text.chars().filter(|c| c.is_whitespace() || !c.is_control()).collect();
        let line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
        self.secrets.iter().fold(line, |line, secret| secret.redact(&line))
    }
}

/// What a status means. A body may tell more: an overload, or an input that is too long.
pub(crate) fn kind_of_status(status: u16, told: Option<ModelFailureKind>, words: &str) -> ModelFailureKind {
    match status {
        401 | 403 => ModelFailureKind::Auth,
        408 | 425 => ModelFailureKind::Server,
        413 => ModelFailureKind::ContextTooLong,
        429 if words.contains(NO_QUOTA_WORDS) => ModelFailureKind::BadRequest,
        429 => ModelFailureKind::RateLimited,
        529 => ModelFailureKind::Overloaded,
        500.. if told == Some(ModelFailureKind::Overloaded) => ModelFailureKind::Overloaded,
        500.. => ModelFailureKind::Server,
        400..500 if says_too_long(words) => ModelFailureKind::ContextTooLong,
        400..500 => ModelFailureKind::BadRequest,
        _ => ModelFailureKind::Protocol,
    }
}

/// True where a provider's words say that the input does not fit the model's window.
pub(crate) fn says_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    TOO_LONG_WORDS.iter().any(|words| message.contains(words))
}

fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for (number, piece) in html.split('<').enumerate() {
        match piece.split_once('>') {
            Some((_, after)) if number > 0 => {
                text.push(' ');
                text.push_str(after);
            }
            _ if number == 0 => text.push_str(piece),
            _ => {}
        }
    }
    text
}

fn cut(mut text: String, max_bytes: usize) -> String {
    if text.len() > max_bytes {
        let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn shown_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// How long the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
pub(crate) fn retry_after(response: &HttpResponse, now_ms: i64) -> Option<Duration> {
    let milliseconds = response.header("retry-after-ms").and_then(|value| duration(value, 1e-3));
    let wait = milliseconds.or_else(|| {
        let value = response.header("retry-after")?.trim();
        duration(value, 1.0).or_else(|| until(value, now_ms))
    })?;
    Some(wait.min(MAX_RETRY_AFTER))
}

fn duration(value: &str, unit_seconds: f64) -> Option<Duration> {
    let seconds = value.trim().parse::<f64>().ok()? * unit_seconds;
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(MAX_RETRY_AFTER))
}

fn until(date: &str, now_ms: i64) -> Option<Duration> {
    let date = OffsetDateTime::parse(date, &Rfc2822).ok()?;
    let wait_ms = (date.unix_timestamp().saturating_mul(1000)).saturating_sub(now_ms);
    Some(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;

    fn context() -> FailureContext {
        FailureContext { model: "mine/m".into(), url: "http://h/v1".into(), secrets: vec![Secret::new("sk-12345")] }
    }

    #[track_caller]
    fn check_message(message: &str, expect: &str) {
        let told = context().failure(ModelFailureKind::Auth, message, Progress::default()).message;
        assert_eq!(told, expect);
    }

    #[test]
    fn secrets_leave_before_the_cut_and_however_they_are_split() {
        check_message("key sk-12345 is\r\nwrong\u{7}", "key [redacted] is wrong");
        check_message("key sk-\u{0}12345", "key [redacted]");
        // The cut would leave half of the key.
        let fill = "x".repeat(MAX_MESSAGE_BYTES - 4);
        check_message(&format!("{fill}sk-12345"), &format!("{fill}[red…"));
        let page = format!("{}sk-12345", "x".repeat(MAX_EXCERPT_BYTES - 4));
        assert!(!context().excerpt(page.as_bytes()).contains("sk-"));
    }

    #[test]
    fn statuses_have_their_kinds() {
        let overloaded = Some(ModelFailureKind::Overloaded);
        for (status, told, words, kind) in [
            (400, None, "", ModelFailureKind::BadRequest),
            (400, None, "Prompt is too long: 208310 tokens > 200000 maximum", ModelFailureKind::ContextTooLong),
            (401, None, "", ModelFailureKind::Auth),
            (403, None, "", ModelFailureKind::Auth),
            (404, None, "", ModelFailureKind::BadRequest),
            (408, None, "", ModelFailureKind::Server),
            (413, None, "", ModelFailureKind::ContextTooLong),
            (429, None, "", ModelFailureKind::RateLimited),
            (429, None, "insufficient_quota: nothing left", ModelFailureKind::BadRequest),
            (500, None, "", ModelFailureKind::Server),
            (500, overloaded, "", ModelFailureKind::Overloaded),
            (503, None, "context window", ModelFailureKind::Server),
            (529, None, "", ModelFailureKind::Overloaded),
            (302, None, "", ModelFailureKind::Protocol),
            (204, None, "", ModelFailureKind::Protocol),
        ] {
            assert_eq!(kind_of_status(status, told, words), kind, "{status} {told:?} {words}");
        }
    }

    #[test]
    fn waits_come_in_seconds_milliseconds_and_dates() {
        let now_ms = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT
        for (name, value, expect) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", " 0.5 ", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT", Some(30_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("retry-after", "1e300", Some(604_800_000)),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
        ] {
            let headers = vec![(name.to_owned(), value.to_owned())];
            let response = HttpResponse { status: 429, headers, body: futures::stream::empty().boxed() };
            let wait = retry_after(&response, now_ms).map(|wait| wait.as_millis());
            assert_eq!(wait, expect, "{name}: {value}");
        }
    }

    #[test]
    fn pages_are_shown_as_words_and_urls_without_their_secrets() {
        assert_eq!(context().excerpt(b"<html>\n<h1>502 Bad Gateway</h1><p>nginx"), "502 Bad Gateway nginx");
        assert_eq!(context().excerpt(b" \n"), "(no text)");
        assert!(context().excerpt("é".repeat(5000).as_bytes()).len() < 600);
        assert_eq!(shown_url("https://me:pw@h:1/v1/messages?key=x"), "https://h:1/v1/messages");
    }
}
