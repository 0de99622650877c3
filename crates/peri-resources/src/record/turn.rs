//! Twins of a turn's end.

use std::borrow::Cow;

use peri_acp_types::{StopReason, StoredTurnEnd};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TurnEndRecord<'a> {
    Completed(StopReasonRecord),
    Interrupted(Cow<'a, str>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReasonRecord {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
}

impl<'a> From<&'a StoredTurnEnd> for TurnEndRecord<'a> {
    fn from(end: &'a StoredTurnEnd) -> TurnEndRecord<'a> {
        match end {
            StoredTurnEnd::Completed(reason) => TurnEndRecord::Completed(match reason {
                StopReason::EndTurn => StopReasonRecord::EndTurn,
                StopReason::MaxTokens => StopReasonRecord::MaxTokens,
                StopReason::MaxTurnRequests => StopReasonRecord::MaxTurnRequests,
                StopReason::Refusal => StopReasonRecord::Refusal,
            }),
            StoredTurnEnd::Interrupted(words) => TurnEndRecord::Interrupted(words.into()),
        }
    }
}

impl From<TurnEndRecord<'_>> for StoredTurnEnd {
    fn from(record: TurnEndRecord<'_>) -> StoredTurnEnd {
        match record {
            TurnEndRecord::Completed(reason) => StoredTurnEnd::Completed(match reason {
                StopReasonRecord::EndTurn => StopReason::EndTurn,
                StopReasonRecord::MaxTokens => StopReason::MaxTokens,
                StopReasonRecord::MaxTurnRequests => StopReason::MaxTurnRequests,
                StopReasonRecord::Refusal => StopReason::Refusal,
            }),
            TurnEndRecord::Interrupted(words) => StoredTurnEnd::Interrupted(words.into_owned()),
        }
    }
}
