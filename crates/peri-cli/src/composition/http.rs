//! HTTP out, over reqwest.
//!
//! Owns: which client a request takes, and how its errors are named. Must not: retry, follow redirects, keep cookies.
//! Invariants: what goes to this machine never goes through a proxy; the system's root certificates are read only when
//! the first request needs them; no error text holds a URL, since that may hold a secret.

use std::error::Error;
use std::sync::OnceLock;

use futures::StreamExt;
use peri_acp_types::ports::{HeaderValue, HttpError, HttpMethod, HttpRequest, HttpResponse, HttpTransport};
use reqwest::{Client, ClientBuilder, Method, Url};

const USER_AGENT: &str = concat!("peri/", env!("CARGO_PKG_VERSION"));

/// [`HttpTransport`] of this process. Clients are built when they are first needed.
#[derive(Default)]
pub struct ReqwestTransport {
    /// `http` to this machine: no proxy, no TLS at all.
    loopback_plain: OnceLock<Result<Client, HttpError>>,
    /// `https` to this machine: no proxy.
    loopback_tls: OnceLock<Result<Client, HttpError>>,
    /// Everything else: the system's proxies.
    remote: OnceLock<Result<Client, HttpError>>,
}

impl ReqwestTransport {
    fn client(&self, url: &Url) -> Result<Client, HttpError> {
        let client = match (is_loopback(url), url.scheme()) {
            (true, "http") => self.loopback_plain.get_or_init(|| build(base().no_proxy().tls_certs_only([]))),
            (true, _) => self.loopback_tls.get_or_init(|| build(base().no_proxy())),
            (false, _) => self.remote.get_or_init(|| build(base())),
        };
        client.clone()
    }
}

#[async_trait::async_trait]
impl HttpTransport for ReqwestTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let url = parse(&request.url)?;
        let client = self.client(&url)?;
        let mut builder = client.request(method(request.method), url).body(request.body);
        for (name, value) in request.headers {
            builder = builder.header(header_name(&name)?, header_value(&name, &value)?);
        }
        let response = builder.send().await.map_err(name_error)?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let body = response.bytes_stream().map(|chunk| chunk.map_err(name_error)).boxed();
        Ok(HttpResponse { status, headers, body })
    }
}

/// What every client has in common.
fn base() -> ClientBuilder {
    // The default is set once per process; a second call finds it set, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(USER_AGENT)
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
}

fn build(builder: ClientBuilder) -> Result<Client, HttpError> {
    builder.build().map_err(|error| HttpError::Connect(chain(&error)))
}

fn parse(url: &str) -> Result<Url, HttpError> {
    // The text of a bad URL is not repeated: it may hold a secret.
    let parsed = Url::parse(url).map_err(|error| HttpError::Invalid(format!("the URL cannot be read: {error}")))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(HttpError::Invalid(format!("the URL's scheme is `{other}`, not http or https"))),
    }
}

/// True for this machine, by name or address.
fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Delete => Method::DELETE,
    }
}

fn header_name(name: &str) -> Result<reqwest::header::HeaderName, HttpError> {
    name.parse().map_err(|_| HttpError::Invalid(format!("`{name}` is no header name")))
}

fn header_value(name: &str, value: &HeaderValue) -> Result<reqwest::header::HeaderValue, HttpError> {
    let (text, secret) = match value {
        HeaderValue::Plain(text) => (text.as_str(), false),
        HeaderValue::Secret(secret) => (secret.reveal(), true),
    };
    let mut value = reqwest::header::HeaderValue::from_str(text)
        .map_err(|_| HttpError::Invalid(format!("the value of header `{name}` has characters that no header takes")))?;
    value.set_sensitive(secret);
    Ok(value)
}

fn name_error(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    let text = chain(&error);
    if error.is_builder() {
        HttpError::Invalid(text)
    } else if error.is_connect() {
        HttpError::Connect(text)
    } else {
        HttpError::Broken(text)
    }
}

/// An error and its causes: the last one usually says what happened.
fn chain(error: &dyn Error) -> String {
    let mut parts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        cause = error.source();
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_name_and_address() {
        let check = |url: &str, expect: bool| {
            assert_eq!(is_loopback(&Url::parse(url).expect("a URL")), expect, "{url}");
        };
        check("http://localhost:1/", true);
        check("http://peri.localhost/", true);
        check("http://127.0.0.1:8080/", true);
        check("http://127.9.9.9/", true);
        check("http://[::1]:8080/", true);
        check("http://localhost.example.org/", false);
        check("http://10.0.0.1/", false);
    }

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        let error = parse("ftp://user:geheim@example.org/").expect_err("no HTTP");
        assert!(!error.to_string().contains("geheim"));
    }
}
