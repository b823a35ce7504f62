use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{DraftArgument, ToolDraft, shortened};
use crate::{ServedTools, ToolEntry};

/// A draft of a tool, read from a file of go-go-mcp.
///
/// Its templates become places where they are the value of an argument and nothing else. What has no counterpart is left out, and named.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportDraft {
    /// The name of the tool.
    pub name: String,
    /// The reasons for what was left out of the tool, or for which somebody should look at it.
    pub left_out: Vec<String>,
    tool: ToolDraft,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct ImportedTool {
    name: String,
    short: String,
    long: String,
    flags: Vec<ImportedArgument>,
    arguments: Vec<ImportedArgument>,
    command: Vec<String>,
    shell_script: Option<String>,
    environment: BTreeMap<String, String>,
    cwd: Option<String>,
    capture_stderr: bool,
    save_script_dir: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportedArgument {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    help: String,
    required: bool,
    default: Option<Value>,
    choices: Vec<String>,
}

impl ImportDraft {
    /// Reads a tool of go-go-mcp: a file in YAML with `name`, `short`, `flags` and `command` or `shell-script`.
    ///
    /// # Errors
    ///
    /// The file is none of a tool, or runs with templates that have no counterpart. The error says which.
    ///
    /// ```
    /// use pintle_serve::ImportDraft;
    ///
    /// let file = "
    /// name: log
    /// short: Shows the latest commits.
    /// flags:
    ///   - { name: count, type: int, default: 10 }
    /// command: [git, log, '-n{{ .Args.count }}']
    /// ";
    /// let draft = ImportDraft::read(file).unwrap();
    /// assert!(draft.to_toml().contains(r#"command = ["git", "log", "-n{count}"]"#));
    /// ```
    pub fn read(yaml: &str) -> Result<Self, String> {
        let value =
            pintle_yaml::parse(yaml, &pintle_yaml::Limits::default()).map_err(|error| error.to_string())?;
        let read: ImportedTool =
            serde_json::from_value(value).map_err(|error| format!("it is no tool: {error}"))?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = read.name.chars().map(plain).collect();
        if name.is_empty() {
            return Err("it is no tool: it has no `name`".to_owned());
        }
        let mut draft = Self { name, left_out: Vec::new(), tool: ToolDraft::default() };
        for argument in read.flags.iter().chain(&read.arguments) {
            draft.add_argument(argument);
        }
        draft.tool.description = Some(shortened(match read.long.trim() {
            "" => &read.short,
            long => long,
        }));
        draft.tool.title = Some(read.short).filter(|short| !short.is_empty() && !read.long.trim().is_empty());
        draft.set_command(&read.command, read.shell_script.as_deref())?;
        draft.set_environment(&read.environment)?;
        draft.tool.cwd = read.cwd;
        if read.capture_stderr {
            draft.leave_out(
                "`capture-stderr`: the error output of a command is in its error, and not in its result",
            );
        }
        if read.save_script_dir.is_some() {
            draft.leave_out("`save-script-dir`: scripts are in no file; see `--dry-run`");
        }
        draft.check()
    }

    fn leave_out(&mut self, reason: impl Into<String>) {
        self.left_out.push(reason.into());
    }

    fn add_argument(&mut self, read: &ImportedArgument) {
        let (element, is_list) = match read.kind.strip_suffix("List") {
            Some(element) => (element, true),
            None => (&*read.kind, false),
        };
        let kind = match element {
            "int" | "integer" => "integer",
            "float" => "number",
            "bool" => "boolean",
            "" | "string" | "choice" | "date" | "secret" | "file" => "string",
            other => {
                self.leave_out(format!("the type `{other}` of `{}`, which is a string", read.name));
                "string"
            }
        };
        let argument = DraftArgument {
            kind,
            is_required: read.required,
            is_list,
            description: shortened(&read.help),
            values: read.choices.clone(),
            default: read.default.clone().filter(|default| !default.is_null() && !read.required),
        };
        self.tool.arguments.insert(argument_name(&read.name), argument);
    }

    fn set_command(&mut self, words: &[String], script: Option<&str>) -> Result<(), String> {
        let Some(script) = script else {
            self.tool.words = words.iter().map(|word| places(word, false)).collect::<Result<_, _>>()?;
            return Ok(());
        };
        if script.contains("MCP_ARGUMENTS_JSON_PATH") {
            return Err(
                "its script reads `MCP_ARGUMENTS_JSON_PATH`, which there is not: use `stdin`".to_owned()
            );
        }
        let (first, rest) = script.split_once('\n').unwrap_or((script, ""));
        let body = if first.starts_with("#!") { rest } else { script };
        if first.starts_with("#!") && !first.trim_end().ends_with("/sh") {
            self.leave_out(format!("`{first}`: `sh` runs the script"));
        }
        self.tool.line = Some(places(body, true)?);
        Ok(())
    }

    /// Sets the variables. The program `env`, or the shell, sets those that have places.
    fn set_environment(&mut self, environment: &BTreeMap<String, String>) -> Result<(), String> {
        let mut set = Vec::new();
        for (name, value) in environment {
            match value.contains("{{") {
                true => set.push((name, places(value, self.tool.line.is_some())?)),
                false => drop(self.tool.env.insert(name.clone(), value.clone())),
            }
        }
        if set.is_empty() {
            return Ok(());
        }
        match &mut self.tool.line {
            Some(line) => {
                let exports = set.iter().map(|(name, value)| format!("export {name}=\"{value}\"\n"));
                *line = exports.collect::<String>() + line;
            }
            None => {
                let words = set.iter().map(|(name, value)| format!("{name}={value}"));
                let words = ["env".to_owned()].into_iter().chain(words);
                self.tool.words = words.chain(std::mem::take(&mut self.tool.words)).collect();
            }
        }
        Ok(())
    }

    /// Returns the draft, if it is a tool as it is. Arguments without a place are left out.
    fn check(mut self) -> Result<Self, String> {
        loop {
            let entry: ToolEntry = serde_json::from_value(Value::Object(self.tool.entry()))
                .map_err(|error| error.to_string())?;
            let Err(fault) = ServedTools::new(&[(self.name.clone(), entry)].into(), "".as_ref()) else {
                return Ok(self);
            };
            let unused = self
                .tool
                .arguments
                .keys()
                .find(|name| fault.message.contains(&format!("`{name}` has no place")));
            let Some(unused) = unused.cloned() else { return Err(fault.message) };
            self.tool.arguments.remove(&unused);
            self.leave_out(format!("the argument `{unused}`, which the command does not use"));
        }
    }

    /// Returns whether calls of the tool can have an argument of this name.
    pub fn has_argument(&self, name: &str) -> bool {
        self.tool.arguments.contains_key(name)
    }

    /// Returns the draft as a tool of a file in TOML.
    pub fn to_toml(&self) -> String {
        self.tool.to_toml(&self.name)
    }
}

/// Returns a template of go-go-mcp with places: `{{ .Args.name }}` is one. A brace of a word is doubled, and one of a line for a shell is not.
fn places(template: &str, is_line: bool) -> Result<String, String> {
    let literal = |text: &str| match is_line {
        true => text.to_owned(),
        false => text.replace('{', "{{").replace('}', "}}"),
    };
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inner, after) = after.split_once("}}").unwrap_or((after, ""));
        let name = inner.trim_matches(['-', ' ']).strip_prefix(".Args.").filter(|name| is_name(name));
        let Some(name) = name else {
            return Err(format!(
                "`{{{{{inner}}}}}` is more than the value of an argument: write the tool by hand"
            ));
        };
        text += &format!("{}{{{}}}", literal(before), argument_name(name));
        rest = after;
    }
    Ok(text + &literal(rest))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Returns the name of an argument as a place has it.
