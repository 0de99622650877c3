//! Which places the file tools reach: cases 12 and 13 and their neighbours.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use peri_acp_types::ports::PathResolver as _;
use peri_mcp_servers::workspace::WorkspacePathResolver;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::support::{Opening, Session, session};

fn names(session: &Session) -> Vec<String> {
    std::fs::read_dir(&session.outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_link_that_leads_outside_is_refused_and_nothing_is_made() {
    let session = session().await;
    std::fs::write(session.outside.join("secret"), "s3cret\n").unwrap();
    symlink(&session.outside, session.root.join("out")).unwrap();
    symlink("out", session.root.join("out2")).unwrap();
    symlink(session.outside.join("secret"), session.root.join("file-out")).unwrap();
    symlink(session.outside.join("new"), session.root.join("dangling")).unwrap();
    let absolute = session.outside.join("x").to_str().unwrap().to_owned();
    for path in ["out/x", "out2/x", "out/deep/x", "../outside/x", "dangling", "~/x", "out/../ws2", &absolute] {
        let error = session.call("Write", json!({"file_path": path, "content": "x"})).await.error();
        assert!(error.contains("outside the workspace"), "{path}: {error}");
    }
    for path in ["out/secret", "file-out", "../outside/secret", "~/secret"] {
        for (tool, arguments) in [
            ("Read", json!({"file_path": path})),
            ("Edit", json!({"file_path": path, "old_string": "s", "new_string": "t"})),
            ("Grep", json!({"pattern": "s3cret", "path": path})),
        ] {
            let error = session.call(tool, arguments).await.error();
            assert!(error.contains("outside the workspace") && !error.contains("s3cret"), "{path}: {error}");
        }
    }
    for (tool, arguments) in [
        ("Glob", json!({"pattern": "*", "path": "out"})),
        ("Glob", json!({"pattern": format!("{}/*", session.outside.display())})),
        ("Grep", json!({"pattern": "s3cret", "path": ".."})),
    ] {
        session.call(tool, arguments).await.error();
    }
    assert_eq!(session.call("Grep", json!({"pattern": "s3cret"})).await.ok(), "[No matches in the working directory.]");
    assert_eq!(names(&session), ["secret"]);
}

#[tokio::test]
async fn links_inside_work_and_stay_links() {
    let session = session().await;
    session.put("real/a.txt", "one\n");
    symlink("real", session.root.join("link")).unwrap();
    symlink("a.txt", session.root.join("real/alias.txt")).unwrap();
    session.read("link/alias.txt").await.ok();
    let edit = json!({"file_path": "link/alias.txt", "old_string": "one", "new_string": "two"});
    session.call("Edit", edit).await.ok();
    assert_eq!(session.get("real/a.txt"), b"two\n");
    assert!(session.root.join("real/alias.txt").is_symlink());
    session.call("Write", json!({"file_path": "link/new/b.txt", "content": "b"})).await.ok();
    assert_eq!(session.get("real/new/b.txt"), b"b");
    // A file is one file by whatever name it was read.
    session.call("Write", json!({"file_path": "real/a.txt", "content": "three\n"})).await.ok();
}

#[tokio::test]
async fn a_workspace_that_is_a_link_works() {
    let session = Opening::default()
        .session_with_roots(|layout| {
            symlink(&layout.root, layout.base.join("ws-link")).unwrap();
            vec![layout.base.join("ws-link")]
        })
        .await;
    session.put("a.txt", "one\n");
    session.read("a.txt").await.ok();
    let by_link = session.root.parent().unwrap().join("ws-link/a.txt");
    session.read(by_link.to_str().unwrap()).await.ok();
    session.call("Write", json!({"file_path": by_link, "content": "two\n"})).await.ok();
    assert_eq!(session.get("a.txt"), b"two\n");
    assert_eq!(session.bash("pwd -P").await.ok(), session.root.to_str().unwrap());
}

#[tokio::test]
async fn every_root_is_inside_and_relative_paths_start_at_the_first() {
    let session =
        Opening::default().session_with_roots(|layout| vec![layout.root.clone(), layout.outside.clone()]).await;
    session.call("Write", json!({"file_path": "a.txt", "content": "first"})).await.ok();
    assert_eq!(session.get("a.txt"), b"first");
    let second = session.outside.join("b.txt");
    session.call("Write", json!({"file_path": second, "content": "second"})).await.ok();
    assert_eq!(
        session.call("Glob", json!({"pattern": "*", "path": session.outside})).await.ok(),
        second.to_str().unwrap()
    );
    assert_eq!(session.call("Grep", json!({"pattern": "second", "path": "~"})).await.ok(), second.to_str().unwrap());
}

#[tokio::test]
async fn a_grant_opens_a_place_for_one_call() {
    let session = session().await;
    let file = session.outside.join("granted.txt");
    let write = json!({"file_path": file, "content": "x\n"});
    session.call("Write", write.clone()).await.error();
    session.call_granting("Write", write.clone(), &[&file]).await.ok();
    assert_eq!(std::fs::read(&file).unwrap(), b"x\n");
    session.read(file.to_str().unwrap()).await.error();
    session.call_granting("Read", json!({"file_path": "~/granted.txt"}), &[&session.outside]).await.ok();
    // The name's beginning is no grant, nor is a link to what lies elsewhere.
    let neighbour = session.outside.join("granted.txt.bak");
    session.call_granting("Write", json!({"file_path": neighbour, "content": "x"}), &[&file]).await.error();
    symlink("/etc/hostname", session.outside.join("link")).unwrap();
    let link = session.outside.join("link");
    session.call_granting("Read", json!({"file_path": link}), &[&session.outside]).await.error();
    let found =
        session.call_granting("Grep", json!({"pattern": "x", "path": session.outside}), &[&session.outside]).await;
    assert_eq!(found.ok(), file.to_str().unwrap());
}

#[tokio::test]
async fn paths_that_lead_nowhere_are_explained() {
    let session = session().await;
    session.put("file", "x");
    symlink("b", session.root.join("a")).unwrap();
    symlink("a", session.root.join("b")).unwrap();
    for (path, expected) in [
        ("", "the path is empty"),
        ("a", "links lead in a circle"),
        ("none/../x", "`..` follows a directory that does not exist"),
        ("file/x", "is not a directory"),
        ("nul\0", "nul"),
        (&"x".repeat(300), "too long"),
    ] {
        let error = session.call("Write", json!({"file_path": path, "content": "x"})).await.error();
        assert!(error.contains(expected), "{path:?}: {error}");
    }
}

#[tokio::test]
async fn the_resolver_judges_paths_as_the_tools_do() {
    let session = session().await;
    session.put("dir/a.txt", "");
    symlink(&session.outside, session.root.join("out")).unwrap();
    symlink(&session.root, session.outside.join("ws-link")).unwrap();
    let (root, outside) = (session.root.to_str().unwrap(), session.outside.to_str().unwrap());
    let resolver = WorkspacePathResolver::new(Some(session.outside.clone()), vec![session.outside.join("spill")]);
    std::fs::create_dir(session.outside.join("spill")).unwrap();
    for (path, is_directory) in [("dir", true), ("out", true), ("dir/a.txt", false), ("none", false)] {
        let path = session.root.join(path);
        assert_eq!(resolver.is_directory(path.to_str().unwrap()).await, is_directory, "{path:?}");
    }
    for (path, expected, inside) in [
        ("dir/a.txt", format!("{root}/dir/a.txt"), true),
        ("dir/../new/x", format!("{root}/new/x"), true),
        ("out/x", format!("{outside}/x"), false),
        ("../outside", outside.to_owned(), false),
        ("~", outside.to_owned(), false),
        ("~/x", format!("{outside}/x"), false),
        ("~/spill/bash_1.txt", format!("{outside}/spill/bash_1.txt"), true),
        ("~x", format!("{root}/~x"), true),
        ("none/../../etc", format!("{root}/none/../../etc"), false),
        ("/etc/../etc", "/etc".to_owned(), false),
    ] {
        let link = format!("{outside}/ws-link");
        for root in [root, link.as_str()] {
            let resolved = resolver.resolve(&[root.to_owned()], session.root.to_str().unwrap(), path).await;
            assert_eq!((resolved.path.as_str(), resolved.inside), (expected.as_str(), inside), "{path}");
        }
    }
}

#[tokio::test]
async fn swapping_a_directory_for_a_link_never_leads_a_write_outside() {
    let session = session().await;
    let (dir, link) = (session.root.join("dir"), session.root.join("link"));
    std::fs::create_dir(&dir).unwrap();
    symlink(&session.outside, &link).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = stop.clone();
        move || {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    for number in 0..300 {
        session.call("Write", json!({"file_path": format!("dir/{number}"), "content": "x"})).await;
        session.call("Read", json!({"file_path": format!("dir/{number}")})).await;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(names(&session), Vec::<String>::new());
}
