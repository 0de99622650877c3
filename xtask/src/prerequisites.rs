//! What a fresh machine may lack, and how it gets there.

use std::path::Path;

use anyhow::bail;

use crate::run::{command, run, succeeds};

/// A C compiler builds SQLite; git lists the files.
pub fn require_tools(root: &Path) -> anyhow::Result<()> {
    let needed = [("cc", "gcc"), ("git", "git"), ("python3", "python3"), ("setsid", "util-linux")];
    let missing: Vec<(&str, &str)> =
        needed.into_iter().filter(|(program, _)| !succeeds(&mut command(root, &[program, "--version"]))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    install_debian_packages(root, &packages)
}

/// Installs packages where that is possible without asking; otherwise says what to install.
pub fn install_debian_packages(root: &Path, packages: &[&str]) -> anyhow::Result<()> {
    let listed = packages.join(" ");
    let may_install = nix::unistd::geteuid().is_root() && succeeds(&mut command(root, &["apt-get", "--version"]));
    if !may_install {
        bail!("missing: {listed}. On Debian: sudo apt-get install {listed}");
    }
    run(command(root, &["apt-get", "update", "-qq"]).env("DEBIAN_FRONTEND", "noninteractive"))?;
    let mut install = command(root, &["apt-get", "install", "-y", "-qq", "--no-install-recommends"]);
    run(install.args(packages).env("DEBIAN_FRONTEND", "noninteractive"))
}
