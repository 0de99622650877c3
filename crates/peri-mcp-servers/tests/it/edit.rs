//! Edit: case 10 and its neighbours.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use proptest::prelude::*;
use serde_json::json;

use crate::support::{Session, session};

async fn check(session: &Session, before: &[u8], old: &str, new: &str, after: &[u8]) -> String {
    session.put("file.txt", before);
    session.read("file.txt").await.ok();
    let reply = session.call("Edit", json!({"file_path": "file.txt", "old_string": old, "new_string": new})).await;
    let text = reply.ok();
    assert_eq!(session.get("file.txt").escape_ascii().to_string(), after.escape_ascii().to_string());
    text
}

#[tokio::test]
async fn bom_encoding_and_line_endings_are_kept() {
    let session = session().await;
    check(&session, b"\xef\xbb\xbfa\r\nb\r\n", "b", "c", b"\xef\xbb\xbfa\r\nc\r\n").await;
    check(&session, b"a\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\n").await;
    check(&session, b"a\r\nb\nc\r\nd", "b\nc", "b\nx\nc", b"a\r\nb\nx\nc\r\nd").await;
    check(&session, b"a\nb\r\nc\nd", "c\n", "", b"a\nb\r\nd").await;
    check(&session, b"\xff\xfea\0\r\0\n\0", "a", "\u{fc}\u{1f980}", b"\xff\xfe\xfc\0\x3e\xd8\x80\xdd\r\0\n\0").await;
    check(&session, b"Gr\xfc\xdfe\xff\n", "\u{fc}\u{df}", "\u{fc}ss", b"Gr\xfcsse\xff\n").await;
}

#[tokio::test]
async fn the_result_shows_the_place_and_the_diff() {
    let session = session().await;
    let text: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    let shown = check(
        &session,
        text.as_bytes(),
        "line 10\n",
        "line ten\nand more\n",
        text.replace("line 10\n", "line ten\nand more\n").as_bytes(),
    )
    .await;
    assert_eq!(
        shown,
        "Edited file.txt: 1 replacement.\n     7\tline 7\n     8\tline 8\n     9\tline 9\n    10\tline ten\n    11\tand more\n    12\tline 11\n    13\tline 12\n    14\tline 13\n"
    );
    let reply = session
        .call(
            "Edit",
            json!({"file_path": "file.txt", "old_string": "line 1", "new_string": "LINE 1", "replace_all": true}),
        )
        .await;
    assert!(reply.ok().starts_with("Edited file.txt: 10 replacements.\n     1\tLINE 1\n"), "{}", reply.text());
    let details = reply.details();
    assert_eq!(details["locations"], json!([{"path": session.root.join("file.txt"), "line": 1}]));
    assert!(details["diffs"][0]["oldText"].as_str().unwrap().starts_with("line 1\nline 2\n"));
    assert!(details["diffs"][0]["newText"].as_str().unwrap().starts_with("LINE 1\nline 2\n"));
}

#[tokio::test]
async fn the_diff_of_a_large_file_is_the_place_only() {
    let session = session().await;
    let text: String = (1..=20_000).map(|number| format!("größe {number}\n")).collect();
    session.put("large.txt", &text);
    session.read("large.txt").await.ok();
    let reply =
        session.call("Edit", json!({"file_path": "large.txt", "old_string": "größe 777\n", "new_string": "x\n"})).await;
    let diff = &reply.details()["diffs"][0];
    assert_eq!(
        diff["newText"],
        "größe 773\ngröße 774\ngröße 775\ngröße 776\nx\ngröße 778\ngröße 779\ngröße 780\ngröße 781\n"
            .replacen("größe 773\n", "", 1)
            .replacen("größe 781\n", "", 1)
    );
    assert!(diff["oldText"].as_str().unwrap().contains("größe 777\n"));
}

#[tokio::test]
async fn the_place_must_be_certain() {
    let session = session().await;
    session.put("a.rs", "fn a() {\n    call(1);\n}\nfn b() {\n    call(1);\n}\n");
    session.read("a.rs").await.ok();
    for (old, new, expected) in [
        (
            "call(1);",
            "x",
            "old_string occurs 2 times in a.rs, at lines 2, 5. Add surrounding lines to make it unique, or set replace_all to change them all.",
        ),
        ("", "x", "old_string is empty."),
        ("x", "x", "old_string and new_string are the same"),
        (
            "fn a() {\n    coll(1);",
            "x",
            "old_string does not occur in a.rs. The closest place is at line 1:\n     1\tfn a() {\n     2\t    call(1);",
        ),
        ("struct Q;", "x", "nor does anything like it"),
        ("  call( 1 );\n}", "x", "old_string does not occur in a.rs."),
        (
            "\tcall(1);\n}",
            "x",
            "does not occur exactly, and up to white space it occurs 2 times in a.rs, at lines 2, 5.",
        ),
    ] {
        let error =
            session.call("Edit", json!({"file_path": "a.rs", "old_string": old, "new_string": new})).await.error();
        assert!(error.contains(expected), "{error}");
    }
    let loose = json!({"file_path": "a.rs", "old_string": "fn b() {\n\tcall(1);\n}", "new_string": "fn b() {\n\tcall(2);\n\tcall(3);\n}"});
    assert!(session.call("Edit", loose).await.ok().contains("matched only up to white space"));
    assert_eq!(session.get("a.rs"), b"fn a() {\n    call(1);\n}\nfn b() {\n    call(2);\n    call(3);\n}\n");
}

