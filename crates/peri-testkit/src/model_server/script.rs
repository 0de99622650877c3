//! Which reply a request gets.

use std::sync::Arc;

use super::captured::CapturedRequest;
use super::reply::Reply;

/// A function from requests to replies.
#[derive(Clone)]
pub struct Script(Arc<dyn Fn(&CapturedRequest) -> Reply + Send + Sync>);

impl Script {
    /// The first request gets the first reply, and so on. A request beyond the last is refused, which no client tries again.
    pub fn in_order(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Script {
        let replies: Vec<Reply> = replies.into_iter().map(Into::into).collect();
        Script::computed(move |request| replies.get(request.number).cloned().unwrap_or_else(|| beyond(request.number)))
    }

    /// As [`Script::in_order`], but the last reply is given again and again.
    pub fn repeating_last(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Script {
        let replies: Vec<Reply> = replies.into_iter().map(Into::into).collect();
        Script::computed(move |request| {
            let known = replies.get(request.number).or(replies.last());
            known.cloned().unwrap_or_else(|| beyond(request.number))
        })
    }

    /// A conversation that holds `n` answers gets reply `n`: a request that is sent again, or by another process after a
    /// crash, gets the same one.
    pub fn by_history(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Script {
        let replies: Vec<Reply> = replies.into_iter().map(Into::into).collect();
        Script::computed(move |request| {
            let place = request.answers_so_far();
            replies.get(place).cloned().unwrap_or_else(|| beyond(place))
        })
    }

    /// Any function of the request.
    pub fn computed<R: Into<Reply>>(reply: impl Fn(&CapturedRequest) -> R + Send + Sync + 'static) -> Script {
        Script(Arc::new(move |request| reply(request).into()))
    }

    pub(super) fn reply(&self, request: &CapturedRequest) -> Reply {
        (self.0)(request)
    }
}

impl<R: Into<Reply>> From<Vec<R>> for Script {
    fn from(replies: Vec<R>) -> Script {
        Script::in_order(replies)
    }
}

impl<R: Into<Reply>, const N: usize> From<[R; N]> for Script {
    fn from(replies: [R; N]) -> Script {
        Script::in_order(replies)
    }
}

fn beyond(place: usize) -> Reply {
    Reply::status(400).error_body("invalid_request_error", &format!("the script has no reply {place}"))
}
