//! The edges table: which crate of ours may depend on which.

use super::facts::{Kind, Package};
use super::rules::{CRATES, CrateRule, DEV_MAY_USE};

pub fn check(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<String> {
    let Some(rule) = CRATES.iter().find(|rule| rule.name == package.name) else {
        return vec![format!("crate {} is not in the table of xtask/src/tidy/rules.rs", package.name)];
    };
    let ours = package.dependencies.iter().filter(|dependency| CRATES.iter().any(|rule| rule.name == dependency.name));
    ours.filter(|dependency| !is_allowed(rule, &dependency.name, dependency.kind))
        .map(|dependency| {
            let words = if dependency.kind == Kind::Dev { "tests may not use" } else { "may not depend on" };
            format!("{} {words} {}: no such edge in the table", package.name, dependency.name)
        })
        .collect()
}

fn is_allowed(rule: &CrateRule, name: &str, kind: Kind) -> bool {
    rule.may_use.contains(&name) || (kind == Kind::Dev && DEV_MAY_USE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::facts::Dependency;
    use super::*;

    fn package(name: &str, uses: &[(&str, Kind)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).into(), kind: *kind, features: vec![], native_only: false })
            .collect();
        Package { name: name.into(), dependencies }
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_found() {
        let wrong = package("peri-model", &[("peri-acp-types", Kind::Normal), ("peri-agent", Kind::Normal)]);
        assert_eq!(check(&[wrong]), ["peri-model may not depend on peri-agent: no such edge in the table"]);
    }

    #[test]
    fn edges_of_the_table_and_foreign_packages_pass() {
        let fine = package(
            "peri-agent",
            &[("peri-acp-types", Kind::Normal), ("peri-model", Kind::Normal), ("serde", Kind::Normal)],
        );
        assert_eq!(check(&[fine]), [""; 0]);
    }

    #[test]
    fn tests_may_use_the_testkit_and_no_layer_above() {
        let fine = package("peri-config", &[("peri-testkit", Kind::Dev)]);
        let wrong = package("peri-config", &[("peri-controller", Kind::Dev), ("peri-testkit", Kind::Normal)]);
        assert_eq!(check(&[fine]), [""; 0]);
        assert_eq!(check(&[wrong]).len(), 2);
    }

    #[test]
    fn an_unknown_crate_is_found() {
        assert_eq!(check(&[package("peri-utils", &[])]).len(), 1);
    }
}
