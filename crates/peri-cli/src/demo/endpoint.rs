//! The scripted model's endpoint: a small HTTP server on loopback, for as long as the demo runs.
//!
//! Owns: its listener and connections. Must not: answer anything but `POST /v1/messages`, or listen beyond this machine.
//! Invariant: dropping the [`Endpoint`] ends the listener and every connection.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::script;

/// Bounds of a request; a session of the demo stays far below both.
const MAX_HEAD_BYTES: u64 = 64 << 10;
const MAX_BODY_BYTES: usize = 16 << 20;

/// A running endpoint.
pub struct Endpoint {
    base_url: String,
    /// The accept loop; it owns the connections. Aborted on drop.
    _accept_loop: JoinSet<()>,
}

impl Endpoint {
    /// Listens on a free port of 127.0.0.1, for a project at `root`.
    ///
    /// # Errors
    /// Where no port can be had.
    pub async fn start(root: String) -> io::Result<Endpoint> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let mut accept_loop = JoinSet::new();
        accept_loop.spawn(accept(listener, root.into()));
        Ok(Endpoint { base_url, _accept_loop: accept_loop })
    }

    /// For a provider's `baseUrl`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }
}

async fn accept(listener: TcpListener, root: Arc<str>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    let root = Arc::clone(&root);
                    // A connection that breaks is the client's to report.
                    connections.spawn(async move { drop(serve(stream, &root).await) });
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One request, one answer, and the connection's end.
async fn serve(stream: TcpStream, root: &str) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let answer = match read_request(&mut stream).await? {
        Some(body) => {
            let request: Value = serde_json::from_slice(&body).unwrap_or_default();
            let events = script::event_stream(script::count_tool_results(&request), root);
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}")
        }
        None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    };
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// The body of a `POST /v1/messages`; None for any other request, and for one that is too large.
async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut head = (&mut *stream).take(MAX_HEAD_BYTES);
    let mut line = String::new();
    head.read_line(&mut line).await?;
    let expected = line.starts_with("POST /v1/messages ");
    let mut length = 0;
    loop {
        line.clear();
        // An empty read is the bound, or the peer's end.
        if head.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    if !expected || length > MAX_BODY_BYTES {
        return Ok(None);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(body))
}
