use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use pintle_serve::{PromptEntry, ResourceEntry, ToolEntry, WorkerEntry};
use serde::Deserialize;

use super::{disk::read_own, text::FileText};
use crate::verbs::gateway::api::ApiEntry;

/// The most files that a file includes.
const MAX_FILES: usize = 512;

/// The entries of the files that another one includes.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IncludedFile {
    /// The version of the format, which was checked before.
    #[serde(rename = "version")]
    _version: Option<u32>,
    pub(super) tools: BTreeMap<String, ToolEntry>,
    pub(super) workers: BTreeMap<String, WorkerEntry>,
    pub(super) prompts: BTreeMap<String, PromptEntry>,
    pub(super) resources: BTreeMap<String, ResourceEntry>,
    pub(super) apis: BTreeMap<String, ApiEntry>,
}

/// Reads the files of these patterns. Their paths are relative to the folder afterwards.
pub(super) fn read(folder: &Path, patterns: &[String]) -> Result<IncludedFile, String> {
    let mut included = IncludedFile::default();
    for pattern in patterns {
        let wrong = |reason: String| format!("`{pattern}` of `include`: {reason}");
        let paths = matches(folder, pattern).map_err(|error| wrong(error.to_string()))?;
        if paths.is_empty() {
            return Err(wrong("there is no such file: correct it, or remove it".to_owned()));
        }
        if paths.len() > MAX_FILES {
            return Err(wrong(format!("it names more than {MAX_FILES} files: name fewer")));
        }
        for path in paths {
            included.add(folder, &path).map_err(|reason| format!("`{}`: {reason}", path.display()))?;
        }
    }
    Ok(included)
}

impl IncludedFile {
    fn add(&mut self, root: &Path, path: &Path) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new(""));
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            let mut prompt = PromptEntry::default();
            prompt.file = path.file_name().map(PathBuf::from);
            let prompt = prompt.load(folder)?;
            return add("prompt", &mut self.prompts, [(name, prompt)].into());
        }
        let text = read_own(path).map_err(|error| format!("it cannot be read: {error}"))?;
        let mut file: Self = FileText::of(path, &text).decode()?;
        // Paths are relative to the file that has them.
        let base = folder.strip_prefix(root).unwrap_or(folder);
        let below = |path: &Path| Some(base.join(path));
        for tool in file.tools.values_mut().filter(|tool| tool.worker.is_none() && tool.request.is_none()) {
            tool.cwd = below(tool.cwd.as_deref().unwrap_or(Path::new("")));
        }
        for worker in file.workers.values_mut() {
            worker.cwd = below(worker.cwd.as_deref().unwrap_or(Path::new("")));
        }
        for resource in file.resources.values_mut() {
            resource.cwd = below(resource.cwd.as_deref().unwrap_or(Path::new("")));
            resource.file = resource.file.as_deref().and_then(below);
            resource.folder = resource.folder.as_deref().and_then(below);
        }
        for prompt in file.prompts.values_mut() {
            prompt.file = prompt.file.as_deref().and_then(below);
        }
        for api in file.apis.values_mut() {
            api.move_into(base);
        }
        add("API", &mut self.apis, file.apis)?;
        add("tool", &mut self.tools, file.tools)?;
        add("worker", &mut self.workers, file.workers)?;
        add("prompt", &mut self.prompts, file.prompts)?;
        add("resource", &mut self.resources, file.resources)
    }
}

/// Adds entries, each of which has a name of its own.
pub(super) fn add<T>(
    kind: &str,
    all: &mut BTreeMap<String, T>,
    more: BTreeMap<String, T>,
) -> Result<(), String> {
    match more.keys().find(|name| all.contains_key(*name)) {
        Some(name) => Err(format!("the {kind} `{name}` is in another file, too: rename one")),
        None => {
            all.extend(more);
            Ok(())
        }
    }
}

/// Returns the files of a pattern, in the order of their names. `*` stands in the last part only.
fn matches(folder: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let path = folder.join(pattern);
    let (parent, name) = (path.parent().unwrap_or(folder), path.file_name().and_then(|name| name.to_str()));
    let Some((before, after)) = name.and_then(|name| name.split_once('*')) else {
        return Ok(if path.is_file() { vec![path] } else { Vec::new() });
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let mut paths = Vec::new();
    for entry in fs::read_dir(parent)?.take(MAX_FILES * 8) {
        let entry = entry?;
        let name = entry.file_name();
        let fits = name.to_str().is_some_and(|name| {
            !name.starts_with('.')
                && name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        });
        let path = parent.join(name);
        if !fits || !path.is_file() {
            continue;
        }
        // Who may write to the folder could have a link lead to a file that only its owner reads.
        if entry.file_type()?.is_symlink() && !path.canonicalize()?.starts_with(parent.canonicalize()?) {
            let message = format!("`{}` is a link out of its folder: name the file", path.display());
            return Err(io::Error::other(message));
        }
        paths.push(path);
    }
    paths.sort();
    Ok(paths)
}
