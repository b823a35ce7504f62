//! Drafts of tools from the help texts of programs.

use super::{DraftArgument, ToolDraft, shortened};

/// The headings of lists of commands, in lower case.
const COMMANDS: [&str; 4] = ["commands:", "available commands:", "subcommands:", "positional arguments:"];

/// The words of a usage that are no arguments, in lower case.
const NO_ARGUMENTS: [&str; 7] = ["options", "option", "flags", "args", "command", "commands", "subcommand"];

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
        let Usage { words: usage, below } = Usage::read(&lines);
        draft.description = description(&lines);
        draft.tool.description.clone_from(&draft.description);
        draft.commands = commands(&lines);
        let mut options = Vec::new();
        let mut at = below;
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
            options.extend(HelpOption::read(spec).map(|option| (option, text.trim().to_owned())));
        }
        let file_name = |word: &str| word.rsplit('/').next().map(str::to_owned);
        let is_called = |word: &&String| words.iter().any(|called| file_name(called) == file_name(word));
        let mut usage = usage.iter().skip_while(is_called).peekable();
        let (mut positional, mut required) = (Vec::new(), Vec::new());
        while let Some(word) = usage.next() {
            if !word.starts_with('-') {
                positional.push(word);
                continue;
            }
            let (flag, value) =
                word.split_once('=').map_or((&**word, None), |(flag, rest)| (flag, Some(rest)));
            let option = options.iter().find(|(option, _)| option.names.iter().any(|name| name == flag));
            if value.is_none() && option.is_none_or(|(option, _)| option.value.is_some()) {
                let _ = usage.next_if(|next| !next.starts_with(['-', '[']));
            }
            required.push(flag);
        }
        for (option, text) in options {
            let is_required = option.names.iter().any(|name| required.contains(&&**name));
            draft.add_option(option, &text, is_required || calls_required(&text));
        }
        for word in positional {
            draft.add_positional(word, &lines);
        }
        draft
    }

    fn add_option(&mut self, option: HelpOption, text: &str, is_required: bool) {
        let HelpOption { flag, value, .. } = option;
        if matches!(&*flag, "--help" | "-h" | "--version" | "-V" | "-?") {
            return;
        }
        let name = argument_name(&flag);
        let values = choices(value.as_deref().unwrap_or_default(), text);
        let words = match &value {
            None => vec![format!("{{{name}?{flag}}}")],
            Some(_) if flag.starts_with("--") => vec![format!("{flag}={{{name}}}")],
            Some(_) if is_required => vec![flag, format!("{{{name}}}")],
            Some(_) => vec![format!("{{{name}?{flag}}}"), format!("{{{name}}}")],
        };
        let argument = DraftArgument {
            kind: value.as_deref().map_or("boolean", kind),
            is_required: is_required && value.is_some(),
            description: shortened(text),
            values,
            ..DraftArgument::default()
        };
        self.add(name, words, argument);
    }

    /// Adds an argument and its words, unless there is one of this name.
    fn add(&mut self, name: String, words: Vec<String>, argument: DraftArgument) {
        if !name.is_empty() && !self.tool.arguments.contains_key(&name) {
            self.tool.words.extend(words);
            self.tool.arguments.insert(name, argument);
        }
    }

    /// Adds a word of the usage that is no option.
    fn add_positional(&mut self, word: &str, lines: &[&str]) {
        let is_optional = word.starts_with('[');
        let plain = word.trim_matches(['[', ']', '<', '>', '.', ' ']);
        let lower = plain.to_lowercase();
        let is_name = !plain.is_empty() && plain.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
        if !is_name || plain.starts_with('-') || NO_ARGUMENTS.contains(&&*lower) {
            return;
        }
        let name = argument_name(&lower);
        let explained = lines.iter().find_map(|line| {
            let (word, text) = line.trim_start().split_once("  ")?;
            let word = word.trim_matches(['[', ']', '<', '>', '.']);
            (indent(line) > 0 && word == plain).then(|| text.trim())
        });
        let words = vec![format!("{{{name}}}")];
        let argument = DraftArgument {
            kind: "string",
            is_required: !is_optional,
            is_list: word.contains("..."),
            description: shortened(explained.unwrap_or_default()),
            ..DraftArgument::default()
        };
        self.add(name, words, argument);
    }

    /// Returns the draft as a tool of a file in TOML.
    pub fn to_toml(&self, name: &str) -> String {
        self.tool.to_toml(name)
    }
}

