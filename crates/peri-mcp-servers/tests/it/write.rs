//! Write: new files, known files, files it must leave alone.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use crate::support::session;

#[tokio::test]
async fn new_files_come_with_their_directories() {
    let session = session().await;
    let reply = session.call("Write", json!({"file_path": "a/b/c.txt", "content": "x\ny\n"})).await;
    assert_eq!(reply.ok(), "Created a/b/c.txt (2 lines).");
    assert_eq!(session.get("a/b/c.txt"), b"x\ny\n");
    let path = session.root.join("a/b/c.txt");
    assert_eq!(reply.details(), json!({"locations": [{"path": path}], "diffs": [{"path": path, "newText": "x\ny\n"}]}));
    // What was written is known.
    session.call("Write", json!({"file_path": "a/b/c.txt", "content": "z\n"})).await.ok();
    session.call("Edit", json!({"file_path": "a/b/c.txt", "old_string": "z", "new_string": "w"})).await.ok();
    assert_eq!(session.get("a/b/c.txt"), b"w\n");
    assert_eq!(std::fs::read_dir(session.root.join("a/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn an_existing_file_must_be_known_and_unchanged() {
    let session = session().await;
    session.put("a.txt", "old\n");
    let write = json!({"file_path": "a.txt", "content": "new\n"});
    let error = session.call("Write", write.clone()).await.error();
    assert_eq!(error, "a.txt has not been read in this session. Read it first, then write it.");
    session.read("a.txt").await.ok();
    session.put("a.txt", "changed\n");
    let error = session.call("Write", write.clone()).await.error();
    assert!(error.starts_with("a.txt has changed since it was last read."), "{error}");
    session.read("a.txt").await.ok();
    session.call("Write", write.clone()).await.ok();
    assert_eq!(session.get("a.txt"), b"new\n");
    assert!(session.call("Write", write).await.ok().contains("holds exactly that already"));
}

#[tokio::test]
async fn encoding_line_endings_and_mode_are_kept() {
    let session = session().await;
    let path = session.put("a.sh", b"\xef\xbb\xbfa\r\nb\r\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    session.read("a.sh").await.ok();
    let reply = session.call("Write", json!({"file_path": "a.sh", "content": "c\nd\n"})).await;
    assert_eq!(reply.ok(), "Wrote a.sh (2 lines). Its CRLF line endings were kept.");
    assert_eq!(session.get("a.sh"), b"\xef\xbb\xbfc\r\nd\r\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o751);
    session.put("b.txt", b"\xff");
    session.read("b.txt").await.ok();
    assert!(
        session
            .call("Write", json!({"file_path": "b.txt", "content": "€"}))
            .await
            .ok()
            .contains("not UTF-8 before and is now")
    );
    assert_eq!(session.get("b.txt"), "€".as_bytes());
}

#[tokio::test]
async fn directories_are_no_files() {
    let session = session().await;
    std::fs::create_dir(session.root.join("dir")).unwrap();
    for path in ["dir", ".", "dir/"] {
        let error = session.call("Write", json!({"file_path": path, "content": "x"})).await.error();
        assert!(error.contains("is a directory"), "{error}");
    }
}
