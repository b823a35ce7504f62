//! The workspace's crates, as cargo describes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::cargo::{Cargo, Failure};

/// One member of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crate {
    pub(crate) name: String,
    /// Folder below the root, with `/`.
    pub(crate) dir: String,
    pub(crate) published: bool,
    /// Without `default`, sorted.
    pub(crate) features: Vec<String>,
    /// Direct dependencies that ship: normal and build, optional ones included.
    pub(crate) deps: BTreeSet<String>,
}

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The folder that cargo builds into, with `CARGO_TARGET_DIR` and cargo's configuration heeded.
pub(crate) fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let metadata = Cargo::new("metadata --format-version 1 --no-deps --offline").output().ok();
        target_directory(&metadata.unwrap_or_default()).unwrap_or_else(|| root().join("target"))
    })
}

/// A program of ours, as `cargo build` leaves it.
pub(crate) fn program(name: &str) -> PathBuf {
    built("debug", name)
}

/// Builds programs of ours, with the features of the tests, whose build can then be used.
pub(crate) fn build_programs(names: &[&str]) -> Result<(), Failure> {
    let build = Cargo::new(&format!("build --workspace --all-features {WITH_DEV_DEPENDENCIES}"));
    names.iter().fold(build, |build, name| build.arg("--bin").arg(name)).run()
}

/// An example among what is built, so that the features which dependencies of tests ask for are enabled, as in the tests.
///
/// Cargo leaves them out where it builds programs and libraries only, and tokio, syn, serde and all that is above them would be
/// built a second time.
pub(crate) const WITH_DEV_DEPENDENCIES: &str = "--example smallest";

/// A program of ours, as `cargo build` with a profile leaves it.
pub(crate) fn built(profile: &str, name: &str) -> PathBuf {
    target().join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// A path for people: below the root without the root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn target_directory(metadata: &str) -> Option<PathBuf> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    metadata["target_directory"].as_str().map(PathBuf::from)
}

/// All members, in the order that cargo gives.
pub(crate) fn crates() -> Result<Vec<Crate>, Failure> {
    let cargo = Cargo::new("metadata --format-version 1 --no-deps");
    let text = cargo.output()?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("`{cargo}` printed no JSON: {error}"), cargo.to_string()))?;
    Ok(items(&value["packages"]).map(|package| read(package, &root())).collect())
}

/// `name version` of everything that `package` pulls in with these feature flags, itself included.
pub(crate) fn pulled_in(package: &str, features: &str) -> Result<BTreeSet<String>, Failure> {
    Ok(distinct(&tree(package, features).output()?))
}

/// `name version` of everything that `package`, which has a workspace of its own, pulls in, itself included.
pub(crate) fn pulled_in_by(package: &str, manifest: &Path) -> Result<BTreeSet<String>, Failure> {
    Ok(distinct(&tree(package, "").arg("--manifest-path").arg(manifest).output()?))
}

fn tree(package: &str, features: &str) -> Cargo {
    Cargo::new(&format!("tree --package {package} --edges normal,build --prefix none {features}"))
}

fn read(package: &Value, root: &Path) -> Crate {
    let manifest = Path::new(text(&package["manifest_path"]));
    let dir = manifest.parent().and_then(|dir| dir.strip_prefix(root).ok()).unwrap_or(Path::new(""));
    let features = package["features"].as_object().into_iter().flat_map(|table| table.keys());
    Crate {
        name: text(&package["name"]).to_owned(),
        dir: dir.to_string_lossy().replace('\\', "/"),
        // `publish = false` is an empty list of registries.
        published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        features: features.filter(|name| *name != "default").cloned().collect(),
        deps: items(&package["dependencies"])
            .filter(|dep| dep["kind"] != "dev")
            .map(|dep| text(&dep["name"]).to_owned())
            .collect(),
    }
}

fn distinct(tree: &str) -> BTreeSet<String> {
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    tree.lines().filter(|line| !line.is_empty()).map(name_and_version).collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_package_as_cargo_prints_it() {
        let package = serde_json::from_str(
            r#"{"name":"a-b","manifest_path":"/r/a/Cargo.toml","publish":[],"features":{"default":["x"],"x":[]},
            "dependencies":[{"name":"serde","kind":null},{"name":"proptest","kind":"dev"},{"name":"cc","kind":"build"}]}"#,
        )
        .unwrap();
        let krate = read(&package, Path::new("/r"));
        assert_eq!((krate.name.as_str(), krate.dir.as_str(), krate.published), ("a-b", "a", false));
        assert_eq!(krate.features, ["x"]);
        assert_eq!(krate.deps, BTreeSet::from(["serde".to_owned(), "cc".to_owned()]));
    }

    #[test]
    fn programs_are_where_cargo_builds_them() {
        let metadata = r#"{"packages":[],"target_directory":"/elsewhere/built"}"#;
        assert_eq!(target_directory(metadata), Some(PathBuf::from("/elsewhere/built")));
        assert_eq!(target_directory("no JSON"), None);
        // The test itself was built there.
        assert!(std::env::current_exe().unwrap().starts_with(target()), "{}", target().display());
    }

    #[test]
    fn a_crate_seen_twice_counts_once() {
        let tree = "a v1.0.0 (/r/a)\nsyn v3.0.9\nquote v1.0.1 (*)\nquote v1.0.1\n\nsyn v2.0.0\n";
        assert_eq!(distinct(tree).len(), 4);
    }
}
