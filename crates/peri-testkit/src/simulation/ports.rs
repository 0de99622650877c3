//! Ports that chance has no hand in.

use peri_acp_types::ContextFacts;
use peri_acp_types::ports::{
    ConfigDocument, ConfigPlace, ConfigRevision, ConfigSource, ConfigSourceError, ContextSource, HttpError,
    HttpRequest, HttpResponse, HttpTransport, PathResolver, ResolvedPath, TrustState, TrustStore, TrustVerdict,
};

pub const CWD: &str = "/project";

const SETTINGS: &str = r#"{"model": "fake/model", "retry": {"maxAttempts": 3},
    "providers": {"fake": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#;

/// Settings, trust, context, paths; no network.
pub struct PlainPorts;

#[async_trait::async_trait]
impl ConfigSource for PlainPorts {
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
        Ok((*place == ConfigPlace::User).then(|| ConfigDocument {
            origin: "/home/settings.json".to_owned(),
            bytes: SETTINGS.as_bytes().to_vec(),
            revision: ConfigRevision("1".to_owned()),
        }))
    }

    async fn write(
        &self,
        _place: &ConfigPlace,
        _expected: Option<&ConfigRevision>,
        _bytes: Vec<u8>,
    ) -> Result<ConfigRevision, ConfigSourceError> {
        Ok(ConfigRevision("2".to_owned()))
    }

    fn env(&self, _name: &str) -> Option<String> {
        None
    }
}

#[async_trait::async_trait]
impl TrustStore for PlainPorts {
    async fn verdict(&self, root: &str) -> Result<TrustVerdict, String> {
        let state = TrustState::NothingToTrust;
        Ok(TrustVerdict { root: root.to_owned(), digest: String::new(), files: Vec::new(), state })
    }

    async fn grant(&self, _root: &str, _digest: &str) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait::async_trait]
impl ContextSource for PlainPorts {
    async fn pull(&self, _cwd: &str) -> (ContextFacts, Vec<String>) {
        (ContextFacts::default(), Vec::new())
    }
}

#[async_trait::async_trait]
impl HttpTransport for PlainPorts {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        Err(HttpError::Invalid(request.url))
    }
}

#[async_trait::async_trait]
impl PathResolver for PlainPorts {
    async fn resolve(&self, _roots: &[String], cwd: &str, path: &str) -> ResolvedPath {
        let path = if path == "." { cwd } else { path };
        ResolvedPath { path: path.to_owned(), inside: true }
    }
}
