//! Addresses of providers, as each ecosystem writes them.

use http::Uri;

use crate::Protocol;

/// An address that can be used, and what is odd about it.
#[derive(Debug)]
pub(crate) struct BaseUrl {
    /// Without a slash at the end.
    pub(crate) url: String,
    /// A message and a mend, where requests will probably miss.
    pub(crate) odd: Option<(&'static str, String)>,
}

/// Checks an address of a provider. The error is a message and a mend; neither repeats the address.
pub(crate) fn check_base_url(text: &str, protocol: Protocol) -> Result<BaseUrl, (&'static str, &'static str)> {
    let uri = check_http_url(text)?;
    if text.contains(['?', '#']) {
        return Err((
            "must not hold `?` or `#`",
            "paths are added at its end; use `headers` for what each request must carry",
        ));
    }
    let url = text.trim_end_matches('/').to_owned();
    let path = uri.path().trim_end_matches('/');
    Ok(BaseUrl { odd: oddity(&url, path, protocol), url })
}

/// What makes requests miss, probably: a message and a mend.
fn oddity(url: &str, path: &str, protocol: Protocol) -> Option<(&'static str, String)> {
    let (added, message): (&[&str], _) = match protocol {
        Protocol::Anthropic => (&["/v1", "/v1/messages"], "ends in a part that Peri adds itself (`/v1/messages`)"),
        Protocol::OpenAiChat => (&["/chat/completions"], "ends in a part that Peri adds itself (`/chat/completions`)"),
        Protocol::OpenAiResponses => (&["/responses"], "ends in a part that Peri adds itself (`/responses`)"),
    };
    if let Some(end) = added.iter().find(|end| path.ends_with(**end)) {
        return Some((message, format!("write `{}`", url.strip_suffix(end).unwrap_or(url))));
    }
    match protocol {
        Protocol::OpenAiChat | Protocol::OpenAiResponses if path.is_empty() => {
            Some(("has no path, while OpenAI's protocols usually live under `/v1`", format!("write `{url}/v1`")))
        }
        _ => None,
    }
}

/// Checks that requests can be sent to an address. The error is a message and a mend; neither repeats the address, which
/// may hold a password.
pub(crate) fn check_http_url(text: &str) -> Result<Uri, (&'static str, &'static str)> {
    let uri: Uri =
        text.parse().map_err(|_| ("is not a URL", "write it like `http://127.0.0.1:8080` or `https://host/path`"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(("must begin with `http://` or `https://`", "put the scheme in front of the host"));
    }
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        return Err(("must not hold a user or password", "keys have a place of their own: `apiKeyEnv`, `headers`"));
    }
    let Some(host) = uri.host().filter(|host| !host.is_empty()) else {
        return Err(("must name a host", "write it like `http://127.0.0.1:8080`"));
    };
    if uri.port_u16().is_none() && authority != host {
        return Err(("has a port that cannot be", "ports go from 1 to 65535"));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, protocol: Protocol, expect: &str) {
        let shown = match check_base_url(text, protocol) {
            Ok(BaseUrl { url, odd: None }) => url,
            Ok(BaseUrl { url, odd: Some((_, mend)) }) => format!("{url} | {mend}"),
            Err((message, _)) => format!("error: {message}"),
        };
        assert_eq!(shown, expect, "{text}");
    }

    #[test]
    fn addresses() {
        use Protocol::{Anthropic, OpenAiChat, OpenAiResponses};
        check("http://127.0.0.1:18080", Anthropic, "http://127.0.0.1:18080");
        check("http://[::1]:18080/", Anthropic, "http://[::1]:18080");
        check("https://host/anthropic//", Anthropic, "https://host/anthropic");
        check("https://host/v1/", Anthropic, "https://host/v1 | write `https://host`");
        check("https://host/a/v1/messages", Anthropic, "https://host/a/v1/messages | write `https://host/a`");
        check("https://host/v1", OpenAiChat, "https://host/v1");
        check("https://host", OpenAiResponses, "https://host | write `https://host/v1`");
        check("https://host/v1/responses", OpenAiResponses, "https://host/v1/responses | write `https://host/v1`");
        check("http://h/v1/chat/completions/", OpenAiChat, "http://h/v1/chat/completions | write `http://h/v1`");
        check("HTTPS://host/v1", OpenAiChat, "HTTPS://host/v1");
        for (text, message) in [
            ("", "is not a URL"),
            ("host:8080", "must begin with `http://` or `https://`"),
            ("localhost", "must begin with `http://` or `https://`"),
            ("/v1", "must begin with `http://` or `https://`"),
            ("ftp://host", "must begin with `http://` or `https://`"),
            ("file:///etc/passwd", "is not a URL"),
            ("http://", "is not a URL"),
            ("http://host:99999", "has a port that cannot be"),
            ("http://host:", "has a port that cannot be"),
            ("http://ho st", "is not a URL"),
            ("http://user:secret@host", "must not hold a user or password"),
            ("http://host/?key=1", "must not hold `?` or `#`"),
            ("http://host/#x", "must not hold `?` or `#`"),
            ("http://\u{7}host", "is not a URL"),
        ] {
            check(text, Anthropic, &format!("error: {message}"));
        }
    }
}
