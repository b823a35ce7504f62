//! Drafts of tools from the help texts of programs.

use super::{DraftArgument, ToolDraft, shortened};

/// The headings of lists of commands, in lower case.
const COMMANDS: [&str; 4] = ["commands:", "available commands:", "subcommands:", "positional arguments:"];

/// A draft of a tool, read from the help text of a program.
///
/// It is a beginning: its writer removes what is not needed, and reads what is left.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct HelpDraft {
    /// The program's own words about what it does.
    pub description: Option<String>,
    /// The commands of the program, each of which has a help of its own.
    pub commands: Vec<String>,
    tool: ToolDraft,
}

impl HelpDraft {
    /// Reads the help text of a program that was called by these words, such as `["git", "log"]`: as `clap`, `argparse`, `click`, Cobra and
    /// most programs write it.
    ///
    /// ```
    /// use pintle_serve::HelpDraft;
    ///
    /// let help = "Counts lines.\n\nUsage: count [OPTIONS] <FILE>\n\nOptions:\n  -l, --longest   Print the longest too\n";
    /// let draft = HelpDraft::read(&["count".to_owned()], help);
    /// assert!(draft.to_toml("count").contains(r#"command = ["count", "{longest?--longest}", "{file}"]"#));
    /// ```
    pub fn read(words: &[String], help: &str) -> Self {
        let mut draft = Self::default();
        draft.tool.words = words.to_vec();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let usage = usage(&lines);
        draft.description = description(&lines);
        draft.tool.description.clone_from(&draft.description);
        draft.commands = commands(&lines);
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            let Some((spec, mut text)) = option_line(line) else { continue };
            let depth = indent(line);
            // A text goes on in lines that are indented further.
            while let Some(next) =
                lines.get(at).filter(|next| indent(next) > depth && option_line(next).is_none())
            {
                text = format!("{text} {}", next.trim());
                at += 1;
            }
            draft.add_option(spec, text.trim());
        }
        let is_called = |word: &&String| {
            words.iter().any(|called| called == *word || called.rsplit('/').next() == Some(&***word))
        };
        for word in usage.iter().skip_while(is_called) {
            draft.add_positional(word, &lines);
        }
        draft
    }

    fn add_option(&mut self, spec: &str, text: &str) {
        let Some(HelpOption { flag, value }) = HelpOption::read(spec) else { return };
        if matches!(&*flag, "--help" | "-h" | "--version" | "-V" | "-?") {
            return;
        }
        let name = argument_name(&flag);
        if name.is_empty() || self.tool.arguments.contains_key(&name) {
            return;
        }
        let values = choices(value.as_deref().unwrap_or_default(), text);
        match &value {
            None => self.tool.words.push(format!("{{{name}?{flag}}}")),
            Some(_) if flag.starts_with("--") => self.tool.words.push(format!("{flag}={{{name}}}")),
            Some(_) => self.tool.words.extend([format!("{{{name}?{flag}}}"), format!("{{{name}}}")]),
        }
        let kind = value.as_deref().map_or("boolean", kind);
        let description = shortened(text);
        self.tool
            .arguments
            .insert(name, DraftArgument { kind, description, values, ..DraftArgument::default() });
    }

    /// Adds a word of the usage that is no option.
    fn add_positional(&mut self, word: &str, lines: &[&str]) {
        let is_optional = word.starts_with('[');
        let plain = word.trim_matches(['[', ']', '<', '>', '.', ' ']);
        let lower = plain.to_lowercase();
        let is_name = !plain.is_empty() && plain.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
        if !is_name || plain.starts_with('-') || matches!(&*lower, "options" | "option" | "flags" | "args") {
            return;
        }
        if matches!(&*lower, "command" | "commands" | "subcommand") {
            return;
        }
        let is_list = word.contains("...");
        let name = argument_name(&lower);
        if self.tool.arguments.contains_key(&name) {
            return;
        }
        let explained = lines.iter().find_map(|line| {
            let (word, text) = line.trim_start().split_once("  ")?;
            let word = word.trim_matches(['[', ']', '<', '>', '.']);
            (indent(line) > 0 && word == plain).then(|| text.trim())
        });
        self.tool.words.push(format!("{{{name}}}"));
        let argument = DraftArgument {
            kind: "string",
            is_required: !is_optional,
            is_list,
            description: shortened(explained.unwrap_or_default()),
            ..DraftArgument::default()
        };
        self.tool.arguments.insert(name, argument);
    }

    /// Returns the draft as a tool of a file in TOML.
    pub fn to_toml(&self, name: &str) -> String {
        self.tool.to_toml(name)
    }
}

/// An option, by its longest name.
struct HelpOption {
    flag: String,
    value: Option<String>,
}

