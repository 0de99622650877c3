//! Other people's clients and servers against the real binary: installs them and runs the suites of `interop/`.
//!
//! Owns: where things are installed. Invariant: nothing is installed into the source tree; a suite is mirrored into
//! `target/interop/NAME`, its packages lie beside it, and it runs there.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::ValueEnum;
use sha2::{Digest, Sha256};

use crate::prerequisites;
use crate::run::{command, run, target_directory};

const NODE_PACKAGES: &str = "node_modules";
const PYTHON_PACKAGES: &str = "venv";
/// Beside the packages: the digest of what they were installed from.
const NODE_STAMP: &str = "node_modules.stamp";
const PYTHON_STAMP: &str = "venv.stamp";

/// A folder of `interop/`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Suite {
    /// ACP clients that drive `peri acp`.
    Acp,
    /// MCP servers that Peri is a client of.
    Mcp,
}

impl Suite {
    const ALL: [Suite; 2] = [Suite::Acp, Suite::Mcp];

    fn folder(self) -> &'static str {
        match self {
            Suite::Acp => "acp",
            Suite::Mcp => "mcp",
        }
    }
}

/// Runs one suite, or all. None is left out because another failed; the first failure is the outcome.
pub fn run_suites(root: &Path, only: Option<Suite>) -> anyhow::Result<()> {
    prerequisites::require_interop_tools(root)?;
    // As the tests build them: other packages would mean other features, and everything built once more.
    run(&mut command(root, &["cargo", "build", "--workspace", "--bins", "--quiet"]))?;
    let chosen = Suite::ALL.into_iter().filter(|suite| only.is_none_or(|only| only == *suite));
    let outcomes: Vec<anyhow::Result<()>> = chosen.map(|suite| run_suite(root, suite)).collect();
    outcomes.into_iter().collect()
}

fn run_suite(root: &Path, suite: Suite) -> anyhow::Result<()> {
    let place = Place { root: root.to_owned(), folder: target_directory(root).join("interop").join(suite.folder()) };
    mirror(&root.join("interop").join(suite.folder()), &place.folder)?;
    place.install_node_packages()?;
    place.install_python_packages()?;
    let mut runs = vec![place.node_tests()?, place.python_tests()?];
    if suite == Suite::Mcp {
        runs.push(Some(place.rust_tests()?));
    }
    let outcomes: Vec<anyhow::Result<()>> = runs.iter_mut().flatten().map(run).collect();
    outcomes.into_iter().collect()
}

/// Where a suite runs.
struct Place {
    root: PathBuf,
    /// The mirrored suite.
    folder: PathBuf,
}

impl Place {
    /// `npm install` and not `npm ci`: the latter refuses a lock file without the optional packages of other platforms,
    /// which a registry need not have. Versions and digests are the lock file's all the same. Packages run no scripts.
    fn install_node_packages(&self) -> anyhow::Result<()> {
        if !self.folder.join("package.json").exists() {
            return Ok(());
        }
        self.install(NODE_PACKAGES, NODE_STAMP, &["package.json", "package-lock.json"], || {
            let words =
                ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
            run(command(&self.root, &words).current_dir(&self.folder))
        })
    }

    fn install_python_packages(&self) -> anyhow::Result<()> {
        if !self.folder.join("requirements.txt").exists() {
            return Ok(());
        }
        self.install(PYTHON_PACKAGES, PYTHON_STAMP, &["requirements.txt"], || {
            run(command(&self.root, &["python3", "-m", "venv", PYTHON_PACKAGES]).current_dir(&self.folder))?;
            let words = ["venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
            let mut pip = Command::new(self.folder.join(words[0]));
            run(pip.args(&words[1..]).current_dir(&self.folder))
        })
    }

    /// Runs `step` unless the packages are there and were installed from the same sources.
    fn install(
        &self,
        packages: &str,
        stamp: &str,
        sources: &[&str],
        step: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (packages, stamp) = (self.folder.join(packages), self.folder.join(stamp));
        let wanted = self.digest(sources)?;
        if packages.is_dir() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        remove(&packages)?;
        step()?;
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
    }

    fn digest(&self, files: &[&str]) -> anyhow::Result<String> {
        let mut digest = Sha256::new();
        for file in files {
            let path = self.folder.join(file);
            digest.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
        Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The suite's `*.test.mjs`, with a process for each file and two of them at a time.
    fn node_tests(&self) -> anyhow::Result<Option<Command>> {
        let files = self.files("", ".test.mjs")?;
        let mut node = self.command("node")?;
        node.args(["--test", "--test-reporter=spec", "--test-concurrency=2", "--test-timeout=180000"]).args(&files);
        Ok((!files.is_empty()).then_some(node))
    }

    /// The suite's `test_*.py`.
    fn python_tests(&self) -> anyhow::Result<Option<Command>> {
        let mut python = self.command("venv/bin/python")?;
        python.args(["-m", "unittest", "discover", "--start-directory", ".", "--pattern", "test_*.py"]);
        Ok((!self.files("test_", ".py")?.is_empty()).then_some(python))
    }

    /// Peri's own MCP client on the servers that are installed here.
    fn rust_tests(&self) -> anyhow::Result<Command> {
        let mut cargo = self.command("cargo")?;
        cargo.args(["test", "-p", "peri-middlewares", "--features", "interop", "--test", "interop"]);
        cargo.current_dir(&self.root);
        Ok(cargo)
    }

    /// A program in the suite's folder, with the suite's packages first on its search path.
    fn command(&self, program: &str) -> anyhow::Result<Command> {
        let binaries = target_directory(&self.root).join("debug");
        let own = [self.folder.join(NODE_PACKAGES).join(".bin"), self.folder.join(PYTHON_PACKAGES).join("bin")];
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let search_path: OsString = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&inherited)))?;
        let program = if program.contains('/') { self.folder.join(program) } else { PathBuf::from(program) };
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("PATH", search_path)
            .env("PERI_BIN", binaries.join("peri"))
            .env("PERI_SCRIPTED_ENDPOINT", binaries.join("scripted-endpoint"))
            .env("PERI_INTEROP_DIR", &self.folder);
        Ok(command)
    }

    /// Names of files right in the suite's folder, in order.
    fn files(&self, prefix: &str, suffix: &str) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) && name.ends_with(suffix) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Makes `to` hold what `from` holds, and leaves alone what was installed there.
fn mirror(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let is_installed = |name: &str| [NODE_PACKAGES, PYTHON_PACKAGES, NODE_STAMP, PYTHON_STAMP].contains(&name);
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !is_installed(&entry.file_name().to_string_lossy()) {
            remove(&entry.path())?;
        }
    }
    copy_below(from, to)
}

fn copy_below(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        // A developer's own installation or Python's cache is no part of the suite.
        if entry.file_name() == NODE_PACKAGES || entry.file_name() == "__pycache__" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy_below(&source, &target)?;
        } else {
            fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(())
}

/// Removes a file or a folder with all it holds; that it was not there is no error.
fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_drops_what_is_gone_and_keeps_what_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for path in ["from/support", "to/node_modules/a", "to/old"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        for path in ["from/a.test.mjs", "from/support/b.mjs", "to/gone.test.mjs", "to/venv.stamp", "to/old/file"] {
            fs::write(folder.path().join(path), path).unwrap();
        }
        mirror(&from, &to).unwrap();
        let is_there = |path: &str| to.join(path).exists();
        assert!(["a.test.mjs", "support/b.mjs", "node_modules/a", "venv.stamp"].into_iter().all(is_there));
        assert!(!["gone.test.mjs", "old"].into_iter().any(is_there));
    }
}
