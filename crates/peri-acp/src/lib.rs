//! The protocol edge: the Agent Client Protocol on one side, the controller on the other.
mod transport;
pub use transport::*;