fn argument_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_become_places() {
        let draft = ImportDraft::read(
            "name: back up\nshort: Backs up.\nlong: |\n  Backs up\n  a file.\nflags:\n  - { name: data-base, type: string, help: The file, required: true }\n  \
             - { name: bucket, type: choice, choices: [a, b], default: a }\n  - { name: tags, type: stringList }\n  - { name: old, type: keyValue }\n\
             command: [aws, '{}', '{{ .Args.data-base }}', 's3://{{.Args.bucket}}/x', '{{ .Args.tags }}']\n\
             environment: { PROFILE: '{{ .Args.bucket }}', MODE: fast }\ncwd: /var\ncapture-stderr: true\n",
        )
        .unwrap();
        assert_eq!(
            draft.to_toml(),
            r#"[tools.back_up]
title = "Backs up."
description = "Backs up a file."
command = ["env", "PROFILE={bucket}", "aws", "{{}}", "{data_base}", "s3://{bucket}/x", "{tags}"]
cwd = "/var"
env = { MODE = "fast" }

[tools.back_up.arguments]
bucket = { type = "string", enum = ["a", "b"], default = "a" }
data_base = { type = "string", description = "The file" }
tags = { type = "array", items = { type = "string" }, optional = true }
"#
        );
        let reasons = draft.left_out.join("\n");
        for part in ["`keyValue` of `old`", "`capture-stderr`", "the argument `old`"] {
            assert!(reasons.contains(part), "{reasons}");
        }
    }

    #[test]
    fn a_script_is_a_line_for_a_shell() {
        let read = |script: &str| {
            let script = script.replace('\n', "\n  ");
            ImportDraft::read(&format!(
                "name: a\nflags: [{{ name: x }}]\nshell-script: |\n  {script}\nenvironment: {{ Y: '{{{{ .Args.x }}}}' }}\n"
            ))
        };
        let draft = read("#!/bin/bash\nCMD=a\necho \"{{ .Args.x }}\" ${CMD}").unwrap();
        assert!(
            draft.to_toml().contains(
                r#"command = "export Y=\"{x}\"\nCMD=a\necho \"{x}\" ${CMD}\n"
shell = true"#
            ),
            "{}",
            draft.to_toml()
        );
        assert_eq!(draft.left_out, ["`#!/bin/bash`: `sh` runs the script"]);
        for (script, expected) in [
            ("{{ if .Args.x }}a{{ end }}", "`{{ if .Args.x }}` is more than the value of an argument"),
            ("echo '{{ .Args.x }}'", "is in single quotes"),
            ("{{ .Args.x }} -l", "would let a call choose the program"),
            ("jq . $MCP_ARGUMENTS_JSON_PATH", "`MCP_ARGUMENTS_JSON_PATH`"),
        ] {
            let reason = read(script).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn what_is_no_tool_is_refused() {
        for (file, expected) in [
            ("profiles: {}", "it has no `name`"),
            ("name: a", "it has no command"),
            ("name: [a", "line "),
            ("name: a\nflags: 3", "it is no tool"),
        ] {
            let reason = ImportDraft::read(file).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