impl HelpOption {
    /// Reads `-c, --count <N>`, `-c COUNT, --count COUNT`, `--count int` or `--[no-]count`.
    fn read(spec: &str) -> Option<Self> {
        let (mut flag, mut value) = (String::new(), None);
        let (names, set) = spec.split_once('{').map_or((spec, None), |(names, set)| (names, Some(set)));
        for part in names.split([',', '/']).map(str::trim) {
            let end = part.find([' ', '=', '[']).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            if name.starts_with("--no-") && !flag.is_empty() {
                continue;
            }
            let is_flag = name.len() > 1 && name.starts_with('-') && !name.trim_start_matches('-').is_empty();
            if is_flag && name.len() > flag.len() {
                name.clone_into(&mut flag);
            }
            let rest = rest.trim_matches([' ', '=', '[', ']', '<', '>', '.']);
            if is_flag && !rest.is_empty() {
                value = Some(rest.to_owned());
            }
        }
        // `--kind {a,b}` is one of a set.
        value = set.map(|set| format!("{{{set}")).or(value);
        (!flag.is_empty()).then_some(Self { flag, value })
    }
}

/// Returns the option of a line, and the beginning of its text.
fn option_line(line: &str) -> Option<(&str, String)> {
    let trimmed = line.trim_start();
    if indent(line) == 0 || !trimmed.starts_with('-') || trimmed.starts_with("---") {
        return None;
    }
    let (spec, text) = trimmed.split_once("  ").or_else(|| trimmed.split_once('\t')).unwrap_or((trimmed, ""));
    Some((spec, text.trim().to_owned()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the words of the usage, with the parts of options left out.
fn usage(lines: &[&str]) -> Vec<String> {
    let is_usage = |line: &str| line.trim_start().to_lowercase().starts_with("usage:");
    let Some(at) = lines.iter().position(|line| is_usage(line)) else { return Vec::new() };
    let begins = lines[at].trim_start()["usage:".len()..].trim();
    let mut text = begins.to_owned();
    for line in lines.iter().skip(at + 1).take_while(|line| indent(line) > 0 && !line.trim().is_empty()) {
        // Cobra writes the usage below its heading, and another line for commands.
        if !text.is_empty() && begins.is_empty() {
            break;
        }
        text = format!("{text} {}", line.trim());
    }
    let mut words = Vec::new();
    let mut depth = 0_usize;
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        match letter {
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if letter != ' ' || depth > 0 {
            word.push(letter);
            continue;
        }
        let word = std::mem::take(&mut word);
        // `[file ...]` is a list, and `[-c COUNT]` an option.
        if word.contains("...")
            && words
                .last()
                .is_some_and(|last: &String| word.contains(last.trim_matches(['[', '<', '>', ']'])))
        {
            words.pop();
        }
        if !word.is_empty() && !word.trim_start_matches(['[', '(']).starts_with('-') {
            words.push(match word.split_once(' ').filter(|(_, rest)| rest.starts_with("...")) {
                Some((first, _)) => format!("{first}...]"),
                None => word,
            });
        }
    }
    words
}

/// Returns the first paragraph that is neither the usage nor a list.
fn description(lines: &[&str]) -> Option<String> {
    let mut paragraphs = lines.split(|line| line.trim().is_empty());
    let text = paragraphs.find(|paragraph| {
        let first = paragraph.first().map_or("", |line| line.trim());
        let is_usage = first.to_lowercase().starts_with("usage");
        !first.is_empty() && !is_usage && !first.ends_with(':') && option_line(&format!(" {first}")).is_none()
    })?;
    let text: Vec<&str> = text.iter().map(|line| line.trim()).collect();
    Some(shortened(&text.join(" ")))
}

fn commands(lines: &[&str]) -> Vec<String> {
    let Some(at) = lines.iter().position(|line| COMMANDS.contains(&&*line.trim().to_lowercase())) else {
        return Vec::new();
    };
    // `argparse` lists its commands as values of one positional.
    let is_positional = lines[at].to_lowercase().starts_with("positional");
    let below = lines.iter().skip(at + 1).take_while(|line| indent(line) > 0);
    if is_positional {
        let sets = below.filter_map(|line| line.trim().strip_prefix('{')?.split_once('}'));
        return sets.flat_map(|(set, _)| set.split(',').map(str::to_owned)).collect();
    }
    let depth = lines.get(at + 1).map_or(0, |line| indent(line));
    let names = below.filter(|line| indent(line) == depth).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(|name| name.trim_end_matches([',', ':']).to_owned()).collect()
}

/// Returns the values that an option is restricted to.
fn choices(value: &str, text: &str) -> Vec<String> {
    let set = value.strip_prefix('{').and_then(|set| set.split_once('}')).map(|(set, _)| set);
    let listed =
        text.split_once("[possible values: ").and_then(|(_, rest)| rest.split_once(']')).map(|(set, _)| set);
    let piped = value.contains('|').then_some(value);
    let set = set.or(listed).or(piped).unwrap_or_default();
    set.split([',', '|']).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

fn kind(value: &str) -> &'static str {
    match &*value.to_lowercase() {
        "int" | "integer" | "uint" | "n" | "num" | "count" | "number" | "port" => "integer",
        "float" | "float64" | "double" => "number",
        _ => "string",
    }
}

fn argument_name(flag: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    flag.trim_matches('-').chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{ServedTools, ToolEntry};

    /// Returns the draft, which is a tool as it is.
    fn draft(words: &str, help: &str) -> (String, HelpDraft) {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let draft = HelpDraft::read(&words, help);
        let text = draft.to_toml("t");
        let file: BTreeMap<String, BTreeMap<String, ToolEntry>> =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        ServedTools::new(&file["tools"], ".".as_ref()).unwrap_or_else(|error| panic!("{error}: {text}"));
        (text, draft)
    }

    fn has(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }

    #[test]
    fn clap() {
        let (text, _) = draft(
            "fd",
            "A \"fast\" finder.\n\nUsage: fd [OPTIONS] <PATTERN> [PATH]...\n\nArguments:\n  <PATTERN>  The pattern\n  [PATH]...  Where\n\n\
             Options:\n  -H, --hidden           Search hidden files\n  -t, --type <filetype>  Kind [possible values: file, dir]\n      --max-depth <N>\n          \
             The depth.\n  -h, --help             Print help\n  -V, --version          Print version\n",
        );
        has(
            &text,
            &[
                r#"description = "A \"fast\" finder.""#,
                r#"command = ["fd", "{hidden?--hidden}", "--type={type}", "--max-depth={max_depth}", "{pattern}", "{path}"]"#,
                r#"hidden = { type = "boolean", description = "Search hidden files", optional = true }"#,
                r#"type = { type = "string", enum = ["file", "dir"], description"#,
                r#"max_depth = { type = "integer", description = "The depth.", optional = true }"#,
                r#"pattern = { type = "string", description = "The pattern" }"#,
                r#"path = { type = "array", items = { type = "string" }, description = "Where", optional = true }"#,
            ],
        );
        assert!(!text.contains("help") && !text.contains("version"), "{text}");
    }

    #[test]
    fn argparse() {
        let (text, _) = draft(
            "python3 report.py",
            "usage: report.py [-h] [--month MONTH] [-v] [--kind {a,b}]\n                 source [more ...]\n\nMakes the report.\n\n\
             positional arguments:\n  source               where from\n\noptions:\n  -h, --help           show this help message and exit\n  \
             -m MONTH, --month MONTH\n                       which month\n  -v                   talk\n  --kind {a,b}\n",
        );
        has(
            &text,
            &[
                r#"description = "Makes the report.""#,
                r#""--month={month}", "{v?-v}", "--kind={kind}", "{source}", "{more}"]"#,
                r#"source = { type = "string", description = "where from" }"#,
                r#"month = { type = "string", description = "which month", optional = true }"#,
                r#"kind = { type = "string", enum = ["a", "b"], optional = true }"#,
            ],
        );
    }

    #[test]
    fn cobra_and_click() {
        let (text, draft_of_all) = draft(
            "kubectl",
            "Controls a cluster.\n\nUsage:\n  kubectl [command]\n\nAvailable Commands:\n  get         Show\n  help        Help\n  logs        Print logs\n\n\
             Flags:\n      --context string   The context\n      --timeout int      Seconds (default 10)\n  -q, --quiet            Say less\n",
        );
        assert_eq!(draft_of_all.commands, ["get", "logs"]);
        has(
            &text,
            &[
                r#""--context={context}", "--timeout={timeout}", "{quiet?--quiet}""#,
                r#"timeout = { type = "integer""#,
            ],
        );
        let (text, _) = draft(
            "tool run",
            "Usage: tool run [OPTIONS] NAME\n\n  Runs it.\n\nOptions:\n  --count INTEGER  How often. [default: 1]\n  --fast / --no-fast  Hurry.\n  \
             -o FILE          Output.\n  --help           Show this message and exit.\n",
        );
        has(
            &text,
            &[
                r#"command = ["tool", "run", "--count={count}", "{fast?--fast}", "{o?-o}", "{o}", "{name}"]"#,
                r#"description = "Runs it.""#,
                r#"count = { type = "integer", description = "How often. [default: 1]", optional = true }"#,
                r#"name = { type = "string" }"#,
            ],
        );
    }

    #[test]
    fn any_text_is_a_tool() {
        for help in [
            "",
            "\u{7}\"\\\n",
            "usage:",
            "Usage: [",
            "  -",
            "  --",
            "  --=x",
            "  -é x  y\n",
            "Commands:\n\n",
            "usage: t [[[ <a",
        ] {
            draft("t", help);
        }
    }
}