/// An option.
struct HelpOption {
    /// The longest name.
    flag: String,
    names: Vec<String>,
    value: Option<String>,
}

impl HelpOption {
    /// Reads `-c, --count <N>`, `-c COUNT, --count COUNT`, `--count int` or `--[no-]count`.
    fn read(spec: &str) -> Option<Self> {
        let (mut flag, mut all, mut value) = (String::new(), Vec::new(), None);
        let (names, set) = spec.split_once('{').map_or((spec, None), |(names, set)| (names, Some(set)));
        for part in names.split([',', '/']).map(str::trim) {
            let end = part.find([' ', '=', '[']).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            // `--verbose...` can be given more than once.
            let name = name.trim_end_matches('.');
            if name.starts_with("--no-") && !flag.is_empty() {
                continue;
            }
            let is_flag = name.len() > 1 && name.starts_with('-') && !name.trim_start_matches('-').is_empty();
            if is_flag {
                all.push(name.to_owned());
            }
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
        (!flag.is_empty()).then_some(Self { flag, names: all, value })
    }
}

/// Returns the option of a line, and the beginning of its text.
fn option_line(line: &str) -> Option<(&str, String)> {
    let trimmed = line.trim_start();
    if indent(line) == 0 || !trimmed.starts_with('-') || trimmed.starts_with("---") {
        return None;
    }
    let parts = trimmed.split_once("  ").or_else(|| trimmed.split_once('\t'));
    // A long option may leave room for one space only.
    let parts = parts.or_else(|| trimmed.find("> ").map(|end| trimmed.split_at(end + 1)));
    let (spec, text) = parts.unwrap_or((trimmed, ""));
    Some((spec, text.trim().to_owned()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The usage of a program.
#[derive(Default)]
struct Usage {
    /// The words, but for options that can be left out.
    words: Vec<String>,
    /// The number of the first line below it.
    below: usize,
}

impl Usage {
    fn read(lines: &[&str]) -> Self {
        let is_usage = |line: &str| line.trim_start().to_lowercase().starts_with("usage:");
        let Some(at) = lines.iter().position(|line| is_usage(line)) else { return Self::default() };
        let begins = lines[at].trim_start()["usage:".len()..].trim();
        let mut text = begins.to_owned();
        let mut below = at + 1;
        // What goes on is indented below the first word. Options may follow at once, and another usage.
        let goes_on = |line: &&&str| {
            let is_option = option_line(line).is_some() && indent(line) < "usage: ".len();
            indent(line) > 0 && !is_option && !line.trim_start().starts_with("or:")
        };
        while let Some(line) = lines.get(below).filter(goes_on) {
            // Cobra writes the usage below its heading, and another line for commands.
            if !text.is_empty() && begins.is_empty() {
                break;
            }
            text = format!("{text} {}", line.trim());
            below += 1;
        }
        Self { words: usage_words(&text), below }
    }
}

/// Returns the words of a usage, but for options that can be left out.
fn usage_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
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
        if word.is_empty() || word.starts_with("[-") || word.starts_with("(-") {
            continue;
        }
        // `[file ...]` is a list, and `file [file ...]` one that is not empty.
        let Some((first, _)) = word.split_once(' ').filter(|(_, rest)| rest.starts_with("...")) else {
            words.push(word);
            continue;
        };
        let name = first.trim_start_matches('[');
        match words.last_mut().filter(|last| last.trim_matches(['<', '>']) == name.trim_matches(['<', '>'])) {
            Some(last) => last.push_str("..."),
            None => words.push(format!("{first}...]")),
        }
    }
    words
}

/// Returns whether a text says so in brackets, as click does: `[env var: A; required]`.
fn calls_required(text: &str) -> bool {
    let groups = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    groups.flat_map(|(group, _)| group.split(';')).any(|part| part.trim() == "required")
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
    // `KEY=VALUE|PATH` are kinds of values.
    let piped = Some(value).filter(|value| value.contains('|') && !value.contains(char::is_uppercase));
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
    fn options_that_are_needed_are_no_positionals() {
        let argparse = "usage: convert.py [-h] -o FILE [-v] --level LEVEL (--fast | --map MAP)\n                  source [source ...]\n\n\
             options:\n  -h, --help            show this help message and exit\n  -o FILE, --out FILE   where to\n  -v, --verbose\n  --level LEVEL\n  \
             --fast\n  --map MAP\n";
        let (text, _) = draft("python3 convert.py", argparse);
        has(
            &text,
            &[
                r#""--out={out}", "{verbose?--verbose}", "--level={level}", "{fast?--fast}", "--map={map}", "{source}"]"#,
                r#"out = { type = "string", description = "where to" }"#,
                r#"level = { type = "string" }"#,
                r#"source = { type = "array", items = { type = "string" } }"#,
            ],
        );
        let (text, _) = draft(
            "tool",
            "Usage: tool [OPTIONS] -k <KEY> --out <FILE> --force <NAME>\n\nOptions:\n  -k <KEY>          Key\n      --out <FILE>  Output\n      --force\n",
        );
        has(&text, &[r#"["tool", "-k", "{k}", "--out={out}", "{force?--force}", "{name}"]"#]);
        has(&text, &[r#"k = { type = "string", description = "Key" }"#]);
        let (text, _) = draft(
            "tool",
            "Usage: tool [OPTIONS]\n\nOptions:\n  --count INTEGER RANGE  How often.  [x>=1; required]\n  --name TEXT  Who.  [required]\n  --who TEXT  Not required.\n",
        );
        has(
            &text,
            &[
                r#"name = { type = "string", description = "Who. [required]" }"#,
                r#"[x>=1; required]" }"#,
                r#"who = { type = "string", description = "Not required.", optional = true }"#,
            ],
        );
    }

    #[test]
    fn options_right_below_the_usage_are_no_part_of_it() {
        let (text, _) = draft(
            "fetch",
            "Usage: fetch [options...] <url>\n -d, --data <data>          Post it\n -k, --keep                 Keep http (fast) files\n \
             -u, --user <user:password> Who and how\n -v, --verbose...           Talk\n     --set <KEY=VALUE|PATH>  A setting\n",
        );
        has(
            &text,
            &[
                r#"["fetch", "--data={data}", "{keep?--keep}", "--user={user}", "{verbose?--verbose}", "--set={set}", "{url}"]"#,
                r#"user = { type = "string", description = "Who and how", optional = true }"#,
                r#"set = { type = "string", description = "A setting", optional = true }"#,
            ],
        );
        let (text, _) =
            draft("copy", "Usage: copy [OPTION]... SOURCE DEST\n  or:  copy [OPTION]... SOURCE... DIR\n");
        has(&text, &[r#"["copy", "{source}", "{dest}"]"#]);
    }

    #[test]
    fn programs_of_this_machine() {
        let script = "import argparse\np = argparse.ArgumentParser()\np.add_argument('-o', '--out', metavar='FILE', required=True)\n\
                      p.add_argument('-v', '--verbose', action='count')\np.add_argument('source')\np.parse_args()";
        for (words, expected) in [
            (&["cargo", "build"][..], r#""{verbose?--verbose}", "{quiet?--quiet}""#),
            (&["python3", "-c", script], r#""--out={out}", "{verbose?--verbose}", "{source}"]"#),
            (&["curl"], r#""{url}"]"#),
        ] {
            let ran = std::process::Command::new(words[0]).args(&words[1..]).arg("--help").output();
            let Ok(ran) = ran.map_err(|error| eprintln!("`{}` is not here: {error}", words[0])) else {
                continue;
            };
            let help = String::from_utf8(ran.stdout).unwrap();
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            has(&HelpDraft::read(&words, &help).to_toml("t"), &[expected]);
        }
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
