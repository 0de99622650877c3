//! Sessions through their handle, with a fake model.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod bench;
mod cancel;
mod change;
mod commands;
mod lane;
mod life;
mod turns;
