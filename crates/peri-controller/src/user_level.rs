//! The user's own settings, apart from any workspace.
//!
//! Invariant: nothing that a workspace holds is read, so that nothing of it needs trust.

use peri_acp_types::ports::{
    ConfigDocument, ConfigPlace, ConfigRevision, ConfigSource, ConfigSourceError, TrustState, TrustStore, TrustVerdict,
};
use peri_config::Settings;

use crate::{ControllerError, ControllerPorts};

/// What settings say where there is no workspace: the user's document, the environment and the command line.
///
/// # Errors
/// [`ControllerError::Config`].
pub(crate) async fn user_level_settings(ports: &ControllerPorts) -> Result<Settings, ControllerError> {
    let source = UserLevel(ports.config.as_ref());
    Ok(peri_config::load(&source, &NothingToTrust, "/", &ports.overlay).await?.settings)
}

/// A source in which no workspace holds a document.
struct UserLevel<'a>(&'a dyn ConfigSource);

#[async_trait::async_trait]
impl ConfigSource for UserLevel<'_> {
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
        match place {
            ConfigPlace::User | ConfigPlace::File { .. } => self.0.read(place).await,
            ConfigPlace::Workspace { .. } | ConfigPlace::WorkspaceLocal { .. } | ConfigPlace::WorkspaceMcp { .. } => {
                Ok(None)
            }
        }
    }

    async fn write(
        &self,
        place: &ConfigPlace,
        expected: Option<&ConfigRevision>,
        bytes: Vec<u8>,
    ) -> Result<ConfigRevision, ConfigSourceError> {
        self.0.write(place, expected, bytes).await
    }

    fn env(&self, name: &str) -> Option<String> {
        self.0.env(name)
    }
}

struct NothingToTrust;

#[async_trait::async_trait]
impl TrustStore for NothingToTrust {
    async fn verdict(&self, root: &str) -> Result<TrustVerdict, String> {
        let (root, digest) = (root.to_owned(), String::new());
        Ok(TrustVerdict { root, digest, files: Vec::new(), state: TrustState::NothingToTrust })
    }

    async fn grant(&self, _root: &str, _digest: &str) -> Result<(), String> {
        Ok(())
    }
}
