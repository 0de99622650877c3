//! A scripted Anthropic endpoint that answers every request with one short text and notes when the request came.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Context;

/// Runs until the process ends.
pub struct Endpoint {
    pub base_url: String,
    /// When the head of each request had arrived.
    pub arrivals: mpsc::Receiver<Instant>,
}

const ANSWER: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
    r#"{"type":"message_stop"}"#,
];

impl Endpoint {
    pub fn start() -> anyhow::Result<Endpoint> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let (tx, arrivals) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tx = tx.clone();
                // A connection that breaks is the client's business; its run then fails.
                std::thread::spawn(move || drop(answer(stream, &tx)));
            }
        });
        Ok(Endpoint { base_url, arrivals })
    }
}

fn answer(mut stream: TcpStream, arrivals: &mpsc::Sender<Instant>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let _ = arrivals.send(Instant::now());
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let mut body = String::from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    for data in ANSWER {
        let kind = data.split('"').nth(3).unwrap_or_default();
        body.push_str(&format!("event: {kind}\ndata: {data}\n\n"));
    }
    stream.write_all(body.as_bytes())
}
