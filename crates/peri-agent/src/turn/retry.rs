//! Whether and when a failed attempt is followed by another.

use std::time::Duration;

use peri_acp_types::ModelFailure;

use crate::RetryPolicy;

/// The wait before the next attempt; None where there is none. `attempts` have been made; `random` is in `[0, 1)`.
pub(super) fn next_attempt_in(
    policy: &RetryPolicy,
    failure: &ModelFailure,
    attempts: u32,
    random: f64,
) -> Option<Duration> {
    if !failure.kind.is_retryable() || attempts >= policy.max_attempts {
        return None;
    }
    match failure.retry_after {
        // The provider knows best; a little on top keeps many clients from coming back at the same instant.
        Some(wait) if wait <= policy.max_retry_after => Some(wait + policy.first_delay.mul_f64(random)),
        Some(_) => None,
        None => {
            let doubled = policy.first_delay.saturating_mul(1 << (attempts.saturating_sub(1)).min(16));
            // Between half and all of it.
            Some(doubled.min(policy.max_delay).mul_f64(0.5 + random / 2.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peri_acp_types::ModelFailureKind;

    fn failure(kind: ModelFailureKind, retry_after: Option<u64>) -> ModelFailure {
        ModelFailure {
            kind,
            model: "mine/model".into(),
            message: String::new(),
            status: None,
            retry_after: retry_after.map(Duration::from_secs),
            received_bytes: 0,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn waits_double_up_to_the_bound_and_attempts_end() {
        let policy = RetryPolicy { max_attempts: 9, ..RetryPolicy::default() };
        let cut = failure(ModelFailureKind::Cut, None);
        let waits: Vec<u128> = (1..9)
            .map(|attempts| next_attempt_in(&policy, &cut, attempts, 0.0).expect("another attempt").as_millis())
            .collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 15000, 15000]);
        assert_eq!(next_attempt_in(&policy, &cut, 9, 0.0), None);
    }

    #[test]
    fn the_providers_word_counts_unless_it_is_too_long() {
        let policy = RetryPolicy::default();
        let limited = |seconds| failure(ModelFailureKind::RateLimited, Some(seconds));
        assert_eq!(next_attempt_in(&policy, &limited(7), 1, 0.0), Some(Duration::from_secs(7)));
        assert_eq!(next_attempt_in(&policy, &limited(3600), 1, 0.0), None);
    }

    #[test]
    fn what_would_fail_again_is_not_tried_again() {
        for kind in [ModelFailureKind::Auth, ModelFailureKind::BadRequest, ModelFailureKind::ContextTooLong] {
            assert_eq!(next_attempt_in(&RetryPolicy::default(), &failure(kind, None), 1, 0.5), None);
        }
    }
}
