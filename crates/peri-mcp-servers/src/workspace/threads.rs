//! Work that blocks, each on a thread of its own.
//!
//! Must not panic where the system gives no thread, as a runtime's pool of blocking threads does: a command that has
//! used up all processes is no reason for peri to go. Invariant: work that was not started is handed back.

use std::io;
use std::sync::mpsc;
use std::thread::Builder;

use tokio::sync::oneshot;

/// Why there is no result of a piece of work.
#[derive(Debug)]
pub(crate) enum Unfinished<F> {
    /// It was not started.
    NoThread { error: io::Error, work: F },
    /// It panicked.
    Died,
}

/// Runs work on a thread of its own and waits for it. When the future is dropped the work goes on.
///
/// # Errors
/// [`Unfinished`].
pub(crate) async fn run<T, F>(work: F) -> Result<T, Unfinished<F>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let done = start(Builder::new().name("peri-workspace".to_owned()), work)?;
    done.await.map_err(|_| Unfinished::Died)
}

fn start<T, F>(thread: Builder, work: F) -> Result<oneshot::Receiver<T>, Unfinished<F>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (give, take) = mpsc::sync_channel::<F>(1);
    let (tell, done) = oneshot::channel();
    // The work follows when the thread is there: a closure whose thread does not start is lost.
    let started = thread.spawn(move || {
        if let Ok(work) = take.recv() {
            // Nobody may be waiting any more.
            let _ = tell.send(work());
        }
    });
    match started {
        Ok(_detached) => give.send(work).map(|()| done).map_err(|_| Unfinished::Died),
        Err(error) => Err(Unfinished::NoThread { error, work }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_elsewhere() {
        let here = std::thread::current().id();
        let there = futures::executor::block_on(run(|| std::thread::current().id()));
        assert!(there.is_ok_and(|there| there != here));
    }

    #[test]
    fn work_is_handed_back_where_no_thread_can_be_had() {
        // No address space holds its stack.
        let thread = Builder::new().stack_size(1 << 50);
        match start(thread, || 7) {
            Err(Unfinished::NoThread { work, .. }) => assert_eq!(work(), 7),
            _ => panic!("it seems to have been started"),
        }
    }

    #[test]
    fn work_that_panics_is_told_from_work_that_ends() {
        let died = futures::executor::block_on(run(|| assert!(std::hint::black_box(false), "on purpose")));
        assert!(matches!(died, Err(Unfinished::Died)));
    }
}
