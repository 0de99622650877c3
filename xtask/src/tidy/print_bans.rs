//! Print and phone are ACP clients: their sources may not name a crate behind the protocol edge.

use super::rules::{CLIENT_BANNED, CLIENT_FOLDERS};
use super::sources::SourceFile;

pub fn check(files: &[SourceFile]) -> Vec<String> {
    files.iter().filter(|file| is_client(&file.path)).flat_map(check_file).collect()
}

fn is_client(path: &str) -> bool {
    CLIENT_FOLDERS
        .iter()
        .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest == ".rs"))
}

fn check_file(file: &SourceFile) -> Vec<String> {
    let named =
        |line: &str, name: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    file.text
        .lines()
        .enumerate()
        .flat_map(|(index, line)| {
            let code = line.split("//").next().unwrap_or_default();
            CLIENT_BANNED
                .iter()
                .filter(move |name| named(code, name))
                .map(move |name| format!("{}:{}: an ACP client may not name {name}", file.path, index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> usize {
        check(&[SourceFile { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn print_naming_the_agent_is_found() {
        assert_eq!(check_text("crates/peri-cli/src/print/mod.rs", "use peri_agent::SessionHandle;\n"), 1);
        assert_eq!(check_text("crates/peri-cli/src/print.rs", "let x = peri_controller::Controller::new();\n"), 1);
        assert_eq!(check_text("crates/peri-cli/src/phone/link.rs", "fn f(_: peri_runtime::Runtime) {}\n"), 1);
    }

    #[test]
    fn other_folders_other_words_and_comments_pass() {
        assert_eq!(check_text("crates/peri-cli/src/composition/mod.rs", "use peri_agent::SessionHandle;\n"), 0);
        assert_eq!(check_text("crates/peri-cli/src/print/mod.rs", "use peri_acp::in_process; // not peri_agent\n"), 0);
        assert_eq!(check_text("crates/peri-cli/src/printer/mod.rs", "use peri_agent::SessionHandle;\n"), 0);
    }
}
