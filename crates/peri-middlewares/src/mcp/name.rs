//! Names of external tools as the model calls them: `mcp__SERVER__TOOL`.
//!
//! Invariant: the same server and tool always give the same name, it is one that every provider takes, and two tools of
//! a server share one only if their names are the same.

/// The longest name that providers take.
const MAX_NAME: usize = 64;

/// The name of an external server's tool. Where the plain form holds characters that are not taken, or too many, they
/// are replaced and a digest of the plain form is put at the end.
pub fn external_tool_name(server: &str, tool: &str) -> String {
    let plain = format!("mcp__{server}__{tool}");
    let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if plain.len() <= MAX_NAME && plain.chars().all(is_taken) {
        return plain;
    }
    let digest = format!("_{:08x}", digest(&plain));
    let kept = plain.chars().map(|c| if is_taken(c) { c } else { '_' }).take(MAX_NAME - digest.len());
    kept.chain(digest.chars()).collect()
}

/// FNV-1a: any digest would do that is the same in every process and version.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_names_stay() {
        assert_eq!(external_tool_name("docs", "search"), "mcp__docs__search");
        assert_eq!(external_tool_name("a-b", "c_d"), "mcp__a-b__c_d");
    }

    #[test]
    fn others_become_clean_and_stay_apart() {
        let dotted = external_tool_name("docs", "page.read");
        assert!(dotted.starts_with("mcp__docs__page_read_"), "{dotted}");
        assert_ne!(dotted, external_tool_name("docs", "page read"));
        let long = "x".repeat(100);
        for name in [
            dotted,
            external_tool_name("docs", &long),
            external_tool_name("docs", "日本語"),
            external_tool_name("docs", ""),
        ] {
            assert!(name.len() <= MAX_NAME && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{name}");
        }
        assert_ne!(external_tool_name("docs", &long), external_tool_name("docs", &"x".repeat(101)));
    }
}
