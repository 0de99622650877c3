//! What is known of a workspace's trust, and what follows from it for settings.

use peri_acp_types::ports::{TrustState, TrustVerdict};

/// Whether the workspace's own files may do more than tighten, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkspaceTrust {
    pub grounds: TrustGrounds,
    /// What the trust store said; None where it could not say anything.
    pub verdict: Option<TrustVerdict>,
}

/// Why a workspace is trusted or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TrustGrounds {
    /// The user trusted these very files before.
    Recorded,
    /// `--trust-workspace`.
    ThisRun,
    /// There is nothing in it that would need trust.
    NothingToTrust,
    Untrusted,
    /// Its files are no longer those that were trusted.
    Changed,
    /// It could not be found out; the text says why.
    Unknown(String),
}

impl WorkspaceTrust {
    pub(crate) fn of(verdict: Result<TrustVerdict, String>, for_this_run: bool) -> WorkspaceTrust {
        let (verdict, found) = match verdict {
            Ok(verdict) => {
                let grounds = match verdict.state {
                    TrustState::NothingToTrust => TrustGrounds::NothingToTrust,
                    TrustState::Trusted => TrustGrounds::Recorded,
                    TrustState::Untrusted => TrustGrounds::Untrusted,
                    TrustState::Changed => TrustGrounds::Changed,
                };
                (Some(verdict), grounds)
            }
            Err(reason) => (None, TrustGrounds::Unknown(reason)),
        };
        WorkspaceTrust { grounds: if for_this_run { TrustGrounds::ThisRun } else { found }, verdict }
    }

    /// True where the workspace's files count like the user's own. False where there are none, so that a file that
    /// appears meanwhile is not taken for a trusted one.
    pub fn is_trusted(&self) -> bool {
        matches!(self.grounds, TrustGrounds::Recorded | TrustGrounds::ThisRun)
    }

    /// True where a rule that is written into the workspace's local settings will have its effect. Where it is false,
    /// "allow always" should not be offered.
    pub fn keeps_rules(&self) -> bool {
        self.is_trusted() || self.grounds == TrustGrounds::NothingToTrust
    }

    /// Why the workspace's files only tighten, in words; reads on from what was ignored.
    pub(crate) fn refusal(&self) -> &'static str {
        match self.grounds {
            TrustGrounds::Changed => "workspace has changed since it was trusted",
            _ => "workspace is not trusted",
        }
    }
}
