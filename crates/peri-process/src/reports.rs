//! A socket's reports, folded into a state that any number of tasks can watch.
//!
//! Owns: reading and decoding. Must not: hold a lock over an await, or need a task of its own: whoever waits reads, for all.
//! Invariant: a waiter that is dropped, or not polled for a while, holds up nobody and loses nothing.

use std::io::{ErrorKind, Result};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use futures::future::{Either, select};
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::wire::Decoder;

/// A state that reports change.
pub(crate) trait Fold {
    type Report: DeserializeOwned;

    fn apply(&mut self, report: Self::Report);

    /// No report will come any more: the other end is closed or cannot be understood.
    fn close(&mut self);
}

/// Our end of a socket on which reports arrive.
pub(crate) struct Reports<S> {
    stream: UnixStream,
    /// Never held over an await: taken to drain what the socket has.
    decoder: Mutex<Decoder>,
    state: watch::Sender<S>,
}

impl<S: Fold + Default> Reports<S> {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, decoder: Mutex::default(), state: watch::Sender::new(S::default()) }
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Waits until the state gives an answer. A closed state has to give one. Dropping it has no effect.
    pub(crate) async fn answer<T>(&self, mut ask: impl FnMut(&S) -> Option<T>) -> T {
        let mut changes = self.state.subscribe();
        loop {
            if let Some(answer) = ask(&changes.borrow_and_update()) {
                return answer;
            }
            match select(pin!(self.stream.readable()), pin!(changes.changed())).await {
                Either::Left((Ok(()), _)) => self.drain(),
                // The runtime is being shut down.
                Either::Left((Err(_), _)) => self.state.send_modify(S::close),
                Either::Right(_) => {}
            }
        }
    }

    /// Sends all of `bytes`. Not to be dropped half-way unless the socket is given up.
    ///
    /// # Errors
    /// Where the other end is closed.
    pub(crate) async fn send(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn drain(&self) {
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [0; 4096];
        loop {
            match self.stream.try_read(&mut buffer) {
                Ok(length @ 1..) => decoder.push(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => return self.state.send_modify(S::close),
            }
            loop {
                match decoder.next() {
                    Ok(Some(report)) => self.state.send_modify(|state| state.apply(report)),
                    Ok(None) => break,
                    Err(_) => return self.state.send_modify(S::close),
                }
            }
        }
    }
}
