//! The HTTP port for tests: hyper over the loopback, a connection for each request.

use futures::StreamExt;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use peri_acp_types::ports::{HeaderValue, HttpError, HttpMethod, HttpRequest, HttpResponse, HttpTransport};
use tokio::net::TcpStream;

pub struct HyperTransport;

#[async_trait::async_trait]
impl HttpTransport for HyperTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let connect = |error: &dyn std::error::Error| HttpError::Connect(error.to_string());
        let url: http::Uri = request.url.parse().map_err(|error| connect(&error))?;
        let authority = url.authority().expect("absolute").to_string();
        let socket = TcpStream::connect(&authority).await.map_err(|error| connect(&error))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(|error| connect(&error))?;
        // It ends with its request and its body.
        tokio::spawn(connection);
        let method = match request.method {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Delete => "DELETE",
        };
        let mut wire = Request::builder().method(method).uri(url.path()).header("host", authority);
        for (name, value) in &request.headers {
            let value = match value {
                HeaderValue::Plain(value) => value.as_str(),
                HeaderValue::Secret(secret) => secret.reveal(),
            };
            wire = wire.header(name, value);
        }
        let wire = wire.body(Full::new(request.body)).map_err(|error| HttpError::Invalid(error.to_string()))?;
        let broken = |error: hyper::Error| HttpError::Broken(error.to_string());
        let (parts, body) = sender.send_request(wire).await.map_err(broken)?.into_parts();
        let headers = parts.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("?").to_owned())).collect();
        let body = body.into_data_stream().map(move |chunk| chunk.map_err(broken)).boxed();
        Ok(HttpResponse { status: parts.status.as_u16(), headers, body })
    }
}
