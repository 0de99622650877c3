//! Trust is for the files as they were shown, and for nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use futures::executor::block_on;
use peri_acp_types::ports::{ConfigPlace, ConfigSource, TrustState, TrustStore, TrustVerdict};
use peri_mcp_servers::config::{FileTrustStore, PeriDirs};

use super::Machine;

fn verdict(machine: &Machine) -> TrustVerdict {
    block_on(machine.trust.verdict(&machine.root())).unwrap()
}

fn trust(machine: &Machine) {
    let digest = verdict(machine).digest;
    block_on(machine.trust.grant(&machine.root(), &digest)).unwrap();
    assert_eq!(verdict(machine).state, TrustState::Trusted);
}

fn write_local(machine: &Machine, text: &str) {
    let place = ConfigPlace::WorkspaceLocal { root: machine.root() };
    let revision = block_on(machine.source.read(&place)).unwrap().map(|document| document.revision);
    block_on(machine.source.write(&place, revision.as_ref(), text.into())).unwrap();
}

#[test]
fn a_workspace_without_settings_needs_no_trust() {
    let machine = Machine::new();
    machine.put("ws/src/main.rs", "fn main() {}");
    machine.put("ws/.claude/CLAUDE.md", "hello");
    fs::create_dir(machine.path("ws/.peri")).unwrap();
    // Not even a damaged record matters then.
    machine.put("home/data/trust.json", "{");
    let found = verdict(&machine);
    assert_eq!(found.state, TrustState::NothingToTrust);
    assert_eq!(found.files, Vec::<String>::new());
}

#[test]
fn the_files_that_need_trust_are_named() {
    let machine = Machine::new();
    let names = [
        "ws/.claude/settings.json",
        "ws/.claude/settings.local.json",
        "ws/.mcp.json",
        "ws/.peri/agents/deep/a.md",
        "ws/.peri/settings.json",
        "ws/.peri/settings.local.json",
    ];
    for name in names {
        machine.put(name, "{}");
    }
    machine.put("ws/.claude/commands.md", "");
    let found = verdict(&machine);
    assert_eq!(found.state, TrustState::Untrusted);
    let root = fs::canonicalize(machine.path("ws")).unwrap();
    assert_eq!(found.root, root.display().to_string());
    let expect = names.map(|name| root.join(name.strip_prefix("ws/").unwrap()).display().to_string());
    assert_eq!(found.files, expect);
}

#[test]
fn any_change_voids_trust_and_its_undoing_restores_it() {
    type Act<'a> = &'a dyn Fn(&Machine);
    let changes: [(&str, Act<'_>, Act<'_>); 6] = [
        ("a byte", &|m| drop(m.put("ws/.peri/settings.json", "{ }")), &|m| drop(m.put("ws/.peri/settings.json", "{}"))),
        ("a new file", &|m| drop(m.put("ws/.mcp.json", "{}")), &|m| fs::remove_file(m.path("ws/.mcp.json")).unwrap()),
        ("a script", &|m| drop(m.put("ws/.peri/x.sh", "rm")), &|m| drop(m.put("ws/.peri/x.sh", "ls"))),
        ("a name", &|m| fs::rename(m.path("ws/.peri/x.sh"), m.path("ws/.peri/y.sh")).unwrap(), &|m| {
            fs::rename(m.path("ws/.peri/y.sh"), m.path("ws/.peri/x.sh")).unwrap()
        }),
        ("a removal", &|m| fs::remove_file(m.path("ws/.peri/x.sh")).unwrap(), &|m| drop(m.put("ws/.peri/x.sh", "ls"))),
        ("what a link leads to", &|m| drop(m.put("elsewhere.json", "changed")), &|m| {
            drop(m.put("elsewhere.json", "as it was"))
        }),
    ];
    let machine = Machine::new();
    machine.put("ws/.peri/settings.json", "{}");
    machine.put("ws/.peri/x.sh", "ls");
    machine.put("elsewhere.json", "as it was");
    machine.link("ws/.peri/linked.json", machine.path("elsewhere.json"));
    trust(&machine);
    for (what, change, undo) in changes {
        change(&machine);
        assert_eq!(verdict(&machine).state, TrustState::Changed, "{what}");
        undo(&machine);
        assert_eq!(verdict(&machine).state, TrustState::Trusted, "{what}");
    }
}

