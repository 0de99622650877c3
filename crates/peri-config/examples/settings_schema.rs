//! Prints the JSON schema of settings: `cargo run -p peri-config --example settings_schema > docs/protocol/settings.schema.json`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &peri_config::schema())?;
    writeln!(out)
}
