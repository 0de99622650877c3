//! Which variables may be set without changing what a command does.
//!
//! Invariant: a name is harmless only if it is known to be; programs obey far more variables than anyone can list.

/// Names with capitals that only change how things look, or how much is told.
const HARMLESS: [&str; 17] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// True for variables that no program obeys in a way that matters. Names in small letters are a script's own by
/// custom, with few exceptions.
pub(super) fn is_harmless(name: &str) -> bool {
    if name.contains(|c: char| c.is_ascii_uppercase()) {
        return HARMLESS.contains(&name) || name.starts_with("LC_");
    }
    let is_obeyed = name.ends_with("_proxy") || name.starts_with("npm_") || name.starts_with('_');
    !name.is_empty() && !is_obeyed
}
