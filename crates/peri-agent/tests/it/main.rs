//! Sessions through their handle, with a fake model.

mod bench;
mod cancel;
mod lane;
mod life;
mod turns;
