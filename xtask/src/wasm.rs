//! The wasm32 check: a crate that must build for wasm32 and does not has its I/O in the wrong place.
//!
//! The target comes from rustup where rustup has it or can get it. Elsewhere Debian's `rustc-web` compiles the standard
//! library from `rust-web-src`, in a target directory of its own.

use std::path::Path;
use std::process::Command;

use crate::prerequisites::install_debian_packages;
use crate::run::{self, command, output, succeeds};
use crate::tidy::rules::{CRATES, Target};

const TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

pub fn run(root: &Path) -> anyhow::Result<()> {
    let present = |name: &str| root.join("crates").join(name).is_dir();
    let mut check = compiler(root)?;
    check.args(["--target", TARGET, "--lib", "--quiet"]).arg("--target-dir").arg(root.join("target/wasm"));
    for rule in CRATES.iter().filter(|rule| rule.target == Target::Wasm && present(rule.name)) {
        check.args(["-p", rule.name]);
    }
    run::run(&mut check)
}

/// `cargo check`, set up for whichever toolchain can build for the target.
fn compiler(root: &Path) -> anyhow::Result<Command> {
    let installed = output(&mut command(root, &["rustup", "target", "list", "--installed"])).unwrap_or_default();
    let by_rustup = installed.lines().any(|line| line == TARGET)
        || succeeds(&mut command(root, &["rustup", "target", "add", TARGET]));
    if by_rustup {
        return Ok(command(root, &["cargo", "check"]));
    }
    if !Path::new(DEBIAN_RUSTC).exists() || !Path::new("/usr/lib/rustlib/src").exists() {
        install_debian_packages(root, &["rustc-web", "rust-web-src"])?;
    }
    let sysroot = output(&mut command(root, &["rustc", "--print", "sysroot"]))?;
    let host = output(&mut command(root, &["rustc", "--print", "host-tuple"]))?;
    let mut check = command(root, &["cargo", "check", "-Zbuild-std=std,panic_abort"]);
    check.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
    let linker = format!("{sysroot}/lib/rustlib/{host}/bin/rust-lld");
    check.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    Ok(check)
}
