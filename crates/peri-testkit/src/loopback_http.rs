//! An HTTP transport for tests: plain HTTP/1.1 to this machine, one connection a request, nothing hidden.
//!
//! Owns enough of the protocol to tell an end from a break. Must not: reach any other machine.

use std::io;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use peri_acp_types::ports::{HeaderValue, HttpError, HttpMethod, HttpRequest, HttpResponse, HttpTransport};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The transport.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopbackHttp;

/// How much of a body is left.
#[derive(Clone, Copy, Debug)]
enum Left {
    Bytes(usize),
    /// Of the present chunk; another may follow.
    OfChunk(usize),
    UntilClose,
    Nothing,
}

#[async_trait::async_trait]
impl HttpTransport for LoopbackHttp {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let rest = request.url.strip_prefix("http://").ok_or_else(|| HttpError::Invalid(request.url.clone()))?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        if !authority.starts_with("127.0.0.1:") {
            return Err(HttpError::Invalid(format!("{authority} is not this machine")));
        }
        let stream = TcpStream::connect(authority).await.map_err(|error| HttpError::Connect(error.to_string()))?;
        let mut stream = BufReader::new(stream);
        let head = head(&request, authority, path);
        stream.write_all(head.as_bytes()).await.map_err(broken)?;
        stream.write_all(&request.body).await.map_err(broken)?;
        read_response(stream).await
    }
}

fn head(request: &HttpRequest, authority: &str, path: &str) -> String {
    let method = match request.method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Delete => "DELETE",
    };
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n");
    for (name, value) in &request.headers {
        let value = match value {
            HeaderValue::Plain(value) => value,
            HeaderValue::Secret(value) => value.reveal(),
        };
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", request.body.len()));
    head
}

async fn read_response(mut stream: BufReader<TcpStream>) -> Result<HttpResponse, HttpError> {
    let status_line = read_line(&mut stream).await?;
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| HttpError::Broken(format!("no status in {status_line:?}")))?;
    let mut headers: Vec<(String, String)> = Vec::new();
    loop {
        let line = read_line(&mut stream).await?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let left = match (header("transfer-encoding"), header("content-length").and_then(|length| length.parse().ok())) {
        (Some("chunked"), _) => Left::OfChunk(0),
        (_, Some(length)) => Left::Bytes(length),
        (_, None) => Left::UntilClose,
    };
    let body = stream::unfold((stream, left), |(mut stream, left)| async move {
        match next_piece(&mut stream, left).await {
            Ok(None) => None,
            Ok(Some((bytes, left))) => Some((Ok(bytes), (stream, left))),
            Err(error) => Some((Err(broken(error)), (stream, Left::Nothing))),
        }
    });
    Ok(HttpResponse { status, headers, body: body.boxed() })
}

/// The next bytes and what is left after them; None at the end.
async fn next_piece(stream: &mut BufReader<TcpStream>, left: Left) -> io::Result<Option<(Bytes, Left)>> {
    let limit = match left {
        Left::Nothing | Left::Bytes(0) => return Ok(None),
        Left::Bytes(bytes) => bytes,
        Left::UntilClose => usize::MAX,
        Left::OfChunk(0) => match next_chunk(stream).await? {
            0 => return Ok(None),
            size => size,
        },
        Left::OfChunk(bytes) => bytes,
    };
    let available = stream.fill_buf().await?;
    let bytes = Bytes::copy_from_slice(&available[..available.len().min(limit)]);
    stream.consume(bytes.len());
    let left = match left {
        Left::UntilClose if bytes.is_empty() => return Ok(None),
        _ if bytes.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
        Left::UntilClose => Left::UntilClose,
        Left::Bytes(_) | Left::Nothing => Left::Bytes(limit - bytes.len()),
        Left::OfChunk(_) => {
            if limit == bytes.len() {
                // The line end that closes a chunk.
                stream.read_exact(&mut [0; 2]).await?;
            }
            Left::OfChunk(limit - bytes.len())
        }
    };
    Ok(Some((bytes, left)))
}

/// The size of the next chunk; 0 at the end of the body.
async fn next_chunk(stream: &mut BufReader<TcpStream>) -> io::Result<usize> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    usize::from_str_radix(line.trim(), 16).map_err(|_| io::ErrorKind::InvalidData.into())
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> Result<String, HttpError> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.map_err(broken)? == 0 {
        return Err(HttpError::Broken("closed before the answer's head was whole".to_owned()));
    }
    Ok(line.trim_end().to_owned())
}

fn broken(error: io::Error) -> HttpError {
    HttpError::Broken(error.to_string())
}
