//! The tables. ARCHITECTURE.md explains them; this file is what is enforced.

/// Where a crate must build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// For wasm32 too.
    Wasm,
    Native,
    /// A dev-dependency or a tool.
    Dev,
}

/// One crate: where it builds and which crates of ours it may depend on (normal and build dependencies).
pub struct CrateRule {
    pub name: &'static str,
    pub target: Target,
    pub may_use: &'static [&'static str],
}

const fn rule(name: &'static str, target: Target, may_use: &'static [&'static str]) -> CrateRule {
    CrateRule { name, target, may_use }
}

/// Every crate of the workspace. A crate that is not listed is a finding.
pub const CRATES: &[CrateRule] = &[
    rule("peri-acp-types", Target::Wasm, &[]),
    rule("peri-config", Target::Wasm, &["peri-acp-types"]),
    rule("peri-model", Target::Wasm, &["peri-acp-types"]),
    rule("peri-resources", Target::Wasm, &["peri-acp-types"]),
    rule("peri-process", Target::Native, &["peri-acp-types"]),
    rule("peri-agent", Target::Wasm, &["peri-acp-types", "peri-model"]),
    rule("peri-runtime", Target::Wasm, &["peri-acp-types", "peri-agent"]),
    rule("peri-middlewares", Target::Wasm, &["peri-acp-types", "peri-config", "peri-agent"]),
    rule(
        "peri-controller",
        Target::Wasm,
        &["peri-acp-types", "peri-config", "peri-model", "peri-agent", "peri-runtime", "peri-middlewares"],
    ),
    rule("peri-acp", Target::Wasm, &["peri-acp-types", "peri-config", "peri-controller"]),
    rule("peri-mcp-servers", Target::Native, &["peri-acp-types"]),
    rule("peri-tui", Target::Native, &["peri-acp-types", "peri-config"]),
    rule(
        "peri-cli",
        Target::Native,
        &[
            "peri-acp-types",
            "peri-config",
            "peri-model",
            "peri-resources",
            "peri-process",
            "peri-agent",
            "peri-runtime",
            "peri-middlewares",
            "peri-controller",
            "peri-acp",
            "peri-mcp-servers",
            "peri-tui",
            "collie-host",
        ],
    ),
    rule(
        "peri-wasm",
        Target::Wasm,
        &["peri-acp-types", "peri-config", "peri-resources", "peri-controller", "peri-acp"],
    ),
    rule("peri-testkit", Target::Dev, &["peri-acp-types", "peri-model"]),
    rule("collie-core", Target::Wasm, &[]),
    rule("collie-host", Target::Native, &["collie-core"]),
    rule("collie-wasm", Target::Wasm, &["collie-core"]),
    rule("collie-bridge", Target::Native, &["collie-core"]),
    rule("xtask", Target::Dev, &[]),
];

/// What any crate may use in its tests, on top of its own row.
pub const DEV_MAY_USE: &[&str] = &["peri-testkit", "peri-acp-types", "peri-model"];

/// A third-party package that only some crates may depend on.
pub struct Confined {
    /// A package name, or a prefix that ends in `*`.
    pub package: &'static str,
    pub only_in: &'static [&'static str],
}

pub const CONFINED: &[Confined] = &[
    Confined { package: "agent-client-protocol", only_in: &["peri-acp", "peri-tui", "peri-cli", "peri-testkit"] },
    // Types come from the crate above, which pins the schema's version.
    Confined { package: "agent-client-protocol-schema", only_in: &[] },
    Confined { package: "rmcp", only_in: &["peri-middlewares", "peri-mcp-servers"] },
    Confined { package: "rusqlite", only_in: &["peri-resources"] },
    Confined { package: "sqlx*", only_in: &[] },
    Confined { package: "ratatui*", only_in: &["peri-tui"] },
    Confined { package: "crossterm", only_in: &["peri-tui"] },
    Confined { package: "reqwest", only_in: &["peri-cli", "collie-bridge"] },
    Confined { package: "wasm-bindgen*", only_in: &["peri-wasm", "collie-wasm", "xtask"] },
];

/// Crates that depend on rmcp outside wasm32 only: it compiles there and fails at run time.
pub const RMCP_NATIVE_ONLY: &[&str] = &["peri-middlewares"];

/// Features that no build may turn on, by package. A `*` stands for any beginning or end.
pub const BANNED_FEATURES: &[(&str, &[&str])] = &[
    // Processes are started by peri-process, HTTP goes through the HttpTransport port.
    ("rmcp", &["transport-child-process", "which-command", "*-reqwest", "reqwest*", "__reqwest", "auth*"]),
    // One TLS stack, with ring; system roots are loaded for https only.
    ("reqwest", &["default-tls", "native-tls*", "rustls", "cookies", "http2", "http3"]),
];

/// Features of tokio that need an operating system: banned in crates that build for wasm32.
pub const TOKIO_NATIVE_FEATURES: &[&str] =
    &["full", "fs", "net", "process", "rt", "rt-multi-thread", "signal", "time", "io-std"];

/// Crates that a source under these folders may not name: they are ACP clients.
pub const CLIENT_FOLDERS: &[&str] = &["crates/peri-cli/src/print", "crates/peri-cli/src/phone"];
pub const CLIENT_BANNED: &[&str] = &["peri_agent", "peri_runtime", "peri_controller", "peri_middlewares"];

/// The longest source file, in lines.
pub const MAX_FILE_LINES: usize = 800;
