//! Documents in files: bounded reading, compare-and-swap.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use futures::executor::block_on;
use peri_acp_types::ports::{ConfigDocument, ConfigPlace, ConfigSource, ConfigSourceError};

use super::Machine;

fn read(machine: &Machine, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
    block_on(machine.source.read(place))
}

/// Writes over what is there now.
fn write(machine: &Machine, place: &ConfigPlace, text: &str) -> Result<(), ConfigSourceError> {
    let revision = read(machine, place)?.map(|document| document.revision);
    block_on(machine.source.write(place, revision.as_ref(), text.into())).map(drop)
}

fn local(machine: &Machine) -> ConfigPlace {
    ConfigPlace::WorkspaceLocal { root: machine.root() }
}

fn mode_of(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn each_place_is_its_file() {
    let machine = Machine::new();
    let root = machine.root();
    let places = [
        (ConfigPlace::User, "home/settings.json"),
        (ConfigPlace::Workspace { root: root.clone() }, "ws/.peri/settings.json"),
        (ConfigPlace::WorkspaceLocal { root: root.clone() }, "ws/.peri/settings.local.json"),
        (ConfigPlace::WorkspaceMcp { root }, "ws/.mcp.json"),
        (ConfigPlace::File { path: machine.path("x.json").display().to_string() }, "x.json"),
    ];
    for (place, file) in places {
        assert_eq!(read(&machine, &place), Ok(None), "{file}");
        let path = machine.put(file, file);
        let found = read(&machine, &place).unwrap().unwrap();
        assert_eq!((found.bytes, found.origin), (file.as_bytes().to_vec(), path.display().to_string()));
        assert_eq!(machine.source.path_of(&place), path);
    }
    assert_eq!(machine.source.env("A").as_deref(), Some("1"));
    assert_eq!(machine.source.env("HOME"), None);
}

#[test]
fn what_is_no_readable_file_is_named() {
    let machine = Machine::new();
    let root = machine.root();
    for (place, name) in [
        (ConfigPlace::Workspace { root: root.clone() }, "ws/.peri/settings.json"),
        (local(&machine), "ws/.peri/settings.local.json"),
        (ConfigPlace::WorkspaceMcp { root }, "ws/.mcp.json"),
    ] {
        let check = |expect: &str| {
            let error = read(&machine, &place).unwrap_err();
            let path = machine.source.path_of(&place);
            assert_eq!(error.to_string(), format!("cannot read {}: {expect}", path.display()));
        };
        let path = machine.put(name, vec![b' '; (1 << 20) + 1]);
        check("it is larger than 1048576 bytes");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        check("it is not a regular file");
        fs::remove_dir(&path).unwrap();
        // Opening a pipe that nobody writes to must not wait.
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        check("it is not a regular file");
        fs::remove_file(&path).unwrap();
        machine.link(name, "/dev/zero");
        check("it is not a regular file");
        fs::remove_file(&path).unwrap();
        // A link that leads nowhere, or in a circle, is no document.
        machine.link(name, "/does/not/exist");
        assert_eq!(read(&machine, &place), Ok(None));
        fs::remove_file(&path).unwrap();
        machine.link(name, &path);
        assert!(read(&machine, &place).is_err());
    }
}

#[test]
fn a_file_where_a_folder_should_be_holds_no_settings() {
    let machine = Machine::new();
    machine.put("ws/.peri", "x");
    assert_eq!(read(&machine, &local(&machine)), Ok(None));
}

#[test]
fn the_user_may_name_what_is_no_regular_file() {
    let machine = Machine::new();
    let place = ConfigPlace::File { path: "/dev/null".to_owned() };
    assert_eq!(read(&machine, &place).unwrap().unwrap().bytes, b"");
    let place = ConfigPlace::File { path: "/dev/zero".to_owned() };
    assert!(read(&machine, &place).is_err());
}

#[test]
fn a_write_makes_what_is_missing_and_keeps_it_private() {
    let machine = Machine::new();
    write(&machine, &local(&machine), "{}").unwrap();
    assert_eq!(mode_of(&machine.path("ws/.peri/settings.local.json")), 0o600);
    write(&machine, &ConfigPlace::User, "{}").unwrap();
    assert_eq!(mode_of(&machine.path("home")), 0o700);
    let names: Vec<_> =
        fs::read_dir(machine.path("ws/.peri")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["settings.local.json"], "nothing else is left behind");
}

#[test]
fn a_write_keeps_the_mode_and_follows_the_users_link() {
    let machine = Machine::new();
    let real = machine.put("dotfiles/peri.json", "{}");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    machine.link("home/settings.json", &real);
    write(&machine, &ConfigPlace::User, "{\"a\": 1}").unwrap();
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\"a\": 1}");
    assert_eq!(mode_of(&real), 0o640);
    assert!(machine.path("home/settings.json").is_symlink());
}

