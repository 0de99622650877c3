//! The repository around a directory, read from its files. git itself is never run: it would read a configuration that
//! the repository brings along.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::small_file::read_beginning;

/// Bytes of HEAD and of a `.git` file that are looked at.
const POINTER_LIMIT: u64 = 4096;
/// Longer names of branches are cut.
const BRANCH_CHARS: usize = 200;

/// A work tree.
pub(super) struct Repository {
    /// Its top, as canonical as the directory that it was looked for from.
    pub root: PathBuf,
    /// None where HEAD is detached.
    pub branch: Option<String>,
}

/// The nearest repository around `cwd`, which must be canonical.
pub(super) fn find(cwd: &Path, left_out: &mut Vec<String>) -> Option<Repository> {
    for directory in cwd.ancestors() {
        let Some(head) = head_of(directory) else { continue };
        if !is_trusted_owner(directory, cwd) {
            left_out.push(format!(
                "{}: a repository of another user lies above the working directory; it was not used",
                directory.display()
            ));
            return None;
        }
        return Some(Repository { root: directory.to_owned(), branch: branch_of(&head) });
    }
    None
}

/// The content of HEAD, if a work tree begins in this directory.
fn head_of(directory: &Path) -> Option<String> {
    let dot_git = directory.join(".git");
    let git_dir = match fs::metadata(&dot_git) {
        Ok(found) if found.is_dir() => dot_git,
        // Linked worktrees and submodules: a file that says where the rest is.
        Ok(found) if found.is_file() => {
            let pointer = read_beginning(&dot_git, POINTER_LIMIT)?;
            directory.join(pointer.lines().next()?.strip_prefix("gitdir:")?.trim())
        }
        Ok(_) | Err(_) => return None,
    };
    let head = read_beginning(&git_dir.join("HEAD"), POINTER_LIMIT)?;
    let head = head.lines().next()?.trim();
    let is_commit = head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_commit || head.starts_with("ref:")).then(|| head.to_owned())
}

fn branch_of(head: &str) -> Option<String> {
    let name = head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")?;
    // A dot begins no branch: so the newer ref storage marks that the name is elsewhere.
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    Some(name.chars().filter(|c| !c.is_control()).take(BRANCH_CHARS).collect())
}

fn is_trusted_owner(directory: &Path, cwd: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|found| found.uid()).ok();
    let (Some(of_git), Some(of_cwd)) = (owner(&directory.join(".git")), owner(cwd)) else { return false };
    is_trusted(of_git, of_cwd, rustix::process::geteuid().as_raw())
}

/// On a shared machine anybody can make a repository in `/tmp`, above other people's directories. In a container, on the
/// other hand, all of a project may belong to a user who is not the one that runs.
fn is_trusted(owner_of_git: u32, owner_of_cwd: u32, ours: u32) -> bool {
    owner_of_git == ours || owner_of_git == owner_of_cwd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_repository_above_is_not_trusted() {
        assert!(is_trusted(1000, 1000, 1000));
        assert!(is_trusted(1000, 1000, 0));
        assert!(is_trusted(1000, 2000, 1000));
        assert!(!is_trusted(2000, 1000, 1000));
        assert!(!is_trusted(2000, 1000, 0));
    }
}
