//! What cargo says of the workspace, reduced to what the rules ask.

use std::path::Path;

use anyhow::Context;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

/// A dependency that its manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub kind: Kind,
    pub features: Vec<String>,
    /// Only outside wasm32, by its `cfg`.
    pub native_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Normal or build.
    Normal,
    Dev,
}

pub struct Facts {
    pub packages: Vec<Package>,
    /// Package and feature, for everything that a build of the workspace turns on.
    pub enabled_features: Vec<(String, String)>,
}

pub fn gather(root: &Path) -> anyhow::Result<Facts> {
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).exec().context("cargo metadata")?;
    Ok(Facts { packages: packages(&metadata), enabled_features: enabled_features(&metadata) })
}

fn packages(metadata: &Metadata) -> Vec<Package> {
    let of_workspace = metadata.workspace_packages();
    let mut packages: Vec<Package> = of_workspace
        .iter()
        .map(|package| Package {
            name: package.name.to_string(),
            dependencies: package.dependencies.iter().map(dependency).collect(),
        })
        .collect();
    packages.sort_by(|left, right| left.name.cmp(&right.name));
    packages
}

fn dependency(found: &cargo_metadata::Dependency) -> Dependency {
    let kind = match found.kind {
        DependencyKind::Development => Kind::Dev,
        _ => Kind::Normal,
    };
    let target = found.target.as_ref().map(ToString::to_string).unwrap_or_default();
    let native_only = target.starts_with("cfg(not(") && target.contains("wasm32");
    Dependency { name: found.name.clone(), kind, features: found.features.clone(), native_only }
}

fn enabled_features(metadata: &Metadata) -> Vec<(String, String)> {
    let Some(resolve) = &metadata.resolve else { return Vec::new() };
    resolve
        .nodes
        .iter()
        .filter_map(|node| {
            let package = metadata.packages.iter().find(|package| package.id == node.id)?;
            Some(node.features.iter().map(|feature| (package.name.to_string(), feature.to_string())))
        })
        .flatten()
        .collect()
}
