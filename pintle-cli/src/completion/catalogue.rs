use std::{
    fs,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    path::{Path, PathBuf},
    time::SystemTime,
};

use pintle::types::schema::{Prompt, Resource, Tool};
use serde::{Deserialize, Serialize};

use crate::{
    arguments::parameters,
    storage::{cache_directory, create_directory, read_private, write_private},
};

/// How many catalogues are kept. The oldest is removed for another.
const MAX_CATALOGUES: usize = 64;
/// The size of a catalogue that is read.
const MAX_BYTES: u64 = 1 << 20;
const MAX_TOOLS: usize = 1000;
const MAX_PARAMETERS: usize = 50;
const MAX_VALUES: usize = 50;
const MAX_NAME: usize = 128;

/// The names that a server offers, as far as a shell may insert them into a line.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct CachedCatalogue {
    /// The word of the target: two may have the same file.
    target: String,
    pub(super) tools: Vec<CachedTool>,
    #[serde(default)]
    pub(super) prompts: Vec<String>,
    #[serde(default)]
    pub(super) resources: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct CachedTool {
    pub(super) name: String,
    /// The name of each parameter, and its values if there are few.
    pub(super) parameters: Vec<(String, Vec<String>)>,
}

/// Stores the tools of a target for completion. A cache that cannot be written is left alone.
pub(crate) fn cache_tools(target: Option<&str>, tools: &[Tool]) {
    let Some(target) = target else { return };
    let tools = tools.iter().filter_map(cached).take(MAX_TOOLS).collect();
    store(&CachedCatalogue { target: target.to_owned(), tools, ..load(target).unwrap_or_default() });
}

/// Stores the names of the prompts and the URIs of the resources of a target for completion, if they were listed.
pub(crate) fn cache_names(target: Option<&str>, prompts: Option<&[Prompt]>, resources: Option<&[Resource]>) {
    let Some(target) = target.filter(|_| prompts.is_some() || resources.is_some()) else { return };
    let mut known = CachedCatalogue { target: target.to_owned(), ..load(target).unwrap_or_default() };
    let plain = |names: Vec<&String>| -> Vec<String> {
        names.into_iter().filter(|name| is_plain(name)).take(MAX_TOOLS).cloned().collect()
    };
    if let Some(prompts) = prompts {
        known.prompts = plain(prompts.iter().map(|prompt| &prompt.name).collect());
    }
    if let Some(resources) = resources {
        known.resources = plain(resources.iter().map(|resource| &resource.uri).collect());
    }
    store(&known);
}

/// Stores one tool of a target for completion.
pub(crate) fn cache_tool(target: Option<&str>, tool: &Tool) {
    let (Some(target), Some(tool)) = (target, cached(tool)) else { return };
    let mut known = load(target).unwrap_or_default();
    if known.tools.contains(&tool) {
        return;
    }
    known.target = target.to_owned();
    known.tools.retain(|other| other.name != tool.name);
    known.tools.push(tool);
    known.tools.truncate(MAX_TOOLS);
    store(&known);
}

/// Returns what is stored of a target.
pub(super) fn load(target: &str) -> Option<CachedCatalogue> {
    let bytes = read_private(&path(target)?, MAX_BYTES).ok()??;
    let found: CachedCatalogue = serde_json::from_slice(&bytes).ok()?;
    (found.target == target).then_some(found)
}

/// Returns whether a shell can insert a word as it is. Names of a server are not trusted: a line with `$(…)` would run it.
pub(super) fn is_plain(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(&byte);
    !word.is_empty() && word.len() <= MAX_NAME && !word.starts_with('-') && word.bytes().all(is_plain)
}

fn cached(tool: &Tool) -> Option<CachedTool> {
    let parameters = parameters(&tool.input_schema);
    let parameters = parameters.iter().filter(|parameter| is_plain(parameter.name)).take(MAX_PARAMETERS);
    let parameters = parameters.map(|parameter| {
        let values = parameter.values().into_iter().filter(|value| is_plain(value)).take(MAX_VALUES);
        (parameter.name.to_owned(), values.collect())
    });
    is_plain(&tool.name).then(|| CachedTool { name: tool.name.clone(), parameters: parameters.collect() })
}

fn store(catalogue: &CachedCatalogue) {
    let Some(path) = path(&catalogue.target) else { return };
    let Ok(bytes) = serde_json::to_vec(catalogue) else { return };
    let directory = path.parent().unwrap_or(Path::new("."));
    if bytes.len() as u64 > MAX_BYTES || create_directory(directory).is_err() {
        return;
    }
    if !path.exists() {
        prune(directory);
    }
    // It is only a cache.
    let _ = write_private(&path, &bytes);
}

fn path(target: &str) -> Option<PathBuf> {
    // The same in every process.
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(target);
    Some(cache_directory()?.join("catalogues").join(format!("{hash:016x}.json")))
}

/// Removes the oldest catalogues, so that there is room for another.
fn prune(directory: &Path) {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) {
            files.push((modified, entry.path()));
        }
    }
    files.sort();
    for (_, path) in files.iter().take((files.len() + 1).saturating_sub(MAX_CATALOGUES)) {
        // Another command may have removed it.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_a_shell_would_read_are_left_out() {
        let tool = |name: &str| {
            let schema = json!({"properties": {
                "port": {"enum": ["bergen", "$(x)"]}, "a b": {}, "`x`": {}, "dry": {"type": "boolean"}}});
            Tool::new(name, serde_json::from_value::<pintle::types::JsonObject>(schema).unwrap())
        };
        let plain = cached(&tool("tide")).unwrap();
        assert_eq!(
            plain.parameters,
            [
                ("port".to_owned(), vec!["bergen".to_owned()]),
                ("dry".to_owned(), vec!["true".to_owned(), "false".to_owned()])
            ]
        );
        for name in ["$(x)", "a;b", "--help", "a\u{1b}", "", "x\ny", "ü"] {
            assert_eq!(cached(&tool(name)), None, "{name}");
        }
    }
}
