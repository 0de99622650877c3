//! What `peri` does besides a print run. Each command writes its report to standard output, and what is wrong to standard
//! error; none asks a model.

pub mod completions;
pub mod config;
pub mod delete;
pub mod export;
pub mod man;
mod markdown;
pub mod models;
pub mod paths;
pub mod question;
pub mod redaction;
pub mod sessions;
mod transcript;
pub mod trust;
