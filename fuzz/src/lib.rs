//! What the fuzz targets check. Each check takes any bytes, and panics where something that must hold does not.
//!
//! The same files are modules of the crates' own tests (`tests/it/fuzz_corpus.rs`), which run the corpus on the stable
//! compiler; and the stages on which the checks play are those of the tests.

pub mod acp_frames;
pub mod edit;
pub mod model_stream;
pub mod settings;
pub mod shell_rules;

/// Stages of the crates' tests, of which a check uses a part.
macro_rules! stage {
    ($name:ident, $path:literal) => {
        #[allow(dead_code, unused_imports, reason = "the crate's own tests use the rest")]
        #[path = $path]
        mod $name;
    };
}

stage!(endpoint, "../../crates/peri-model/tests/it/endpoint.rs");
stage!(fakes, "../../crates/peri-middlewares/tests/it/fakes.rs");
stage!(memory, "../../crates/peri-config/tests/it/memory.rs");
stage!(support, "../../crates/peri-mcp-servers/tests/it/support/mod.rs");
stage!(transport, "../../crates/peri-model/tests/it/transport.rs");
stage!(workspace, "../../crates/peri-acp/tests/it/workspace.rs");
stage!(world, "../../crates/peri-acp/tests/it/world.rs");
