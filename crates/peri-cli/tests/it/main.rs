//! The real binary, from outside: its command line, its streams, its exit codes, and what it leaves behind.

#![cfg(test)]

mod acp;
mod acp_client;
mod command_line;
mod configuration;
mod demo;
mod doctor;
mod formats;
mod garbage;
mod kill_points;
mod limits;
mod models;
mod network;
mod permission;
mod prompt_input;
mod protocols;
mod sandbox;
mod session_files;
mod sessions;
mod signals;
mod store;
mod stream_input;
mod trust;
