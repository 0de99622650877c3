//! What a run is asked: one prompt, or messages as they come in.
//!
//! Owns: what was accepted and not yet begun. Invariants: messages are answered in their order; after a line that was refused
//! nothing more is read; what waits is bounded, so that a client that writes faster than the model answers is held.

use std::collections::VecDeque;

use agent_client_protocol::v1::schema::{ContentBlock, TextContent};
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::mpsc;

use super::lines::{Control, Message, Understood, next_line, understand};
use crate::exit::Failure;

/// Bytes of messages that wait before no more are read. One message may be over it.
const WAITING_BYTES: usize = 64 << 20;

/// Messages to answer.
pub struct Intake {
    waiting: VecDeque<Message>,
    /// None where nothing more will come.
    arrivals: Option<mpsc::Receiver<Result<Understood, Failure>>>,
    /// Why nothing more is read, if it is not the end of the input.
    refused: Option<Failure>,
}

/// What became of the input at its end.
pub enum NoMore {
    /// It ended.
    End,
    /// A line was refused.
    Refused(Failure),
}

impl Intake {
    /// One prompt and nothing else.
    pub fn of_prompt(prompt: String) -> Intake {
        let bytes = prompt.len();
        let message = Message { content: vec![ContentBlock::Text(TextContent::new(prompt))], bytes };
        Intake { waiting: VecDeque::from([message]), arrivals: None, refused: None }
    }

    /// A message a line. Reads on a task of its own, which ends with the input; to be called on the runtime.
    pub fn of_lines(input: impl AsyncRead + Send + Unpin + 'static) -> Intake {
        let (tx, arrivals) = mpsc::channel(1);
        tokio::spawn(read(input, tx));
        Intake { waiting: VecDeque::new(), arrivals: Some(arrivals), refused: None }
    }

    /// Waits until something arrives: a message is kept, a control request is given out; None where something else
    /// happened. Pends while too much waits, and for ever when nothing more will come. May be dropped.
    pub async fn arrival(&mut self) -> Option<Control> {
        let held: usize = self.waiting.iter().map(|message| message.bytes).sum();
        let arrivals = match &mut self.arrivals {
            Some(arrivals) if held < WAITING_BYTES => arrivals,
            Some(_) | None => return std::future::pending().await,
        };
        match arrivals.recv().await {
            Some(Ok(Understood::Control(control))) => return Some(control),
            Some(Ok(Understood::Message(message))) => self.waiting.push_back(message),
            Some(Err(failure)) => {
                self.refused = Some(failure);
                self.arrivals = None;
            }
            None => self.arrivals = None,
        }
        None
    }

    /// The next message, if one waits.
    pub fn take(&mut self) -> Option<Vec<ContentBlock>> {
        self.waiting.pop_front().map(|message| message.content)
    }

    /// Some where no message waits and none will come.
    pub fn no_more(&mut self) -> Option<NoMore> {
        if !self.waiting.is_empty() || self.arrivals.is_some() {
            return None;
        }
        Some(match self.refused.take() {
            Some(failure) => NoMore::Refused(failure),
            None => NoMore::End,
        })
    }
}

/// Reads to the end, to the first line that is refused, or until nobody takes the messages.
async fn read(input: impl AsyncRead + Unpin, tx: mpsc::Sender<Result<Understood, Failure>>) {
    let mut reader = BufReader::new(input);
    for number in 1.. {
        let understood = match next_line(&mut reader).await {
            Ok(Some(line)) => understand(&line, number),
            Ok(None) => return,
            Err(error) => Err(Failure::run(format!("standard input cannot be read: {error}"))),
        };
        let is_last = understood.is_err();
        if let Some(arrival) = understood.transpose()
            && tx.send(arrival).await.is_err()
        {
            return;
        }
        if is_last {
            return;
        }
    }
}
