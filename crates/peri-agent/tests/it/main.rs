//! Sessions through their handle, with a fake model.

mod lane;
