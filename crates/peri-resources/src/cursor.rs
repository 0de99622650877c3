//! Paging through a list of threads: the same order, cursor and page size in every store.

use peri_acp_types::ports::{ThreadPage, ThreadQuery};
use peri_acp_types::{SessionId, StoreError, ThreadMeta};

/// The most threads on a page, whatever a caller asks for.
const MAX_PAGE: usize = 500;
/// What of a cursor that is none is repeated in the error.
const SHOWN_CURSOR_CHARS: usize = 60;

/// The last thread of a page, by the keys of the order: newest change first, then the higher id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    pub updated_at_ms: i64,
    pub id: SessionId,
}

impl Cursor {
    pub(crate) fn of(meta: &ThreadMeta) -> Cursor {
        Cursor { updated_at_ms: meta.updated_at_ms, id: meta.id }
    }

    /// Where the query goes on; None from the start.
    ///
    /// # Errors
    /// [`StoreError::Failed`] for a text that no page gave.
    pub(crate) fn of_query(query: &ThreadQuery) -> Result<Option<Cursor>, StoreError> {
        let Some(text) = &query.cursor else { return Ok(None) };
        let parsed = text.split_once('.').and_then(|(updated_at_ms, id)| {
            Some(Cursor { updated_at_ms: updated_at_ms.parse().ok()?, id: id.parse().ok()? })
        });
        match parsed {
            Some(cursor) => Ok(Some(cursor)),
            None => {
                let shown: String = text.chars().take(SHOWN_CURSOR_CHARS).collect();
                Err(StoreError::Failed(format!(
                    "`{shown}` is no place in a list of sessions; start from the first page"
                )))
            }
        }
    }

    fn to_text(self) -> String {
        format!("{}.{}", self.updated_at_ms, self.id)
    }
}

/// How many threads a page of this query holds. At least one, so that paging always gets on.
pub(crate) fn page_size(query: &ThreadQuery) -> usize {
    query.limit.clamp(1, MAX_PAGE)
}

/// Makes a page of threads that were read one further than the page holds.
pub(crate) fn page_of(mut threads: Vec<ThreadMeta>, size: usize) -> ThreadPage {
    let more = threads.len() > size;
    threads.truncate(size);
    let next = threads.last().filter(|_| more).map(|last| Cursor::of(last).to_text());
    ThreadPage { threads, next }
}
