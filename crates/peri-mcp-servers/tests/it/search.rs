//! Glob and Grep: cases 11 and 13 and their neighbours.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::{Session, session};

/// A tree with everything that is to be skipped and everything that is not.
async fn tree() -> Session {
    let session = session().await;
    session.put(".gitignore", "target/\n*.log\nbuild/**\n");
    session.put("src/main.rs", "fn main() {\n    needle();\n}\n");
    session.put("src/deep/lib.rs", "// needle\n");
    session.put(".github/ci.yml", "needle: 1\n");
    session.put("target/out.rs", "needle\n");
    session.put("build/out.rs", "needle\n");
    session.put("run.log", "needle\n");
    session.put(".git/config", "needle\n");
    session.put("node/.git", "gitdir: needle\n");
    session.put("binary.bin", b"needle\0needle\n");
    session
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[tokio::test]
async fn ignored_files_and_git_are_skipped_hidden_ones_are_not() {
    let session = tree().await;
    for in_repository in [false, true] {
        if in_repository {
            session.put(".git/HEAD", "ref: refs/heads/main\n");
        } else {
            std::fs::remove_dir_all(session.root.join(".git")).unwrap();
        }
        let found = session.call("Grep", json!({"pattern": "needle"})).await.ok();
        assert_eq!(lines(&found), [".github/ci.yml", "src/deep/lib.rs", "src/main.rs"], "{in_repository}");
        let found = session.call("Glob", json!({"pattern": "**/*.{rs,yml,log}"})).await.ok();
        let mut found = lines(&found);
        found.sort();
        assert_eq!(found, [".github/ci.yml", "src/deep/lib.rs", "src/main.rs"]);
    }
}

#[tokio::test]
async fn what_is_named_is_searched_even_if_ignored() {
    let session = tree().await;
    let grep = |path: &'static str| session.call("Grep", json!({"pattern": "needle", "path": path}));
    assert_eq!(grep("run.log").await.ok(), "run.log");
    assert_eq!(grep("target").await.ok(), "target/out.rs");
    assert_eq!(grep("build").await.ok(), "build/out.rs");
    assert_eq!(grep(".git").await.ok(), ".git/config");
    assert_eq!(grep("target/out.rs").await.ok(), "target/out.rs");
    assert_eq!(session.call("Glob", json!({"pattern": "*", "path": "build"})).await.ok(), "build/out.rs");
    // In a directory that is not ignored, the rules from above hold.
    session.put("src/x.log", "needle\n");
    assert_eq!(lines(&grep("src").await.ok()), ["src/deep/lib.rs", "src/main.rs"]);
    assert_eq!(grep("binary.bin").await.error(), "Cannot search binary.bin: it is a binary file.");
    assert_eq!(grep("none").await.error(), "none does not exist.");
}

#[tokio::test]
async fn ignore_files_above_count_in_a_repository_only() {
    let session = session().await;
    let above = session.root.parent().unwrap().join(".gitignore");
    std::fs::write(&above, "*\n").unwrap();
    session.put("a.txt", "needle\n");
    assert_eq!(session.call("Grep", json!({"pattern": "needle"})).await.ok(), "a.txt");
    std::fs::create_dir(session.root.parent().unwrap().join(".git")).unwrap();
    assert_eq!(session.call("Grep", json!({"pattern": "needle"})).await.ok(), "[No matches in the working directory.]");
}

#[tokio::test]
async fn glob_patterns_mean_what_they_say_and_the_newest_comes_first() {
    let session = session().await;
    let start = SystemTime::now() - Duration::from_secs(1000);
    for (age, name) in [(3, "b.rs"), (1, "src/a.rs"), (2, "src/deep/c.rs"), (4, "[x].rs")].into_iter() {
        let path = session.put(name, "");
        std::fs::File::open(path).unwrap().set_modified(start - Duration::from_secs(age)).unwrap();
    }
    for (pattern, expected) in [
        ("*.rs", vec!["src/a.rs", "src/deep/c.rs", "b.rs", "[x].rs"]),
        ("/*.rs", vec![]),
        ("./*.rs", vec!["src/a.rs", "src/deep/c.rs", "b.rs", "[x].rs"]),
        ("src/*.rs", vec!["src/a.rs"]),
        ("src/**", vec!["src/a.rs", "src/deep/c.rs"]),
        ("**/c.rs", vec!["src/deep/c.rs"]),
        ("\\[x\\].rs", vec!["[x].rs"]),
        ("{b,c}.rs", vec!["src/deep/c.rs", "b.rs"]),
    ] {
        let reply = session.call("Glob", json!({"pattern": pattern})).await;
        if expected.is_empty() {
            reply.error()
        } else {
            assert_eq!(lines(&reply.ok()), expected, "{pattern}");
            String::new()
        };
    }
    let absolute = session.call("Glob", json!({"pattern": session.root.join("*.rs")})).await.ok();
    assert_eq!(lines(&absolute), ["b.rs", "[x].rs"]);
    for (arguments, expected) in [
        (json!({"pattern": "a[", }), "`a[` is not a glob pattern"),
        (json!({"pattern": ""}), "empty"),
        (json!({"pattern": "../*"}), "holds `..`"),
        (json!({"pattern": "*", "path": "b.rs"}), "b.rs is not a directory."),
        (json!({"pattern": "*", "path": "none"}), "none does not exist."),
    ] {
        let error = session.call("Glob", arguments).await.error();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(
        session.call("Glob", json!({"pattern": "*.py"})).await.ok(),
        "No file matches `*.py` in the working directory."
    );
}

#[tokio::test]
async fn many_files_are_bounded_and_the_same_every_time() {
    let session = session().await;
    let start = SystemTime::now() - Duration::from_secs(10_000);
    for number in 0..400 {
        let path = session.put(&format!("d{}/f{number:03}.txt", number % 7), "needle\n");
        std::fs::File::open(path).unwrap().set_modified(start - Duration::from_secs(number)).unwrap();
    }
    let found = session.call("Glob", json!({"pattern": "*.txt"})).await.ok();
    assert_eq!(lines(&found).len(), 251);
    assert_eq!(lines(&found)[..2], ["d0/f000.txt", "d1/f001.txt"]);
    assert!(found.ends_with("[400 files match; these are the newest 250. Narrow the pattern.]"));
    let first = session.call("Grep", json!({"pattern": "needle", "head_limit": 10})).await.ok();
    assert_eq!(lines(&first)[..2], ["d0/f000.txt", "d0/f007.txt"]);
    assert_eq!(lines(&first).len(), 11);
    assert!(first.ends_with("[There is more than is shown here. Narrow the search, or raise head_limit.]"));
    for _ in 0..10 {
        assert_eq!(session.call("Grep", json!({"pattern": "needle", "head_limit": 10})).await.ok(), first);
    }
    let all = session.call("Grep", json!({"pattern": "needle", "output_mode": "count", "head_limit": 0})).await.ok();
    assert_eq!(lines(&all).len(), 400);
}

#[tokio::test]
async fn content_has_numbers_and_context() {
    let session = session().await;
    session.put("a.txt", "1\n2\nneedle 3\r\n4\n5\n6\n7\nNEEDLE 8\n9\n");
    session.put("b.txt", "needle\n");
    let grep = |mut more: serde_json::Value| {
        more["pattern"] = json!("needle");
        more["output_mode"] = json!("content");
        session.call("Grep", more)
    };
    assert_eq!(grep(json!({})).await.ok(), "a.txt:3:needle 3\nb.txt:1:needle");
    assert_eq!(grep(json!({"-n": false, "-i": true, "path": "a.txt"})).await.ok(), "a.txt:needle 3\na.txt:NEEDLE 8");
    assert_eq!(
        grep(json!({"-C": 1, "-i": true})).await.ok(),
        "a.txt-2-2\na.txt:3:needle 3\na.txt-4-4\n--\na.txt-7-7\na.txt:8:NEEDLE 8\na.txt-9-9\n--\nb.txt:1:needle"
    );
    assert_eq!(grep(json!({"-A": 1, "glob": "a.*"})).await.ok(), "a.txt:3:needle 3\na.txt-4-4");
    assert_eq!(
        grep(json!({"-B": 1, "head_limit": 1})).await.ok(),
        "a.txt-2-2\n[There is more than is shown here. Narrow the search, or raise head_limit.]"
    );
    let details = grep(json!({})).await.details();
    assert_eq!(details["locations"][0], json!({"path": session.root.join("a.txt"), "line": 3}));
    let counts = session.call("Grep", json!({"pattern": "(?i)needle", "output_mode": "count"})).await.ok();
    assert_eq!(counts, "a.txt:2\nb.txt:1");
    // `$` stands before CRLF too.
    assert_eq!(session.call("Grep", json!({"pattern": "needle 3$"})).await.ok(), "a.txt");
}

#[tokio::test]
async fn types_globs_and_lines_together() {
    let session = session().await;
    session.put("a.rs", "struct A {\n    field: u32,\n}\n");
    session.put("b.py", "class A:\n    field = 1\n");
    session.put("utf16.txt", b"\xff\xfef\0i\0e\0l\0d\0\n\0");
    let grep = |arguments| session.call("Grep", arguments);
    assert_eq!(grep(json!({"pattern": "field", "type": "rust"})).await.ok(), "a.rs");
    assert_eq!(grep(json!({"pattern": "field", "glob": "*.{py,txt}"})).await.ok(), "b.py\nutf16.txt");
    let across = json!({"pattern": "struct A \\{.*?field", "multiline": true, "output_mode": "content"});
    assert_eq!(grep(across).await.ok(), "a.rs:1:struct A {\na.rs:2:    field: u32,");
    for (arguments, expected) in [
        (json!({"pattern": "A \\{\\n", }), "set multiline to true"),
        (json!({"pattern": "foo("}), "put a backslash before"),
        (json!({"pattern": "(?=x)"}), "no look-around"),
        (json!({"pattern": "(\\w{1000}){1000}"}), "size limit"),
        (json!({"pattern": "x", "type": "klingon"}), "There is no file type `klingon`"),
        (json!({"pattern": "x", "glob": "["}), "is not a glob pattern"),
    ] {
        let error = grep(arguments).await.error();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn long_lines_and_long_results_are_capped() {
    let session = session().await;
    let line = format!("{}needle{}\n", "x".repeat(2_500_000), "y".repeat(2_500_000));
    session.put("min.js", line.repeat(2));
    let found = session.call("Grep", json!({"pattern": "needle", "output_mode": "content"})).await.ok();
    assert!(
        found.len() < 1500 && found.contains("xxxneedleyyy") && found.starts_with("min.js:1:[…2499880 bytes…]x"),
        "{found}"
    );
    session.put("many.txt", "needle in a line of some length, again and again\n".repeat(100_000));
    let found =
        session.call("Grep", json!({"pattern": "needle", "output_mode": "content", "head_limit": 0})).await.ok();
    assert!(found.len() < 41_000, "{}", found.len());
    assert!(found.ends_with("raise head_limit.]"));
    // A line that no buffer may hold.
    session.put("monster", "z".repeat(40 << 20));
    let found = session.call("Grep", json!({"pattern": "needle$", "glob": "monster"})).await.ok();
    assert!(found.contains("1 files were left out: a line of it"), "{found}");
}

#[tokio::test]
async fn names_of_every_kind_are_found() {
    let session = session().await;
    let odd = session.root.join(OsStr::from_bytes(b"od\xffd.txt"));
    std::fs::write(odd, "needle\n").unwrap();
    session.put("new\nline.txt", "needle\n");
    session.put("größe 🦀.txt", "needle\n");
    let found = session.call("Grep", json!({"pattern": "needle"})).await.ok();
    assert_eq!(lines(&found), ["größe 🦀.txt", "new\\nline.txt", "od\u{fffd}d.txt"]);
    assert_eq!(lines(&session.call("Glob", json!({"pattern": "*.txt"})).await.ok()).len(), 3);
}

#[tokio::test]
async fn a_search_that_is_cancelled_stops() {
    let session = session().await;
    // Sparse, so that it costs nothing; ten gibibytes of one line, so that nobody waits for it by mistake.
    let huge = std::fs::File::create(session.root.join("huge")).unwrap();
    huge.set_len(10 << 30).unwrap();
    let call = session.start("Read", json!({"file_path": "huge"}), &[]).await;
    call.cancel(Some("enough".to_owned())).await.unwrap();
    let call = session.start("Grep", json!({"pattern": "needle", "path": "huge"}), &[]).await;
    call.cancel(None).await.unwrap();
    session.put("a", "needle\n");
    assert_eq!(session.call("Grep", json!({"pattern": "needle", "path": "a"})).await.ok(), "a");
    session.close().await;
}

#[tokio::test]
async fn what_a_rule_denies_is_left_out_of_every_search() {
    let session = session().await;
    session.put(".env", "needle\n");
    session.put("deep/.env", "needle\n");
    session.put("secret/x", "needle\n");
    session.put("open/x", "needle\n");
    let secret = format!("{}/secret", session.root.display());
    let below = format!("{secret}/**");
    let hidden = ["**/.env", "**/.env/**", secret.as_str(), below.as_str()];
    for (tool, arguments) in [
        ("Grep", json!({"pattern": "needle"})),
        ("Grep", json!({"pattern": "needle", "output_mode": "content", "path": "."})),
        ("Grep", json!({"pattern": "needle", "glob": "**/*"})),
        ("Glob", json!({"pattern": "**"})),
    ] {
        let found = session.call_hiding(tool, arguments.clone(), &hidden).await.ok();
        assert!(
            found.contains("open/x") && !found.contains(".env") && !found.contains("secret"),
            "{tool} {arguments}: {found}"
        );
    }
    let refused = session.call_hiding("Grep", json!({"pattern": "needle"}), &["["]).await;
    assert!(refused.error().contains("hides"), "what cannot be understood hides everything");
}
