//! Names of configured MCP servers.
//!
//! Invariant: every name that a server can have in settings can be written in a permission rule, and
//! `mcp__SERVER__TOOL` has one reading: the server's name ends at the first `__` and never with `_`.

/// The longest name, in bytes.
const MAX_BYTES: usize = 64;

/// What a name must be, for messages.
pub(crate) const SERVER_NAME_FORM: &str =
    "use letters, digits, spaces and `.`, `-`, `_`, `/`, `@`, `:`, 64 at most, without `__`, not ending in `_`";

/// True for a name that a server can have.
pub(crate) fn is_server_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '-' | '_' | '/' | '@' | ':');
    !name.is_empty()
        && name.len() <= MAX_BYTES
        && name.chars().all(plain)
        && name.trim() == name
        && !name.contains("__")
        && !name.ends_with('_')
}
