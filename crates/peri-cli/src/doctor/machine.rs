//! The machine: processes, programs, the terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peri_acp_types::ports::{KillProof, ProcessHost, ProcessOutput, ProcessSpec, ProcessStdin};
use peri_process::{SupervisedHost, SupervisorCommand};

use super::Finding;
use crate::composition::{Environment, Places};

/// How long the processes of the trial get to end by themselves.
const GRACE: Duration = Duration::from_millis(200);
/// How long the supervisor of the trial may take to end.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(3);
/// Leaves a process whose parent is gone, as a daemon does.
const RUNAWAY: &str = "(exec sleep 60) & exit 0";

/// Which Peri this is, and where it runs.
pub fn version() -> Finding {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    Finding::ok("peri", format!("version {} on {os} {arch}", env!("CARGO_PKG_VERSION")))
}

/// Starts a command that leaves a process behind, and sees whether that can be ended.
pub async fn processes(places: &Places) -> Vec<Finding> {
    if let Err(error) = std::fs::read_to_string("/proc/self/status") {
        return vec![Finding::fault(
            "processes",
            format!("/proc cannot be read ({error}), so what commands leave behind is not seen"),
            "mount /proc in this container; Linux is needed for tools that run commands",
        )];
    }
    let host = SupervisedHost::new(SupervisorCommand::this_program());
    let spec = ProcessSpec {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), RUNAWAY.to_owned()],
        cwd: places.workspace(),
        env: BTreeMap::new(),
        stdin: ProcessStdin::Null,
        output: ProcessOutput::Merged,
    };
    let proof = match host.spawn(spec).await {
        Err(error) => Err(error.to_string()),
        Ok(child) => {
            child.wait().await;
            match child.kill(GRACE).await {
                KillProof::Gone => Ok(()),
                KillProof::Unconfirmed(what) => Err(what),
            }
        }
    };
    let ended = host.shutdown(SUPERVISOR_LIMIT).await;
    vec![match (proof, ended) {
        (Ok(()), KillProof::Gone) => {
            Finding::ok("processes", "commands start, and what they leave in the background is found and ended")
        }
        (Err(reason), _) | (Ok(()), KillProof::Unconfirmed(reason)) => Finding::fault(
            "processes",
            format!("commands cannot be run as they should be: {reason}"),
            "does a sandbox forbid to start processes, or prctl? is there a shell `sh` in PATH?",
        ),
    }]
}

/// The programs that sessions use.
pub fn programs(places: &Places) -> Vec<Finding> {
    let find = |name: &str| find_program(name, places.environment(), places.cwd());
    let shell = match (find("bash"), find("sh")) {
        (Some(bash), _) => Finding::ok("programs", format!("shell: {}", bash.display())),
        (None, Some(sh)) => Finding::warning(
            "programs",
            format!("there is no bash; commands run in {}", sh.display()),
            "install bash: models write for it",
        ),
        (None, None) => Finding::fault("programs", "there is no shell, so no command can be run", "install bash"),
    };
    let git = match find("git") {
        Some(git) => Finding::ok("programs", format!("git: {}", git.display())),
        None => Finding::warning("programs", "there is no git in PATH", "install git, if models are to use it"),
    };
    let search = Finding::ok("programs", "search is built in: ripgrep is not needed");
    vec![shell, git, search]
}

/// The program that this name starts: in PATH, or (with a slash in it) from the directory.
pub fn find_program(name: &str, environment: &Environment, directory: &Path) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = match name.contains('/') {
        true => vec![directory.join(name)],
        false => {
            let path = environment.var("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|folder| directory.join(folder).join(name)).collect()
        }
    };
    candidates.into_iter().find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What the streams are, and what the variables say of colours and letters.
pub fn terminal(environment: &Environment) -> Vec<Finding> {
    let set = |name: &str| environment.var(name).filter(|value| !value.is_empty());
    let words = |is_terminal: bool| if is_terminal { "a terminal" } else { "no terminal" };
    let streams = format!(
        "input is {}, output {}, errors {}",
        words(std::io::stdin().is_terminal()),
        words(std::io::stdout().is_terminal()),
        words(std::io::stderr().is_terminal())
    );
    let colours = match (set("NO_COLOR"), set("TERM").as_deref(), set("COLORTERM").as_deref()) {
        (Some(_), _, _) => "off, by NO_COLOR".to_owned(),
        (None, None | Some("dumb"), _) => "none (TERM is not set, or dumb)".to_owned(),
        (None, Some(term), Some("truecolor" | "24bit")) => format!("24 bits ({term})"),
        (None, Some(term), _) if term.contains("256color") => format!("256 ({term})"),
        (None, Some(term), _) => format!("16 ({term})"),
    };
    let width = match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 => format!(", {} columns", size.ws_col),
        Ok(_) | Err(_) => String::new(),
    };
    vec![Finding::ok("terminal", format!("{streams}; colours: {colours}{width}")), letters(set)]
}

/// The locale, by the order in which the system looks.
fn letters(set: impl Fn(&str) -> Option<String>) -> Finding {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| Some((name, set(name)?)));
    let is_utf8 = |value: &str| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    };
    match locale {
        Some((name, value)) if is_utf8(&value) => Finding::ok("terminal", format!("letters: UTF-8 ({name}={value})")),
        Some((name, value)) => Finding::warning(
            "terminal",
            format!("{name}={value} is no UTF-8 locale: letters beyond ASCII may look wrong in this terminal"),
            "export LC_ALL=C.UTF-8",
        ),
        None => Finding::warning(
            "terminal",
            "no locale is set: letters beyond ASCII may look wrong in this terminal",
            "export LANG=C.UTF-8",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_locale_is_the_first_that_is_set() {
        let check = |variables: &[(&str, &str)], expect: &str| {
            let variables: BTreeMap<String, String> =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let finding = letters(|name| variables.get(name).cloned());
            assert!(finding.what.contains(expect), "{finding:?}");
        };
        check(&[("LANG", "de_DE.UTF-8")], "UTF-8 (LANG=");
        check(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], "LC_ALL=C is no UTF-8");
        check(&[("LC_CTYPE", "en_US.utf8")], "UTF-8 (LC_CTYPE=");
        check(&[], "no locale is set");
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("plain"), "").expect("a file");
        let variables = BTreeMap::from([("PATH".to_owned(), format!("/nowhere:{}", folder.path().display()))]);
        let environment = Environment::Fixed(Arc::new(variables));
        assert_eq!(find_program("plain", &environment, Path::new("/")), None, "it cannot be run");
        assert_eq!(find_program("/bin/sh", &environment, Path::new("/")), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program("bin/sh", &environment, Path::new("/")), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program("sh", &environment, Path::new("/")), None);
    }
}
