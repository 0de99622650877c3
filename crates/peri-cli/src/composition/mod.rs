//! The native composition root: which adapter stands behind which port.
//!
//! Owns: the wiring, once per run. Must not: hold logic that a library should have.
//! Invariant: nothing here is opened, read or started before it is needed.

mod clock;
mod environment;
mod host;
mod http;
mod ids;
mod mcp;
pub mod offered;
pub mod overlay;
mod places;
mod spawner;

use std::sync::Arc;

use peri_acp_types::ports::IdSource;
use peri_mcp_servers::config::{FileConfigSource, FileTrustStore};

pub use environment::Environment;
pub use host::{Host, HostPlan, Persistence, existing_store};
pub use places::{PlaceChoice, Places};

use crate::exit::Failure;

/// Ids of this process.
///
/// # Errors
/// A [`Failure`] where the system has no randomness to give.
pub fn system_ids() -> Result<Arc<dyn IdSource>, Failure> {
    let ids = ids::SeededIds::from_system(Arc::new(clock::SystemClock::start()))
        .map_err(|error| Failure::run(format!("the system has no randomness: {error}")))?;
    Ok(Arc::new(ids))
}

/// Where the settings of these places come from, and what is trusted.
pub fn sources(places: &Places) -> (FileConfigSource, Arc<FileTrustStore>) {
    let trust = Arc::new(FileTrustStore::new(places.dirs()));
    let source = FileConfigSource::new(places.settings_file().to_owned(), trust.clone(), places.variables());
    (source, trust)
}
