//! A scripted Anthropic endpoint that answers every prompt with the same text and notes when the request came.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context;

/// Runs until the process ends.
pub struct Endpoint {
    pub base_url: String,
    /// When the head of each prompt's request had arrived.
    pub arrivals: mpsc::Receiver<Instant>,
}

/// What the endpoint says, and how.
#[derive(Clone)]
pub struct Answer {
    /// One delta each.
    pub deltas: Arc<Vec<String>>,
    pub writes: Writes,
}

/// How events reach the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// As many at once as go together.
    Together,
    /// Each by a write of its own, as from a provider that flushes each.
    EachAlone,
    /// Each alone, and some time after the one before, so that none is read together with another.
    Paced(Duration),
}

const BEGIN: [&str; 2] = [
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
];
const END: [&str; 3] = [
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
    r#"{"type":"message_stop"}"#,
];

impl Answer {
    /// A short text.
    pub fn hello() -> Answer {
        Answer { deltas: Arc::new(vec!["Hello.".to_owned()]), writes: Writes::Together }
    }

    /// The body, an event each. The text of a delta needs no escapes.
    fn events(&self) -> Vec<String> {
        let delta = |text: &String| {
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#)
        };
        let data = BEGIN.iter().map(|data| (*data).to_owned());
        let data = data.chain(self.deltas.iter().map(delta)).chain(END.iter().map(|data| (*data).to_owned()));
        data.map(|data| format!("event: {}\ndata: {data}\n\n", data.split('"').nth(3).unwrap_or_default())).collect()
    }
}

impl Endpoint {
    pub fn start(answer: &Answer) -> anyhow::Result<Endpoint> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let (tx, arrivals) = mpsc::channel();
        let (events, writes) = (Arc::new(answer.events()), answer.writes);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tx, events) = (tx.clone(), events.clone());
                // A connection that breaks is the client's business; its run then fails.
                std::thread::spawn(move || drop(serve(stream, &tx, &events, writes)));
            }
        });
        Ok(Endpoint { base_url, arrivals })
    }
}

fn serve(
    mut stream: TcpStream,
    arrivals: &mpsc::Sender<Instant>,
    events: &[String],
    writes: Writes,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut is_prompt = false;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        is_prompt |= line.starts_with("POST ");
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    if !is_prompt {
        // The list of models, which this endpoint does not have.
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    let _ = arrivals.send(Instant::now());
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.set_nodelay(true)?;
    match writes {
        Writes::Together => stream.write_all((head.to_owned() + &events.concat()).as_bytes()),
        Writes::EachAlone => {
            stream.write_all(head.as_bytes())?;
            events.iter().try_for_each(|event| stream.write_all(event.as_bytes()))
        }
        Writes::Paced(pause) => {
            stream.write_all(head.as_bytes())?;
            events.iter().try_for_each(|event| {
                std::thread::sleep(pause);
                stream.write_all(event.as_bytes())
            })
        }
    }
}
