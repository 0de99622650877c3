//! Which reply a request gets.

use std::sync::Arc;

use serde_json::Value;

use super::captured::CapturedRequest;
use super::reply::Reply;

/// A function from requests to replies, and the list of models, which is answered beside it.
#[derive(Clone)]
pub struct Script {
    reply: Arc<dyn Fn(&CapturedRequest) -> Reply + Send + Sync>,
    models: Option<Reply>,
}

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
        Script { reply: Arc::new(move |request| reply(request).into()), models: None }
    }

    /// Answers that document to whoever asks for the list of models. Without it there is none: 404.
    #[must_use]
    pub fn with_models(self, list: &Value) -> Script {
        self.answering_models(Reply::status(200).json_body(list))
    }

    /// As [`Script::with_models`], for lists that go wrong.
    #[must_use]
    pub fn answering_models(self, reply: Reply) -> Script {
        Script { models: Some(reply), ..self }
    }

    pub(super) fn reply(&self, request: &CapturedRequest) -> Reply {
        (self.reply)(request)
    }

    pub(super) fn models(&self) -> Reply {
        let none = || Reply::status(404).error_body("not_found_error", "this endpoint has no list of models");
        self.models.clone().unwrap_or_else(none)
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