#[test]
fn a_write_over_other_bytes_than_were_seen_is_refused() {
    let machine = Machine::new();
    let place = local(&machine);
    write(&machine, &place, "one").unwrap();
    let seen = read(&machine, &place).unwrap().unwrap().revision;
    write(&machine, &place, "two").unwrap();
    for expected in [None, Some(&seen)] {
        let error = block_on(machine.source.write(&place, expected, b"three".to_vec())).unwrap_err();
        assert!(matches!(error, ConfigSourceError::Changed { .. }), "{error}");
    }
    fs::remove_file(machine.path("ws/.peri/settings.local.json")).unwrap();
    let error = block_on(machine.source.write(&place, Some(&seen), b"three".to_vec())).unwrap_err();
    assert!(matches!(error, ConfigSourceError::Changed { .. }), "{error}");
    assert_eq!(read(&machine, &place), Ok(None));
}

#[test]
fn writers_at_once_lose_nothing() {
    let machine = Machine::new();
    let place = local(&machine);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (machine, place) = (&machine, &place);
            scope.spawn(move || {
                for count in 0..10 {
                    let line = format!("{writer}.{count}\n");
                    loop {
                        let document = read(machine, place).unwrap();
                        let old = document.as_ref().map(|document| document.bytes.clone()).unwrap_or_default();
                        let new = [old, line.clone().into_bytes()].concat();
                        let revision = document.map(|document| document.revision);
                        match block_on(machine.source.write(place, revision.as_ref(), new)) {
                            Ok(_) => break,
                            Err(ConfigSourceError::Changed { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let bytes = read(&machine, &place).unwrap().unwrap().bytes;
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 80);
}

#[test]
fn a_workspace_cannot_send_a_write_elsewhere() {
    let check = |prepare: &dyn Fn(&Machine), expect: &str| {
        let machine = Machine::new();
        let victim = machine.put("victim/settings.local.json", "{}");
        prepare(&machine);
        let error = write(&machine, &local(&machine), "{\"a\": 1}").unwrap_err();
        assert!(error.to_string().contains(expect), "{error}");
        assert_eq!(fs::read_to_string(victim).unwrap(), "{}");
    };
    let outside = "it leads out of the workspace";
    check(&|machine| machine.link("ws/.peri", machine.path("victim")), outside);
    check(&|machine| machine.link("ws/.peri/settings.local.json", machine.path("victim/settings.local.json")), outside);
    check(&|machine| machine.link("ws/.peri/settings.local.json", machine.path("victim/new")), "cannot be followed");

    let machine = Machine::new();
    let victim = machine.put("victim/mcp.json", "{}");
    machine.link("ws/.mcp.json", &victim);
    let place = ConfigPlace::WorkspaceMcp { root: machine.root() };
    assert!(write(&machine, &place, "{\"a\": 1}").unwrap_err().to_string().contains(outside));
    assert_eq!(fs::read_to_string(victim).unwrap(), "{}");
}

#[test]
fn a_workspace_that_is_a_link_itself_works() {
    let machine = Machine::new();
    machine.link("way", machine.path("ws"));
    let place = ConfigPlace::WorkspaceLocal { root: machine.path("way").display().to_string() };
    write(&machine, &place, "{}").unwrap();
    assert!(machine.path("ws/.peri/settings.local.json").is_file());
}

#[test]
fn a_folder_that_takes_no_file_is_named() {
    let machine = Machine::new();
    machine.put("ws/.peri", "a file");
    let error = write(&machine, &local(&machine), "{}").unwrap_err();
    assert!(matches!(error, ConfigSourceError::Unwritable { .. }), "{error}");
}

#[test]
fn a_lock_that_is_never_given_back_ends_in_an_error() {
    let machine = Machine::new();
    machine.put("ws/.peri/x", "");
    let folder = fs::File::open(machine.path("ws/.peri")).unwrap();
    folder.lock().unwrap();
    let error = write(&machine, &local(&machine), "{}").unwrap_err();
    assert!(error.to_string().contains("locked by another process"), "{error}");
}
