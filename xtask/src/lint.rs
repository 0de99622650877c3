//! What can be said of the code without running it.

use std::path::Path;

use crate::run::{self, command};
use crate::tidy;

pub fn run(root: &Path) -> anyhow::Result<()> {
    run::run(&mut command(root, &["cargo", "fmt", "--all", "--check"]))?;
    tidy::run(root)?;
    run::run(&mut command(
        root,
        &["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
    ))
}
