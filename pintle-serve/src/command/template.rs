use std::collections::BTreeMap;

use pintle::types::JsonObject;

use super::{
    line::{LinePart, read_line},
    script::{Word, pastes_into_script},
};
use crate::{
    CallFault,
    argument::Argument,
    text::{Part, Text},
};

/// The most bytes of all words of a command.
const MAX_WORDS: usize = 1 << 20;

/// A command with places for the values of a call: see [`ToolEntry::command`](crate::ToolEntry::command).
#[derive(Clone, Debug)]
pub(crate) struct CommandTemplate {
    kind: Kind,
    /// Whether a value may begin a word with `-`.
    flags: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Words(Vec<Text>),
    Line(Vec<LinePart>),
}

impl CommandTemplate {
    /// Reads the words of a command.
    pub(crate) fn words(
        words: &[String],
        arguments: &BTreeMap<String, Argument>,
        flags: bool,
    ) -> Result<Self, String> {
        let Some((program, _)) = words.split_first().filter(|(program, _)| !program.is_empty()) else {
            return Err("it has no command: add `command = [\"PROGRAM\", \"ARGUMENT\"]`".to_owned());
        };
        let words =
            words.iter().map(|word| Text::read(word, arguments, true)).collect::<Result<Vec<_>, _>>()?;
        if words.first().is_some_and(|program| program.place().is_some()) {
            return Err(format!("`{program}` would let a call choose the program: write its name"));
        }
        pastes_into_script(&words.iter().map(Word::of).collect::<Vec<_>>())?;
        Ok(Self { kind: Kind::Words(words), flags })
    }

    /// Reads a line for a shell.
    pub(crate) fn line(
        line: &str,
        arguments: &BTreeMap<String, Argument>,
        flags: bool,
    ) -> Result<Self, String> {
        if line.trim().is_empty() {
            return Err("it has no command: add `command = \"LINE\"`".to_owned());
        }
        Ok(Self { kind: Kind::Line(read_line(line, arguments)?), flags })
    }

    /// Returns the names of the arguments that have a place.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let (words, line): (&[Text], &[LinePart]) = match &self.kind {
            Kind::Words(words) => (words, &[]),
            Kind::Line(line) => (&[], line),
        };
        let of_line = line.iter().filter_map(|part| match part {
            LinePart::Place { place, .. } => Some(&*place.name),
            LinePart::Literal(_) => None,
        });
        words.iter().flat_map(Text::names).chain(of_line)
    }

    /// Returns the program and its arguments for a call.
    pub(crate) fn fill(&self, arguments: &JsonObject) -> Result<Vec<String>, CallFault> {
        let words = match &self.kind {
            Kind::Words(words) => self.fill_words(words, arguments)?,
            Kind::Line(line) => self.fill_line(line, arguments)?,
        };
        if words.iter().map(String::len).sum::<usize>() > MAX_WORDS {
            return Err(CallFault(format!(
                "the arguments are longer than {MAX_WORDS} bytes, which no program takes as words: send less"
            )));
        }
        Ok(words)
    }

    fn fill_words(&self, words: &[Text], arguments: &JsonObject) -> Result<Vec<String>, CallFault> {
        let (mut filled, mut ends_options) = (Vec::new(), false);
        for word in words {
            let begins = match word.0.first() {
                Some(Part::Place(place)) if place.text.is_none() => Some(&*place.name),
                _ => None,
            };
            for text in word.fill(arguments)? {
                if let Some(name) = begins.filter(|_| !ends_options && !self.flags && text.starts_with('-')) {
                    return Err(option_fault(name));
                }
                filled.push(text);
            }
            ends_options = match &word.0[..] {
                [Part::Literal(text)] => text == "--",
                // Behind `--`, values are followed by values.
                [Part::Place(place)] if place.text.is_none() => ends_options,
                _ => false,
            };
        }
        Ok(filled)
    }

    fn fill_line(&self, line: &[LinePart], arguments: &JsonObject) -> Result<Vec<String>, CallFault> {
        let (mut script, mut parameters) = (String::new(), Vec::new());
        for part in line {
            let (place, is_quoted, begins_word) = match part {
                LinePart::Literal(text) => {
                    script += text;
                    continue;
                }
                LinePart::Place { place, is_quoted, begins_word } => (place, is_quoted, begins_word),
            };
            for (number, value) in place.values(arguments)?.into_iter().enumerate() {
                if *begins_word && !self.flags && value.starts_with('-') && place.text.is_none() {
                    return Err(option_fault(&place.name));
                }
                parameters.push(value);
                let parameter = format!("${{{}}}", parameters.len());
                match is_quoted {
                    true => script += &parameter,
                    false if number > 0 => script += &format!(" \"{parameter}\""),
                    false => script += &format!("\"{parameter}\""),
                }
            }
        }
        let shell = ["sh", "-c"].map(str::to_owned);
        Ok(shell.into_iter().chain([script, "sh".to_owned()]).chain(parameters).collect())
    }
}

