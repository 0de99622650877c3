//! Read: text of every kind, and what is no text.

use rmcp::model::ContentBlock;
use serde_json::json;

use crate::support::session;

#[tokio::test]
async fn lines_are_numbered_and_pages_say_how_to_go_on() {
    let session = session().await;
    session.put("a.txt", "one\n\n  three\nfour");
    assert_eq!(session.read("a.txt").await.ok(), "     1\tone\n     2\t\n     3\t  three\n     4\tfour\n");
    let page = session.call("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 2})).await;
    assert_eq!(page.ok(), "     2\t\n     3\t  three\n\n[Lines 2 to 3 of 4. Go on with offset 4.]");
    assert_eq!(page.details()["locations"][0]["line"], 2);
    let past = session.call("Read", json!({"file_path": "a.txt", "offset": 9})).await;
    assert_eq!(past.error(), "Cannot show a.txt: offset 9 is past the end: the file has 4 lines.");
    let text: String = (1..=2500).map(|number| format!("line {number}\n")).collect();
    session.put("long.txt", text);
    let page = session.read("long.txt").await.ok();
    assert!(page.ends_with("  2000\tline 2000\n\n[Lines 1 to 2000 of 2500. Go on with offset 2001.]"));
    session.put("empty", "");
    assert_eq!(session.read("empty").await.ok(), "[The file is empty.]");
}

#[tokio::test]
async fn encodings_are_shown_and_told() {
    let session = session().await;
    for (name, bytes, expected) in [
        (
            "bom",
            b"\xef\xbb\xbfa\n".to_vec(),
            "     1\ta\n\n[The file begins with a byte order mark; Edit and Write keep it.]",
        ),
        (
            "crlf",
            b"a\r\nb\r\n".to_vec(),
            "     1\ta\n     2\tb\n\n[Lines end in CRLF; Edit and Write keep that, send plain line breaks.]",
        ),
        (
            "mixed",
            b"a\r\nb\n".to_vec(),
            "     1\ta\n     2\tb\n\n[Some lines end in CRLF and some in LF; Edit leaves each as it is.]",
        ),
        ("utf16", b"\xff\xfeG\0\xfc\0\n\0".to_vec(), "     1\tGü\n\n[The file is UTF-16; Edit and Write keep that.]"),
        (
            "latin1",
            b"Gr\xfc\xdfe\n".to_vec(),
            "     1\tGrüße\n\n[The file is not valid UTF-8. Each byte is shown as the Latin-1 character of that number; Edit keeps the bytes.]",
        ),
    ] {
        session.put(name, bytes);
        assert_eq!(session.read(name).await.ok(), expected);
    }
}

#[tokio::test]
async fn what_is_no_text_file_is_refused_without_hanging() {
    let session = session().await;
    session.put("binary", b"\x7fELF\0\x01");
    session.put("src/main.rs", "");
    session.put("README.md", "");
    let fifo = std::process::Command::new("mkfifo").arg(session.root.join("fifo")).status().unwrap();
    assert!(fifo.success());
    let _socket = std::os::unix::net::UnixListener::bind(session.root.join("socket")).unwrap();
    for (path, expected) in [
        ("binary", "Cannot show binary: it is a binary file."),
        ("fifo", "Cannot read fifo: it is a named pipe, not a regular file."),
        ("socket", "Cannot read socket: it is a socket, not a regular file."),
        ("src", "src is a directory. It holds: main.rs."),
        ("readme.md", "readme.md does not exist. Did you mean README.md?"),
        ("src/mian.rs", "src/mian.rs does not exist. Did you mean src/main.rs?"),
        ("lib/x.rs", "lib/x.rs does not exist. There is no `lib` in the working directory."),
    ] {
        let error = session.read(path).await.error();
        assert!(error.starts_with(expected), "{error}");
    }
    let device = session.call_granting("Read", json!({"file_path": "/dev/zero"}), &["/dev/zero".as_ref()]).await;
    assert_eq!(device.error(), "Cannot read /dev/zero: it is a device, not a regular file.");
    for (tool, arguments) in [
        ("Write", json!({"file_path": "fifo", "content": "x"})),
        ("Edit", json!({"file_path": "fifo", "old_string": "x", "new_string": "y"})),
        ("Grep", json!({"pattern": "x", "path": "fifo"})),
    ] {
        let error = session.call(tool, arguments).await.error();
        assert!(error.contains("named pipe"), "{error}");
    }
}

#[tokio::test]
async fn images_are_shown_up_to_a_size() {
    let session = session().await;
    for (name, bytes, mime_type) in [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0".to_vec(), "image/png"),
        ("b.dat", b"\xff\xd8\xff\xe0".to_vec(), "image/jpeg"),
        ("c.gif", b"GIF89a\0".to_vec(), "image/gif"),
        ("d.webp", b"RIFF\0\0\0\0WEBPVP8 ".to_vec(), "image/webp"),
    ] {
        session.put(name, bytes);
        let reply = session.read(name).await;
        reply.ok();
        let [ContentBlock::Image(image)] = reply.result.content.as_slice() else { panic!("{:?}", reply.result) };
        assert_eq!(image.mime_type, mime_type);
    }
    let mut huge = b"\x89PNG\r\n\x1a\n".to_vec();
    huge.resize(4_000_000, 0);
    session.put("huge.png", huge);
    assert!(session.read("huge.png").await.error().contains("larger than 3750000 bytes"));
}

#[tokio::test]
async fn a_huge_file_is_paged_without_being_held() {
    let session = session().await;
    let path = session.put("huge.txt", "");
    let line = format!("{}\r\n", "0123456789".repeat(20));
    std::fs::write(&path, line.repeat(100_000)).unwrap();
    let page = session.call("Read", json!({"file_path": "huge.txt", "offset": 99_999, "limit": 1})).await.ok();
    assert!(page.starts_with(" 99999\t01234"), "{page}");
    assert!(page.contains("[Lines 99999 to 99999 of 100000. Go on with offset 100000.]"));
    assert!(page.ends_with("[The file is larger than 16 MiB: Edit and Write cannot change it.]"));
    let edit = json!({"file_path": "huge.txt", "old_string": "9", "new_string": "8"});
    assert_eq!(session.call("Edit", edit).await.error(), "Cannot edit huge.txt: it is larger than 16 MiB.");
    // One line of 17 MB.
    std::fs::write(&path, "x".repeat(17 << 20)).unwrap();
    let page = session.read("huge.txt").await.ok();
    assert!(page.len() < 3000 && page.contains("… [17823792 more bytes in this line]"), "{page}");
}
