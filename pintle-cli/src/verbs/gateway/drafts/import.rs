use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use pintle_serve::ImportDraft;
use serde::Deserialize;
use serde_json::{Value, json};

use super::write_new;
use crate::{
    failure::Failure,
    output::{Output, counted},
    verbs::gateway::file::read_text,
};

const NEXT: &str = "pintle serve tools.toml --import FOLDER";
/// The most files that are read, and the most folders in each other.
const MAX_FILES: usize = 512;
const MAX_DEPTH: usize = 8;

/// Profiles of go-go-mcp: choices of tools.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImportedProfiles {
    default_profile: Option<String>,
    profiles: BTreeMap<String, ImportedProfile>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportedProfile {
    description: String,
    tools: ImportedSources,
    prompts: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportedSources {
    directories: Vec<ImportedSource>,
    files: Vec<ImportedSource>,
    external_commands: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportedSource {
    path: PathBuf,
    defaults: Value,
    overrides: Value,
    blacklist: Value,
    whitelist: Value,
}

/// Writes a file with the tools and profiles of go-go-mcp at a path, or prints it.
pub(in crate::verbs::gateway) fn write(
    source: &Path,
    path: Option<&Path>,
    output: &Output,
) -> Result<(), Failure> {
    let mut import = Import::default();
    import.add(source).map_err(|reason| Failure::usage(format!("`{}`: {reason}", source.display()), NEXT))?;
    let text = import.text();
    if import.tools.is_empty() {
        let reasons = import.left_out.join("; ");
        return Err(Failure::usage(
            format!("`{}` has no tool that can be imported: {reasons}", source.display()),
            NEXT,
        ));
    }
    write_new(path, &text, NEXT)?;
    import.left_out.iter().for_each(|reason| output.note(format!("left out: {reason}")));
    match path {
        None => output.result(&json!({ "file": text, "left_out": import.left_out }), |shown| {
            shown.block(text.trim_end());
        }),
        Some(path) => {
            let tools = import.tools.len();
            output.result(&json!({ "path": path, "tools": tools, "left_out": import.left_out }), |shown| {
                let (path, tools) = (path.display(), counted(tools, "tool", "tools"));
                shown.line(format!("{path}: {tools}; check it with `pintle serve {path} --check`"));
            })
        }
    }
}

/// The tools that were read, and what was left out.
#[derive(Default)]
struct Import {
    tools: BTreeMap<String, ImportDraft>,
    /// The text of the profiles.
    profiles: String,
    left_out: Vec<String>,
}

impl Import {
    fn add(&mut self, source: &Path) -> Result<(), String> {
        if source.is_dir() {
            self.add_all(&files(source)?);
            return Ok(());
        }
        let text = read_text(source).map_err(|error| error.to_string())?;
        let value =
            pintle_yaml::parse(&text, &pintle_yaml::Limits::default()).map_err(|error| error.to_string())?;
        match value.get("profiles") {
            None => drop(self.add_all(&[source.to_owned()])),
            Some(_) => {
                let read = serde_json::from_value(value).map_err(|error| error.to_string())?;
                self.add_profiles(read, source.parent().unwrap_or(Path::new("")));
            }
        }
        Ok(())
    }

    /// Adds the tools of these files, and returns their names.
    fn add_all(&mut self, paths: &[PathBuf]) -> Vec<String> {
        let mut names = Vec::new();
        for path in paths {
            let shown = path.display();
            let read = read_text(path).map_err(|error| error.to_string());
            match read.and_then(|text| ImportDraft::read(&text)) {
                Ok(draft) => {
                    let reasons = draft.left_out.iter().map(|reason| format!("`{}`: {reason}", draft.name));
                    if !self.tools.contains_key(&draft.name) {
                        self.left_out.extend(reasons);
                    }
                    names.push(draft.name.clone());
                    self.tools.insert(draft.name.clone(), draft);
                }
                Err(reason) => self.leave_out(format!("`{shown}`: {reason}")),
            }
        }
        names
    }

    fn add_profiles(&mut self, read: ImportedProfiles, folder: &Path) {
        for (name, profile) in read.profiles {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let server: String = name.chars().map(plain).take(32).collect();
            let (mut only, mut changes) = (Vec::new(), String::new());
            for source in profile.tools.directories.iter().chain(&profile.tools.files) {
                // go-go-mcp reads paths from the directory that it runs in.
                let below =
                    [folder.join(&source.path), source.path.clone()].into_iter().find(|path| path.exists());
                let Some(path) = below else {
                    self.leave_out(format!("profile `{name}`: there is no `{}`", source.path.display()));
                    continue;
                };
                let found = if path.is_dir() { files(&path).unwrap_or_default() } else { vec![path] };
                let tools = self.add_all(&found);
                changes += &self.changes(&name, &server, source, &tools);
                only.extend(tools);
            }
            let left_out = [
                ("external_commands", !profile.tools.external_commands.is_empty()),
                ("prompts", !profile.prompts.is_null()),
            ];
            for (part, _) in left_out.iter().filter(|(_, is_there)| *is_there) {
                self.leave_out(format!("profile `{name}`: `{part}`"));
            }
            only.sort();
            only.dedup();
            let instructions = json!(profile.description);
            let _ = write!(
                self.profiles,
                "\n[servers.{server}]\ninstructions = {instructions}\nonly = {}\n{changes}",
                json!(only)
            );
        }
        if let Some(name) = read.default_profile {
            self.leave_out(format!("`defaultProfile` `{name}`: give it as `--profile {name}`"));
        }
    }

    /// Returns the changes of the tools of a source: the values that arguments have by default, or always.
    fn changes(&mut self, profile: &str, server: &str, source: &ImportedSource, tools: &[String]) -> String {
        let shown = source.path.display();
        for (part, value) in [("blacklist", &source.blacklist), ("whitelist", &source.whitelist)] {
            if !value.is_null() {
                self.leave_out(format!(
                    "profile `{profile}`: `{part}` of `{shown}`, which go-go-mcp ignores; `fix` has what models do not choose"
                ));
            }
        }
        let mut lines: BTreeMap<&String, String> = BTreeMap::new();
        for (part, word, values) in
            [("defaults", "default", &source.defaults), ("overrides", "fix", &source.overrides)]
        {
            // They are grouped by layers, whose arguments are those of the tool.
            let layers = values.as_object().into_iter().flat_map(|layers| layers.values());
            let set: Vec<(&String, &Value)> = layers.filter_map(Value::as_object).flatten().collect();
            for (argument, value) in &set {
                if value.is_object() || !tools.iter().any(|tool| self.has(tool, argument)) {
                    self.leave_out(format!("profile `{profile}`: `{argument}` in `{part}` of `{shown}`"));
                }
            }
            for tool in tools {
                let of_tool =
                    set.iter().filter(|(argument, value)| !value.is_object() && self.has(tool, argument));
                let members: Vec<String> =
                    of_tool.map(|(argument, value)| format!("{argument} = {value}")).collect();
                if !members.is_empty() {
                    let line = format!("{word} = {{ {} }}\n", members.join(", "));
                    lines.entry(tool).or_default().push_str(&line);
                }
            }
        }
        lines.iter().map(|(tool, lines)| format!("\n[servers.{server}.tools.{tool}]\n{lines}")).collect()
    }

    fn has(&self, tool: &str, argument: &str) -> bool {
        self.tools.get(tool).is_some_and(|draft| draft.has_argument(argument))
    }

    fn leave_out(&mut self, reason: String) {
        if !self.left_out.contains(&reason) {
            self.left_out.push(reason);
        }
    }

    fn text(&self) -> String {
        let mut text = "# Imported from go-go-mcp by `pintle serve --import`.\n".to_owned();
        for reason in &self.left_out {
            let _ = writeln!(text, "# Left out: {}", reason.replace(char::is_control, " "));
        }
        for draft in self.tools.values() {
            let _ = write!(text, "\n{}", draft.to_toml());
        }
        text + &self.profiles
    }
}

/// Returns the files in YAML of a folder and those in it, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut found, mut folders) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop() {
        for entry in folder.read_dir().map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
            match () {
                () if path.is_symlink() => {}
                () if path.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                () if is_yaml => found.push(path),
                () => {}
            }
            if found.len() + folders.len() > MAX_FILES {
                return Err(format!("it has more than {MAX_FILES} files and folders: import a part of it"));
            }
        }
    }
    found.sort();
    Ok(found)
}
