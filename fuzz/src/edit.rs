//! Edit, by the workspace server as a session uses it: any file, any two texts.
//!
//! Holds: a refused edit leaves the file as it was; a byte order mark stays; where line endings are uniform and the text
//! stands there once, the file becomes what replacing it by hand would make of it.

use serde_json::json;

use crate::support::{Session, session};

const FILE: &str = "file.txt";
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A workspace with its server, for many checks.
struct Stage {
    runtime: tokio::runtime::Runtime,
    session: Session,
}

thread_local! {
    static STAGE: Stage = {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let session = runtime.block_on(session());
        Stage { runtime, session }
    };
}

/// One edit.
struct Case<'a> {
    file: &'a [u8],
    old: String,
    new: String,
    replace_all: bool,
}

/// The first byte holds two flags, the next two the lengths of the old and the new text, which follow; the rest is the
/// file. By a flag the old text is taken out of the file, at the place that the third byte says.
pub fn check(data: &[u8]) {
    let Some((&[flags, old_length, new_length], rest)) = data.split_first_chunk::<3>() else { return };
    let (old, rest) = rest.split_at(usize::from(old_length).min(rest.len()));
    let (new, file) = rest.split_at(usize::from(new_length).min(rest.len()));
    let old = if flags & 2 == 0 {
        old
    } else {
        let start = usize::from(new_length).min(file.len());
        &file[start..(start + usize::from(old_length)).min(file.len())]
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let case = Case { file, old: text(old), new: text(new), replace_all: flags & 1 != 0 };
    STAGE.with(|stage| stage.runtime.block_on(check_edit(&stage.session, &case)));
}

async fn check_edit(session: &Session, case: &Case<'_>) {
    session.put(FILE, case.file);
    session.read(FILE).await;
    let arguments = json!({
        "file_path": FILE, "old_string": case.old, "new_string": case.new, "replace_all": case.replace_all,
    });
    let reply = session.call("Edit", arguments).await;
    let after = session.get(FILE);
    let refused = reply.result.is_error == Some(true);
    if refused {
        assert!(after == case.file, "a refused edit changed the file: {}", reply.text());
    }
    let marked = case.file.starts_with(BYTE_ORDER_MARK.as_bytes());
    if marked {
        assert!(after.starts_with(BYTE_ORDER_MARK.as_bytes()), "the byte order mark is gone");
    }
    if let Some(expected) = by_hand(case) {
        assert!(!refused, "refused: {}", reply.text());
        assert_eq!(after.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
    }
}

/// What the file must become, where that can be said in a few lines; None where it cannot.
fn by_hand(case: &Case<'_>) -> Option<String> {
    let text = std::str::from_utf8(case.file).ok().filter(|text| !text.contains('\0'))?;
    let (mark, text) = text.strip_prefix(BYTE_ORDER_MARK).map_or(("", text), |text| (BYTE_ORDER_MARK, text));
    let unusual = |text: &str| text.contains('\r') || text.contains(BYTE_ORDER_MARK);
    let with_crlf = text.contains("\r\n");
    let lines = text.replace("\r\n", "\n");
    let uniform = !with_crlf || lines.replace('\n', "\r\n") == text;
    if !uniform || unusual(&lines) || unusual(&case.old) || unusual(&case.new) {
        return None;
    }
    if case.old.is_empty() || case.old == case.new || lines.matches(&case.old).count() != 1 {
        return None;
    }
    let edited = lines.replacen(&case.old, &case.new, 1);
    let edited = if with_crlf { edited.replace('\n', "\r\n") } else { edited };
    Some(format!("{mark}{edited}"))
}
