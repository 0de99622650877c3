//! What a thought has to go back with, where a protocol wants more than one text: a small JSON object in the place of the
//! signature, opaque to everyone else.
//!
//! Invariant: a seal of one protocol is never taken for another's, nor for a provider's own signature, which is base64.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of [`seal`]. `peri` names the protocol, and comes first so that [`is_ours`] needs no parsing.
#[derive(Serialize, Deserialize)]
struct Seal {
    peri: String,
    value: Value,
}

/// The signature that holds the value for that protocol.
pub(crate) fn seal(protocol: &str, value: Value) -> String {
    serde_json::to_string(&Seal { peri: protocol.to_owned(), value }).unwrap_or_default()
}

/// What [`seal`] holds, if that protocol made it.
pub(crate) fn open(protocol: &str, signature: &str) -> Option<Value> {
    let seal: Seal = is_ours(signature).then(|| serde_json::from_str(signature).ok())??;
    (seal.peri == protocol).then_some(seal.value)
}

/// True for what [`seal`] made, for whatever protocol.
pub(crate) fn is_ours(signature: &str) -> bool {
    signature.starts_with("{\"peri\":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_opens_for_its_protocol_only() {
        let sealed = seal("a", serde_json::json!({"x": 1}));
        assert!(is_ours(&sealed));
        assert_eq!(open("a", &sealed), Some(serde_json::json!({"x": 1})));
        assert_eq!(open("b", &sealed), None);
        assert_eq!(open("a", "c2ln"), None);
        assert_eq!(open("a", "{\"peri\":7"), None);
    }
}
