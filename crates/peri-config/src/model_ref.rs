//! `PROVIDER/MODEL`: the one way in which a model is named.

use std::fmt;
use std::str::FromStr;

use crate::path::steers_display;

/// The longest name of a model that is accepted, in bytes.
const MAX_BYTES: usize = 512;

/// A model at a provider. The provider's name ends at the first slash; the model's own may hold more of them.
///
/// Invariant: both parts are non-empty and free of white space and control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ModelRef {
    provider: String,
    model: String,
}

/// Text that names no model.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("must be PROVIDER/MODEL, such as `anthropic/claude-sonnet-5-5`, without spaces")]
pub struct ModelRefError;

impl ModelRef {
    /// The provider's configured name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model's id as the provider knows it.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl FromStr for ModelRef {
    type Err = ModelRefError;

    fn from_str(text: &str) -> Result<ModelRef, ModelRefError> {
        let unusable = |c: char| c.is_whitespace() || steers_display(c);
        match text.split_once('/') {
            Some((provider, model))
                if !provider.is_empty() && !model.is_empty() && text.len() <= MAX_BYTES && !text.contains(unusable) =>
            {
                Ok(ModelRef { provider: provider.to_owned(), model: model.to_owned() })
            }
            _ => Err(ModelRefError),
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}
