//! Providers that the environment makes where no source names one, and the model that a session starts with then.
//!
//! Owns: which variables count, which protocol an address speaks, which model is the default. Invariant: an address that the
//! user gave is used as it is; without one, requests go to the vendor whose key is set, and to nobody else.

use peri_acp_types::ports::Secret;

use crate::base_url::check_base_url;
use crate::*;

/// A vendor whose variables make a provider.
struct Vendor {
    /// The provider's name.
    provider: &'static str,
    key: &'static str,
    base_url: &'static str,
    model: &'static str,
    /// What is spoken at the vendor's own address.
    protocol: Protocol,
}

const VENDORS: [Vendor; 2] = [
    Vendor {
        provider: DEFAULT_PROVIDER,
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        model: "ANTHROPIC_MODEL",
        protocol: Protocol::Anthropic,
    },
    Vendor {
        provider: DEFAULT_OPENAI_PROVIDER,
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        model: OPENAI_MODEL_VARIABLE,
        protocol: Protocol::OpenAiResponses,
    },
];

/// The variable that chooses the model of [`DEFAULT_OPENAI_PROVIDER`].
pub(crate) const OPENAI_MODEL_VARIABLE: &str = "OPENAI_MODEL";

/// What the environment gives.
#[derive(Default)]
pub(crate) struct DefaultProviders {
    pub(crate) providers: Vec<(&'static str, Sourced<Provider>)>,
    /// `PROVIDER/MODEL`, not checked yet. None where nothing chooses one.
    pub(crate) model: Option<(String, Origin)>,
    pub(crate) findings: Vec<Diagnostic>,
}

/// Looks at the variables of every vendor. `variable` gives None for one that is empty.
pub(crate) fn default_providers(variable: &dyn Fn(&str) -> Option<String>) -> DefaultProviders {
    let mut found = DefaultProviders::default();
    // A model that somebody chose goes before one that nobody did, whoever the vendor.
    let (mut chosen, mut default) = (None, None);
    for vendor in &VENDORS {
        let mut findings = Vec::new();
        let provider = vendor.provider(variable, &mut findings);
        if provider.is_none() && !found.providers.is_empty() && variable(vendor.model).is_none() {
            // Other tools read these variables, too: one that Peri does not need does not stop it.
            findings.iter_mut().for_each(|finding| finding.severity = Severity::Warning);
        }
        found.findings.extend(findings);
        let Some(provider) = provider else { continue };
        let named = |model: &str| format!("{}/{}", vendor.provider, model.trim());
        let by_variable = variable(vendor.model);
        chosen = chosen.or_else(|| Some((named(&by_variable?), Origin::variable(Layer::Default, vendor.model))));
        default =
            default.or_else(|| Some((named(default_model(&provider.value)?), Origin::new(Layer::Default, "default"))));
        found.providers.push((vendor.provider, provider));
    }
    found.model = chosen.or(default);
    found
}

/// None where an OpenAI-compatible server is not OpenAI's: what it has, only it knows.
fn default_model(provider: &Provider) -> Option<&'static str> {
    match provider.protocol {
        Protocol::Anthropic => Some(DEFAULT_MODEL),
        Protocol::OpenAiResponses => Some(DEFAULT_OPENAI_MODEL),
        Protocol::OpenAiChat => None,
    }
}

impl Vendor {
    /// None where neither key nor address is set, or (reported) the address cannot be used.
    fn provider(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Sourced<Provider>> {
        let (key, address) = (variable(self.key), variable(self.base_url));
        let origin = Origin::variable(Layer::Default, if key.is_some() { self.key } else { self.base_url });
        let (protocol, base_url) = match address {
            Some(address) => self.address(address.trim(), findings)?,
            None if key.is_some() => (self.protocol, self.protocol.home().to_owned()),
            None => return None,
        };
        let key = match key {
            None => ApiKey::None,
            Some(key) => ApiKey::Variable { name: self.key.to_owned(), value: Some(Secret::new(key)) },
        };
        let provider = Provider {
            protocol,
            base_url,
            key,
            models: Default::default(),
            headers: Default::default(),
            header_variables: Default::default(),
        };
        Some(Sourced { value: provider, origin })
    }

    /// What is spoken at an address that the user gave.
    fn address(&self, address: &str, findings: &mut Vec<Diagnostic>) -> Option<(Protocol, String)> {
        let protocol = match self.protocol {
            // The one protocol that every compatible server speaks.
            Protocol::OpenAiResponses if !is_openai(address) => Protocol::OpenAiChat,
            own => own,
        };
        let finding =
            |severity, message| Diagnostic::whole(severity, &Origin::variable(Layer::Default, self.base_url), message);
        match check_base_url(address, protocol) {
            Err((message, mend)) => {
                findings.push(finding(Severity::Error, message).with_hint(mend));
                None
            }
            Ok(base) => {
                findings.extend(base.odd.map(|(message, mend)| finding(Severity::Warning, message).with_hint(mend)));
                Some((protocol, base.url))
            }
        }
    }
}

/// True for OpenAI's own hosts, those of its regions among them.
fn is_openai(address: &str) -> bool {
    let host = address.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_ascii_lowercase));
    host.is_some_and(|host| host == "api.openai.com" || host.ends_with(".api.openai.com"))
}
