//! Third-party confinement: which crate may use a package, and which features nobody may turn on.

use super::facts::{Dependency, Facts, Kind, Package};
use super::rules::{BANNED_FEATURES, CONFINED, CRATES, RMCP_NATIVE_ONLY, TOKIO_NATIVE_FEATURES, Target};

pub fn check(facts: &Facts) -> Vec<String> {
    let by_package = facts.packages.iter().flat_map(|package| {
        package.dependencies.iter().flat_map(move |dependency| check_dependency(package, dependency))
    });
    let by_feature = facts.enabled_features.iter().filter_map(|(package, feature)| check_feature(package, feature));
    by_package.chain(by_feature).collect()
}

fn check_dependency(package: &Package, dependency: &Dependency) -> Vec<String> {
    let (user, used) = (package.name.as_str(), dependency.name.as_str());
    let mut findings = Vec::new();
    for confined in CONFINED.iter().filter(|confined| matches(confined.package, used)) {
        if !confined.only_in.contains(&user) {
            findings.push(format!("{user} may not depend on {used}: only {:?} may", confined.only_in));
        }
    }
    if used == "rmcp" && RMCP_NATIVE_ONLY.contains(&user) && dependency.kind == Kind::Normal && !dependency.native_only
    {
        findings.push(format!("{user} may depend on rmcp outside wasm32 only"));
    }
    let builds_for_wasm = CRATES.iter().any(|rule| rule.name == user && rule.target == Target::Wasm);
    if used == "tokio" && builds_for_wasm && dependency.kind == Kind::Normal && !dependency.native_only {
        let native = dependency.features.iter().filter(|feature| TOKIO_NATIVE_FEATURES.contains(&feature.as_str()));
        findings.extend(
            native.map(|feature| format!("{user} builds for wasm32 and may not use tokio's feature {feature}")),
        );
    }
    let banned = dependency.features.iter().filter_map(|feature| check_feature(used, feature));
    findings.extend(banned.map(|finding| format!("{user}: {finding}")));
    findings
}

fn check_feature(package: &str, feature: &str) -> Option<String> {
    let (_, banned) = BANNED_FEATURES.iter().find(|(name, _)| *name == package)?;
    banned.iter().any(|pattern| matches(pattern, feature)).then(|| format!("{package}'s feature {feature} is banned"))
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(beginning)) => name.starts_with(beginning),
        (None, None) => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(user: &str, dependency: Dependency) -> Vec<String> {
        let package = Package { name: user.into(), dependencies: vec![dependency] };
        check(&Facts { packages: vec![package], enabled_features: vec![] })
    }

    fn dependency(name: &str, features: &[&str]) -> Dependency {
        Dependency {
            name: name.into(),
            kind: Kind::Normal,
            features: features.iter().map(|feature| (*feature).to_owned()).collect(),
            native_only: false,
        }
    }

    #[test]
    fn a_confined_package_is_found_outside_its_crates() {
        assert_eq!(check_one("peri-agent", dependency("rusqlite", &[])).len(), 1);
        assert_eq!(check_one("peri-model", dependency("reqwest", &[])).len(), 1);
        assert_eq!(check_one("peri-resources", dependency("sqlx-core", &[])).len(), 1);
        assert_eq!(check_one("peri-resources", dependency("rusqlite", &["bundled"])), [""; 0]);
    }

    #[test]
    fn a_banned_feature_is_found_in_a_manifest_and_in_the_build() {
        assert_eq!(check_one("peri-mcp-servers", dependency("rmcp", &["server", "transport-child-process"])).len(), 1);
        let built = |feature: &str| {
            let enabled_features = vec![("rmcp".to_owned(), feature.to_owned())];
            check(&Facts { packages: vec![], enabled_features })
        };
        assert_eq!(built("transport-streamable-http-client-reqwest").len(), 1);
        assert_eq!(built("transport-async-rw"), [""; 0]);
    }

    #[test]
    fn wasm_crates_use_neither_rmcp_nor_a_runtime() {
        assert_eq!(check_one("peri-middlewares", dependency("rmcp", &["client"])).len(), 1);
        let native = Dependency { native_only: true, ..dependency("rmcp", &["client"]) };
        assert_eq!(check_one("peri-middlewares", native), [""; 0]);
        assert_eq!(check_one("peri-agent", dependency("tokio", &["sync", "time"])).len(), 1);
        assert_eq!(check_one("peri-cli", dependency("tokio", &["time"])), [""; 0]);
    }
}
