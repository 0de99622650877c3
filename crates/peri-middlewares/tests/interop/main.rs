//! Peri's MCP client on other people's servers, which `cargo xtask interop` installs.
