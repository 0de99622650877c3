//! What was found while a session was put together, said to its user.
//!
//! A middleware, because that is how something adds to a session; it has no other hook. Invariant: each line is said once.

use std::collections::HashSet;

use peri_acp_types::NoticeKind;
use peri_agent::{Contribution, Middleware, SessionScope};

/// Says lines when the session opens.
pub(crate) struct OpeningNotices {
    lines: Vec<String>,
}

impl OpeningNotices {
    pub(crate) fn new(lines: impl IntoIterator<Item = String>) -> OpeningNotices {
        let mut said = HashSet::new();
        OpeningNotices { lines: lines.into_iter().filter(|line| said.insert(line.clone())).collect() }
    }
}

#[async_trait::async_trait]
impl Middleware for OpeningNotices {
    fn name(&self) -> &'static str {
        "opening-notices"
    }

    async fn open(&self, _session: &SessionScope) -> Contribution {
        let notices = self.lines.iter().map(|line| (NoticeKind::Configuration, line.clone())).collect();
        Contribution { notices, ..Contribution::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_found_twice_is_said_once() {
        let lines = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(OpeningNotices::new(lines).lines, ["a", "b"]);
    }
}
