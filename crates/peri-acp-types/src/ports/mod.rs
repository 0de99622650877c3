//! Ports: the traits through which a layer reaches the outside. All are `Send`, so that one definition serves tokio and wasm.
//!
//! A port's method states whether it may fail, block, be repeated, and what dropping its future does.

mod config;
mod context;
mod file_history;
mod http;
mod mcp;
mod process;
mod runtime;
mod store;

pub use config::*;
pub use context::*;
pub use file_history::*;
pub use http::*;
pub use mcp::*;
pub use process::*;
pub use runtime::*;
pub use store::*;

use crate::{
    ElicitationAnswer, ElicitationRequest, PermissionAnswer, PermissionRequest, QuestionAnswer, QuestionRequest,
};

/// The way to a person: one contract for approvals and questions. Implemented at the protocol edge.
#[async_trait::async_trait]
pub trait UserInteractionBroker: Send + Sync {
    /// Asks and waits, for as long as the person takes. Never fails: what goes wrong is an answer that refuses.
    /// Dropping the future withdraws the question.
    async fn request_permission(&self, request: PermissionRequest) -> PermissionAnswer;

    /// Puts the model's questions to the person and waits, for as long as the person takes. Never fails. Dropping the future
    /// withdraws them.
    async fn ask(&self, request: QuestionRequest) -> QuestionAnswer {
        let _ = request;
        QuestionAnswer::Unavailable("nobody is there to be asked".to_owned())
    }

    /// Whether a person could be asked at all. Does not change while a session lives.
    fn somebody_is_there(&self) -> bool {
        true
    }

    /// Shows a form and waits, for as long as the person takes. Never fails; where nobody can be asked, which is the
    /// default, the answer is [`ElicitationAnswer::Cancelled`] at once. Dropping the future withdraws the form.
    async fn elicit(&self, request: ElicitationRequest) -> ElicitationAnswer {
        let _ = request;
        ElicitationAnswer::Cancelled
    }
}