fn option_fault(name: &str) -> CallFault {
    CallFault(format!(
        "`{name}` begins with `-`, which the program could take for an option: send a value that does not; `flags = true` of the tool would allow it"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{ArgumentEntry, text::MAX_WORD};

    fn arguments() -> BTreeMap<String, Argument> {
        let types = [("name", "string"), ("count", "integer?"), ("paths", "string[]?"), ("loud", "boolean?")];
        let read = |kind: &str| ArgumentEntry::Brief(kind.to_owned()).argument().unwrap();
        types.map(|(name, kind)| (name.to_owned(), read(kind))).into()
    }

    #[expect(clippy::needless_pass_by_value, reason = "calls are easier to read")]
    fn words(words: &[&str], flags: bool, values: Value) -> Result<Vec<String>, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let template = CommandTemplate::words(&words, &arguments(), flags)?;
        template.fill(values.as_object().unwrap()).map_err(|fault| fault.to_string())
    }

    #[expect(clippy::needless_pass_by_value, reason = "calls are easier to read")]
    fn line(line: &str, values: Value) -> Result<Vec<String>, String> {
        let template = CommandTemplate::line(line, &arguments(), false)?;
        template.fill(values.as_object().unwrap()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_value_is_one_word_whatever_it_holds() {
        for value in ["a b", "$(id)", "`id`", "'\"", "a\nb", "*", "", "ü\u{0}".trim_end_matches('\0')] {
            let filled = words(&["echo", "{name}", "to {name}!"], false, json!({"name": value})).unwrap();
            assert_eq!(filled, ["echo", value, &format!("to {value}!")]);
        }
    }

    #[test]
    fn what_is_left_out_leaves_its_word_out() {
        let log = ["git", "log", "-n{count}", "{loud?--verbose}", "{paths}", "{{x}}"];
        assert_eq!(words(&log, false, json!({})).unwrap(), ["git", "log", "{x}"]);
        assert_eq!(words(&log, false, json!({"loud": false, "paths": []})).unwrap(), ["git", "log", "{x}"]);
        let all = json!({"count": 3, "loud": true, "paths": ["a b", "c"]});
        assert_eq!(words(&log, false, json!({"count": 3.0})).unwrap(), ["git", "log", "-n3", "{x}"]);
        assert_eq!(words(&log, false, all).unwrap(), ["git", "log", "-n3", "--verbose", "a b", "c", "{x}"]);
    }

    #[test]
    fn a_value_becomes_an_option_only_where_the_tool_allows_it() {
        let value = json!({"name": "--output=/etc/passwd"});
        let error = words(&["git", "{name}"], false, value.clone()).unwrap_err();
        assert!(error.contains("begins with `-`"), "{error}");
        assert!(words(&["git", "{name}"], true, value.clone()).is_ok());
        assert!(words(&["git", "--", "{name}"], false, value.clone()).is_ok());
        assert!(words(&["git", "--x={name}"], false, value.clone()).is_ok());
        assert!(words(&["git", "--", "{count}", "{name}"], false, value.clone()).is_ok());
        assert!(words(&["env", "--", "find", "{name}"], false, value).is_err());
        // A script that is a value is what the tool is for.
        assert!(words(&["sh", "-c", "{name}"], false, json!({"name": "id"})).is_ok());
        assert!(words(&["git", "{paths}"], false, json!({"paths": ["a", "-b"]})).is_err());
        assert!(words(&["git", "{count}"], false, json!({"count": -1})).is_err());
        assert!(words(&["git", "{name}-x"], false, json!({"name": ""})).is_err());
    }

    #[test]
    fn what_no_program_takes_is_refused() {
        for (value, expected) in [("a\0b".to_owned(), "NUL"), ("x".repeat(MAX_WORD + 1), "use `stdin`")] {
            for template in ["{name}", "a {name}"] {
                let error = words(&["echo", template], false, json!({"name": value})).unwrap_err();
                assert!(error.contains(expected), "{error}");
            }
        }
        let many = json!({"paths": vec!["x".repeat(MAX_WORD); 9]});
        assert!(words(&["echo", "{paths}"], false, many).unwrap_err().contains("longer than"));
    }

    #[test]
    fn a_template_that_is_wrong_is_refused_with_what_to_write() {
        for (template, expected) in [
            (&["{name}"][..], "choose the program"),
            (&[], "no command"),
            (&["echo", "{nam}"], "which has `count`, `loud`, `name`, `paths`"),
            (&["echo", "{name"], "write `{{`"),
            (&["echo", "name}"], "write `}}`"),
            (&["echo", "x{paths}"], "a word of its own"),
            (&["echo", "a\0"], "NUL"),
            (&["sh", "-c", "echo {name}"], "pasted into the script `echo ` of `sh -c`"),
            (&["sudo", "/bin/bash", "-lc", "echo {name}"], "with `shell = true`"),
            (&["python3", "-c", "print('{name}')"], "pasted into"),
        ] {
            let error = words(template, false, json!({})).unwrap_err();
            assert!(error.contains(expected), "{template:?}: {error}");
        }
    }

    #[test]
    fn values_are_parameters_of_a_shell() {
        let filled = line(
            "echo {name} \"to {name}\" | wc {paths}; echo ${HOME} {a,b}",
            json!({"name": "$(id)", "paths": ["a", "b c"]}),
        );
        let script = "echo \"${1}\" \"to ${2}\" | wc \"${3}\" \"${4}\"; echo ${HOME} {a,b}";
        assert_eq!(filled.unwrap(), ["sh", "-c", script, "sh", "$(id)", "$(id)", "a", "b c"]);
        assert_eq!(line("echo {count}.", json!({})).unwrap(), ["sh", "-c", "echo .", "sh"]);
        for (wrong, expected) in [
            ("echo '{name}'", "single quotes"),
            ("echo \"{paths}\"", "without quotes"),
            ("echo $((1 + {name}))", "within `((`"),
            ("echo \"{name}", "without an end"),
            ("{name}", "choose the program"),
            (" \"{name}\" a", "choose the program"),
            ("true && {name}", "choose the program"),
            ("echo $({name})", "choose the program"),
            ("echo `{name}`", "no backticks"),
            ("A=1 {name}", "choose the program"),
            ("2>&1 {name}", "choose the program"),
            ("if true; then {name}; fi", "choose the program"),
            ("for x in a; do {name}; done", "choose the program"),
            ("! exec {name}", "choose the program"),
            ("/usr/bin/env -i A=1 {name}", "choose the program"),
            ("ls | xargs -0 {name}", "choose the program"),
            ("./run-{name}", "choose the program"),
            ("case a in a) {name};; esac", "no `case`"),
            ("run() { ls {name}; }", "no functions"),
            ("eval echo {name}", "`eval` of a shell"),
            ("export A{name}=1", "`export` of a shell"),
            ("trap \"rm {name}\" EXIT", "`trap` of a shell"),
            ("[[ {name} -eq 1 ]]", "no `[[`"),
            ("sh -c \"ls {name}\"", "pasted into the script"),
            ("find . -exec bash -ec \"ls {name}\" +", "pasted into the script"),
            ("cat <<END\n{name}\nEND", "write `stdin`"),
            ("echo ${x:-\"{name}\"}", "too much"),
            ("echo $'a' {name}", "another quote"),
            ("printf '%s' $@ {name}", "parameters of the shell"),
            ("echo ${1} {name}", "parameters of the shell"),
            ("set -- a; echo {name}", "change the parameters"),
            ("echo $(ls {name}", "without an end"),
            ("echo {name})", "without a `(`"),
            ("echo x{paths}", "a word of its own"),
            ("true; {name}", "choose the program"),
            (" ", "no command"),
        ] {
            let error = line(wrong, json!({"name": "1"})).unwrap_err();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
        let option = json!({"name": "-x"});
        for refused in [
            "grep {name}",
            "grep \"{name}\"",
            "grep \"\"{name}",
            "grep {count}{name}",
            "grep {count}\"{name}\"",
            "cat -- a | grep {name}",
            "echo -- $(find {name})",
            "echo \"$(find {name})\"",
            "ls $OPTS{name}",
            "ls \"$OPTS{name}\"",
            "ls $(echo){name}",
            "true # \"\nls {name} # \"",
            "env -- find {name}",
        ] {
            assert!(line(refused, option.clone()).is_err(), "{refused}");
        }
        for allowed in [
            "grep -- {name}",
            "grep -- {count} {name}",
            "grep a{name}",
            "grep \"a {name}\"",
            "A={name} grep a > {name}",
            "export A={name} B=1",
            "find . -name '*.rs' | while read -r x; do test \"$x\" != a{name} && echo $#; done",
        ] {
            assert!(line(allowed, option.clone()).is_ok(), "{allowed}");
        }
    }
}