#[tokio::test]
async fn a_file_must_be_known_and_unchanged() {
    let session = session().await;
    session.put("a.txt", "one\n");
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    assert!(session.call("Edit", edit.clone()).await.error().contains("has not been read in this session"));
    session.read("a.txt").await.ok();
    session.put("a.txt", "one more\n");
    assert!(session.call("Edit", edit.clone()).await.error().contains("has changed since it was last read"));
    session.put("a.txt", "one\n");
    session.call("Edit", edit).await.ok();
    let gone = json!({"file_path": "b.txt", "old_string": "one", "new_string": "two"});
    assert_eq!(session.call("Edit", gone).await.error(), "b.txt does not exist. Did you mean a.txt?");
}

#[tokio::test]
async fn mode_is_kept_and_failure_leaves_everything_as_it_was() {
    let session = session().await;
    let path = session.put("run.sh", "echo one\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    session.read("run.sh").await.ok();
    session.call("Edit", json!({"file_path": "run.sh", "old_string": "one", "new_string": "two"})).await.ok();
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o4755);
    session.put("latin", b"\xff\n");
    session.read("latin").await.ok();
    let error =
        session.call("Edit", json!({"file_path": "latin", "old_string": "\u{ff}", "new_string": "€"})).await.error();
    assert!(
        error.contains("'€' does not exist in the file's encoding") && error.ends_with("Nothing was changed."),
        "{error}"
    );
    assert_eq!(session.get("latin"), b"\xff\n");
    assert_eq!(std::fs::read_dir(&session.root).unwrap().count(), 2, "no temporary file is left");
}

#[tokio::test]
async fn edits_at_the_same_time_all_arrive() {
    let session = session().await;
    let text: String = (0..16).map(|number| format!("<{number}>\n")).collect();
    session.put("a.txt", &text);
    session.read("a.txt").await.ok();
    let calls = (0..16).map(|number| {
        let arguments =
            json!({"file_path": "a.txt", "old_string": format!("<{number}>"), "new_string": format!("[{number}]")});
        session.call("Edit", arguments)
    });
    for reply in futures::future::join_all(calls).await {
        reply.ok();
    }
    assert_eq!(session.get("a.txt"), text.replace('<', "[").replace('>', "]").as_bytes());
}

/// Any file around a place that occurs once, in any encoding, with any line endings.
fn files() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, &'static str)> {
    let line_break = prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("")];
    let piece = ("[a-zäß🦀\t ]{0,12}", line_break).prop_map(|(text, end)| text + end);
    let around = proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    let encoding = prop_oneof![Just("utf-8"), Just("utf-8 bom"), Just("utf-16le"), Just("utf-16be"), Just("latin-1")];
    (around.clone(), around, encoding).prop_map(|(before, after, encoding)| {
        (encoded(&before, encoding, true), encoded(&after, encoding, false), encoding)
    })
}

fn encoded(text: &str, encoding: &str, is_first: bool) -> Vec<u8> {
    let units = |to_bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to_bytes).collect::<Vec<u8>>();
    let (mark, bytes): (&[u8], Vec<u8>) = match encoding {
        "utf-8" => (b"", text.into()),
        "utf-8 bom" => (b"\xef\xbb\xbf", text.into()),
        "utf-16le" => (b"\xff\xfe", units(u16::to_le_bytes)),
        "utf-16be" => (b"\xfe\xff", units(u16::to_be_bytes)),
        // The first byte makes sure that it is no UTF-8.
        _ => (b"\xfc", text.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()),
    };
    if is_first { [mark, &bytes].concat() } else { bytes }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn everything_around_an_edit_stays_as_it_is((before, after, encoding) in files(), lines in 1_usize..4) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let session = session().await;
            let file = [before.as_slice(), &encoded("OLD", encoding, false), &after].concat();
            session.put("file", &file);
            session.read("file").await.ok();
            let new = vec!["NEW"; lines].join("\n");
            session.call("Edit", json!({"file_path": "file", "old_string": "OLD", "new_string": new})).await.ok();
            let edited = session.get("file");
            let allowed = ["\n", "\r\n"].map(|line_break| {
                let new = encoded(&vec!["NEW"; lines].join(line_break), encoding, false);
                [before.as_slice(), &new, &after].concat()
            });
            assert!(allowed.contains(&edited), "{} -> {}", file.escape_ascii(), edited.escape_ascii());
        });
    }
}