#[test]
fn bytes_that_wander_between_name_and_content_are_a_change() {
    let digest_of = |name: &str, text: &str| {
        let machine = Machine::new();
        machine.put(&format!("ws/.peri/{name}"), text);
        verdict(&machine).digest
    };
    assert_ne!(digest_of("ab", "c"), digest_of("a", "bc"));
    assert_ne!(digest_of("a", ""), digest_of("b", ""));
    assert_eq!(digest_of("a", "b"), digest_of("a", "b"));
}

#[test]
fn only_what_was_shown_can_be_trusted() {
    let machine = Machine::new();
    machine.put("ws/.peri/settings.json", "{}");
    let shown = verdict(&machine).digest;
    machine.put("ws/.peri/settings.json", "{\"x\": 1}");
    let error = block_on(machine.trust.grant(&machine.root(), &shown)).unwrap_err();
    assert!(error.contains("changed since they were shown"), "{error}");
    assert_eq!(verdict(&machine).state, TrustState::Untrusted);
}

#[test]
fn trust_is_for_the_real_folder_and_lasts() {
    let machine = Machine::new();
    machine.put("ws/.peri/settings.json", "{}");
    machine.link("way", machine.path("ws"));
    let way = machine.path("way").display().to_string();
    let digest = block_on(machine.trust.verdict(&way)).unwrap().digest;
    block_on(machine.trust.grant(&way, &digest)).unwrap();
    assert_eq!(verdict(&machine).state, TrustState::Trusted);
    // A copy elsewhere is another workspace.
    machine.put("copy/.peri/settings.json", "{}");
    let copy = machine.path("copy").display().to_string();
    assert_eq!(block_on(machine.trust.verdict(&copy)).unwrap().state, TrustState::Untrusted);
    // Another process reads the same record; nobody else may.
    let again = FileTrustStore::new(&PeriDirs::below(&machine.path("home")));
    assert_eq!(block_on(again.verdict(&machine.root())).unwrap().state, TrustState::Trusted);
    let mode = |name: &str| fs::metadata(machine.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("home/data/trust.json"), mode("home/data")), (0o600, 0o700));
}

#[test]
fn a_damaged_record_trusts_nothing_and_is_kept() {
    let machine = Machine::new();
    machine.put("ws/.peri/settings.json", "{}");
    for (record, expect) in [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("", "is damaged"),
        ("{\"version\": 2, \"workspaces\": {}}", "newer Peri (version 2)"),
    ] {
        machine.put("home/data/trust.json", record);
        let error = block_on(machine.trust.verdict(&machine.root())).unwrap_err();
        assert!(error.contains(expect), "{error}");
        assert!(block_on(machine.trust.grant(&machine.root(), "x")).is_err());
        assert_eq!(fs::read_to_string(machine.trust.file()).unwrap(), record);
    }
}

#[test]
fn grants_at_once_are_all_kept() {
    let machine = Machine::new();
    let roots: Vec<String> = (0..12)
        .map(|index| {
            machine.put(&format!("many/{index}/.peri/settings.json"), "{}");
            machine.path(&format!("many/{index}")).display().to_string()
        })
        .collect();
    std::thread::scope(|scope| {
        for root in &roots {
            let trust = &machine.trust;
            scope.spawn(move || {
                let digest = block_on(trust.verdict(root)).unwrap().digest;
                block_on(trust.grant(root, &digest)).unwrap();
            });
        }
    });
    for root in &roots {
        assert_eq!(block_on(machine.trust.verdict(root)).unwrap().state, TrustState::Trusted, "{root}");
    }
}

