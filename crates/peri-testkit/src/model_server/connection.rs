//! One connection: requests in, scripted bytes out, as long as both sides keep it open.
//!
//! Invariant: every request that arrived whole is in the record before anything is written for it.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::Server;
use super::captured::CapturedRequest;
use super::reply::Step;

/// Bounds of a request. A conversation with images may be large.
const MAX_HEAD_BYTES: u64 = 64 << 10;
const MAX_BODY_BYTES: usize = 256 << 20;

/// What becomes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Connection {
    Kept,
    Closed,
    Reset,
    /// The client went away first.
    Abandoned,
}

/// Serves it to its end. A connection that breaks is for its client to report.
pub(super) async fn serve(stream: TcpStream, server: Arc<Server>) {
    let number = server.connected();
    // Pieces must leave as the script cuts them.
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Ok(Some(request)) = read_request(&mut stream, number).await {
        let asked_to_close = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let steps = server.steps_for(request);
        match perform(&mut stream, steps).await {
            Connection::Kept if !asked_to_close => {}
            Connection::Kept | Connection::Closed => {
                let _ = stream.shutdown().await;
                return;
            }
            Connection::Reset => {
                let _ = stream.get_ref().set_zero_linger();
                return;
            }
            Connection::Abandoned => return server.hung_up(),
        }
    }
}

async fn perform(stream: &mut BufReader<TcpStream>, steps: Vec<Step>) -> Connection {
    for step in steps {
        match step {
            Step::Write(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return Connection::Abandoned;
                }
            }
            Step::Wait(gate) => {
                tokio::select! {
                    () = gate.pass() => {}
                    () = client_leaves(stream) => return Connection::Abandoned,
                }
            }
            Step::Close => return Connection::Closed,
            Step::Reset => return Connection::Reset,
        }
    }
    Connection::Kept
}

/// Resolves when the client closes its side; a client that sends the next request already stays.
async fn client_leaves(stream: &mut BufReader<TcpStream>) {
    match stream.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

/// The next request; None where the client sends no more.
async fn read_request(stream: &mut BufReader<TcpStream>, connection: usize) -> io::Result<Option<CapturedRequest>> {
    let Some(head) = read_head(stream).await? else { return Ok(None) };
    let arrived_at = SystemTime::now();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = CapturedRequest {
        number: 0,
        connection,
        arrived_at,
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Vec::new(),
        json: Value::Null,
    };
    request.body = read_body(stream, &request).await?;
    request.json = serde_json::from_slice(&request.body).unwrap_or_default();
    Ok(Some(request))
}

async fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut limited = stream.take(MAX_HEAD_BYTES);
    let mut head = String::new();
    loop {
        let before = head.len();
        if limited.read_line(&mut head).await? == 0 {
            return if before == 0 { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        if head[before..].trim_end().is_empty() {
            return Ok(Some(head));
        }
    }
}

async fn read_body(stream: &mut BufReader<TcpStream>, request: &CapturedRequest) -> io::Result<Vec<u8>> {
    if request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return read_chunks(stream).await;
    }
    let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; bounded(length)?];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

async fn read_chunks(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        (&mut *stream).take(MAX_HEAD_BYTES).read_line(&mut line).await?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let start = body.len();
        body.resize(bounded(start + bounded(size)?)?, 0);
        stream.read_exact(&mut body[start..]).await?;
        (&mut *stream).take(MAX_HEAD_BYTES).read_line(&mut line).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn bounded(bytes: usize) -> io::Result<usize> {
    if bytes <= MAX_BODY_BYTES { Ok(bytes) } else { Err(io::ErrorKind::FileTooLarge.into()) }
}
