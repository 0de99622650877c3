//! The real binary, from outside: its command line, its streams, its exit codes, and what it leaves behind.

mod command_line;
mod configuration;
mod demo;
mod formats;
mod limits;
mod network;
mod permission;
mod prompt_input;
mod sandbox;
mod sessions;
mod signals;
mod store;
mod trust;