#[test]
fn a_write_of_peris_own_keeps_trust() {
    let machine = Machine::new();
    machine.put("ws/.peri/settings.json", "{}");
    trust(&machine);
    write_local(&machine, "{\"permissions\": {\"allow\": [\"Read\"]}}");
    assert_eq!(verdict(&machine).state, TrustState::Trusted);
    write_local(&machine, "{}");
    assert_eq!(verdict(&machine).state, TrustState::Trusted);
    // The same bytes from another hand would have been a change.
    machine.put("ws/.peri/settings.local.json", "{\"permissions\": {}}");
    assert_eq!(verdict(&machine).state, TrustState::Changed);
}

#[test]
fn a_write_of_peris_own_makes_no_trust_in_other_files() {
    let check = |prepare: &dyn Fn(&Machine), expect: TrustState| {
        let machine = Machine::new();
        prepare(&machine);
        write_local(&machine, "{\"permissions\": {}}");
        assert_eq!(verdict(&machine).state, expect);
    };
    // The first file there is, and Peri's.
    check(&|_| {}, TrustState::Trusted);
    check(&|machine| drop(machine.put("ws/.peri/settings.json", "{}")), TrustState::Untrusted);
    check(&|machine| drop(machine.put("ws/.mcp.json", "{}")), TrustState::Untrusted);
    check(&|machine| drop(machine.put("ws/.peri/settings.local.json", "{}")), TrustState::Untrusted);
    check(
        &|machine| {
            machine.put("ws/.peri/settings.json", "{}");
            trust(machine);
            machine.put("ws/.peri/settings.json", "{\"x\": 1}");
        },
        TrustState::Changed,
    );
}

#[test]
fn what_cannot_be_seen_whole_cannot_be_trusted() {
    let check = |prepare: &dyn Fn(&Machine), expect: &str| {
        let machine = Machine::new();
        prepare(&machine);
        let error = block_on(machine.trust.verdict(&machine.root())).unwrap_err();
        assert!(error.contains(expect), "{error}");
    };
    check(
        &|machine| (0..1001).for_each(|index| drop(machine.put(&format!("ws/.peri/{index}"), ""))),
        "more than 1000 files",
    );
    check(&|machine| drop(machine.put("ws/.peri/big", vec![0; (16 << 20) + 1])), "cannot be vouched for");
    check(&|machine| drop(machine.put(&format!("ws/.peri/{}x", "d/".repeat(20)), "")), "too deep");
    check(&|machine| fs::remove_dir(machine.path("ws")).unwrap(), "No such file");
}

#[test]
fn odd_trees_are_hashed_without_waiting() {
    let machine = Machine::new();
    machine.put("ws/.peri/sub/file", "x");
    machine.link("ws/.peri/sub/circle", "..");
    machine.link("ws/.peri/nowhere", "/does/not/exist");
    let pipe = machine.path("ws/.peri/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(verdict(&machine).files.len(), 3);
    trust(&machine);
    fs::remove_file(machine.path("ws/.peri/nowhere")).unwrap();
    machine.link("ws/.peri/nowhere", "/does/not/exist/either");
    assert_eq!(verdict(&machine).state, TrustState::Changed);
}

#[test]
fn peris_own_data_below_a_workspace_is_none_of_its_files() {
    let machine = Machine::new();
    machine.put("ws/.peri/settings.json", "{}");
    let trust = FileTrustStore::new(&PeriDirs::below(&machine.path("ws/.peri")));
    let root = machine.root();
    let digest = block_on(trust.verdict(&root)).unwrap().digest;
    block_on(trust.grant(&root, &digest)).unwrap();
    assert!(machine.path("ws/.peri/data/trust.json").is_file());
    assert_eq!(block_on(trust.verdict(&root)).unwrap().state, TrustState::Trusted);
}
