//! The documents of npm packages, of which `fixtures/openapi` has the versions; no tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use pintle::schema::Schema;
use pintle_openapi::{ApiTools, OpenApi};
use serde_json::Value;

/// The examples of every style and of much else.
pub(crate) const EXAMPLES: &str = "@readme/oas-examples";

/// Returns the folder or file of a package. Returns `None`, and says so, if the packages are not installed; with `PINTLE_OPENAPI_PACKAGES`,
/// which names their folder, that is a failure.
#[expect(clippy::print_stderr, reason = "what is not tested is said")]
pub(crate) fn package(path: &str) -> Option<PathBuf> {
    let given = env::var_os("PINTLE_OPENAPI_PACKAGES").map(PathBuf::from);
    let is_required = given.is_some();
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/openapi/node_modules");
    let found = given.unwrap_or_else(usual).join(path);
    if found.exists() {
        return Some(found);
    }
    assert!(!is_required, "{} is missing", found.display());
    eprintln!("skipped: {path} is not installed; `cargo xtask test` does that, if there is npm");
    None
}

/// Reads a document of the examples.
pub(crate) fn example(path: &str) -> Option<OpenApi> {
    Some(OpenApi::from_file(package(EXAMPLES)?.join(path)).unwrap())
}

/// Returns the documents below a folder of the examples.
pub(crate) fn examples(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Checks that hosts accept all tools: their names, and their schemas.
pub(crate) fn assert_accepted(tools: &ApiTools, document: &str) {
    let mut names = std::collections::HashSet::new();
    for tool in tools.tools() {
        let name = &tool.name;
        let is_name = |name: &str| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        assert!(is_name(name) && names.insert(name), "{document}: {name}");
        for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten() {
            assert_eq!(schema["type"], "object", "{document}: {name}");
            for word in ["allOf", "oneOf"] {
                assert!(!schema.contains_key(word), "{document}: {name}: {word}");
            }
            let compiled = Schema::compile(&Value::Object((**schema).clone()));
            assert!(compiled.is_ok(), "{document}: {name}: {compiled:?}");
        }
        let arguments = tool.input_schema["properties"].as_object().unwrap();
        assert!(arguments.keys().all(|name| is_name(name)), "{document}: {name}: {arguments:?}");
    }
}
