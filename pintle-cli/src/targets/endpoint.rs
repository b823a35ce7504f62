use std::path::Path;

use super::{ConfiguredServer, Target, resolve};
use crate::{
    args::{ConnectArgs, EraArg, TargetArgs, quoted},
    failure::Failure,
};

/// A target with the options of its connection, as they were typed.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(super) target: Target,
    pub(super) options: ConnectArgs,
    /// The word of the target; `None` for a program.
    pub(super) typed: Option<String>,
    /// Whether private addresses are connected to only if the URL is written with one.
    pub(super) is_guarded: bool,
}

impl Endpoint {
    /// Refuses connections to private addresses, unless the URL is written with one.
    pub(crate) fn guarded(mut self) -> Self {
        self.is_guarded = true;
        self
    }

    /// Takes the target from the words of a verb: the program after `--` if there is one, otherwise the first word. Returns the
    /// other words too.
    pub(crate) fn take(verb: &str, args: TargetArgs) -> Result<(Self, Vec<String>), Failure> {
        let TargetArgs { mut words, connect: options } = args;
        if options.era == EraArg::Both && verb != "bench" {
            let message = "`--era both` is for `bench`: write `auto`, `stateless` or `session`";
            return Err(Failure::usage(message, format!("pintle {verb} --help")));
        }
        if let Some((program, args)) = options.command.split_first() {
            let target = Target::Program { program: program.clone(), args: args.to_vec() };
            return Ok((Self::checked(Self { target, options, typed: None, is_guarded: false })?, words));
        }
        if words.is_empty() {
            return Err(Failure::usage(
                "no server is given: write a URL, a host, a name, `demo`, or `--` and a program",
                format!("pintle {verb} demo"),
            ));
        }
        let typed = words.remove(0);
        let target = resolve(&typed)?;
        Ok((Self::checked(Self { target, options, typed: Some(typed), is_guarded: false })?, words))
    }

    /// Returns the endpoint of a configured server.
    pub(crate) fn of_configured(server: ConfiguredServer, options: ConnectArgs) -> Self {
        let typed = match &server.untrusted {
            Some(_) => format!("{}:{}", server.entry.source.file.display(), server.entry.name),
            None => server.entry.name.clone(),
        };
        Self { target: Target::Configured(Box::new(server)), options, typed: Some(typed), is_guarded: false }
    }

    /// Returns whether the user's configuration allows a tool of the server.
    pub(crate) fn allows_tool(&self, name: &str) -> bool {
        match &self.target {
            Target::Configured(server) => server.entry.tools.allows(name),
            _ => true,
        }
    }

    /// Refuses options that do not apply to the target: they would be ignored.
    fn checked(self) -> Result<Self, Failure> {
        let ConnectArgs { headers, token_env, env, cwd, .. } = &self.options;
        let of_url = [("--header", !headers.is_empty()), ("--token-env", token_env.is_some())];
        let of_program = [("--env", !env.is_empty()), ("--cwd", cwd.is_some())];
        if !self.options.inputs.is_empty() && !matches!(self.target, Target::Configured(_)) {
            let message = "`--input` is an option of a server that a host has configured: leave it out";
            return Err(Failure::usage(message, self.line("info", &[])));
        }
        if let Some(input) = self.options.inputs.iter().find(|input| !input.contains('=')) {
            let message = format!("`--input` cannot be `{input}`: write `NAME=VALUE`");
            return Err(Failure::usage(message, self.line("info", &[])));
        }
        let of_url = of_url.into_iter().filter(|_| !self.target.has_url());
        let of_program = of_program.into_iter().filter(|_| !self.target.has_program());
        let mut refused = of_url
            .map(|option| (option, "a server at a URL"))
            .chain(of_program.map(|option| (option, "a program")));
        match refused.find(|((_, given), _)| *given) {
            Some(((option, _), whose)) => {
                let message = format!("`{option}` is an option of {whose}: leave it out");
                Err(Failure::usage(message, self.line("info", &[])))
            }
            None => Ok(self),
        }
    }

    /// Returns a name for the target that has no secrets.
    pub(crate) fn label(&self) -> String {
        match &self.target {
            Target::Demo => "demo".to_owned(),
            Target::Url(url) => super::address::without_secrets(url),
            Target::Configured(server) => server.entry.name.clone(),
            Target::Program { program, .. } => {
                Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
            }
        }
    }

    /// Returns the URL of the target without secrets, if that is what was typed.
    pub(crate) fn plain_url(&self) -> Option<String> {
        match &self.target {
            Target::Url(url) => Some(super::address::without_secrets(url)),
            _ => None,
        }
    }

    /// Refuses words that a verb does not take.
    pub(crate) fn no_more(&self, words: &[String], verb: &str) -> Result<(), Failure> {
        match words.first() {
            Some(word) => {
                let message = format!("unexpected argument `{word}`: `{verb}` takes a target");
                Err(Failure::usage(message, self.line(verb, &[])))
            }
            None => Ok(()),
        }
    }

    /// Returns the word of the target, if it is one that can be stored: a URL with a query may have a secret.
    pub(crate) fn plain_word(&self) -> Option<&str> {
        self.typed.as_deref().filter(|typed| !typed.contains(['?', '@', '#']))
    }

    /// Returns whether the server is started by the command: nothing of it is left from an earlier one.
    pub(crate) fn starts_server(&self) -> bool {
        self.target.has_program() || matches!(self.target, Target::Demo)
    }

    /// Formats a command line with this target, for what to type next.
    pub(crate) fn line(&self, verb: &str, words: &[&str]) -> String {
        let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
        self.line_with(verb, words.trim_start())
    }

    /// Formats a command line with this target and words that are quoted already.
    pub(crate) fn line_with(&self, verb: &str, words: &str) -> String {
        if self.options.open.is_some() {
            // As it is typed in `repl`.
            return format!("{verb} {words}").trim_end().to_owned();
        }
        self.shell_line(verb, words)
    }

    /// Formats a command line with options for what servers ask. In `repl` they belong to the connection.
    pub(crate) fn line_with_options(&self, verb: &str, words: &[&str], options: &str) -> String {
        if self.options.open.is_some() {
            return self.shell_line("repl", options);
        }
        let words: String = words.iter().map(|word| format!("{} ", quoted(word))).collect();
        self.shell_line(verb, &format!("{words}{options}"))
    }

    fn shell_line(&self, verb: &str, words: &str) -> String {
        let mut line = format!("pintle {verb}");
        if let Some(typed) = &self.typed {
            line.extend([" ", &quoted(typed)]);
        }
        if !words.is_empty() {
            line.extend([" ", words]);
        }
        if let Target::Program { program, args } = &self.target {
            line.push_str(" --");
            for word in std::iter::once(program).chain(args) {
                line.extend([" ", &quoted(&word.to_string_lossy())]);
            }
        }
        line
    }

    /// Returns what to type if the server could not be reached.
    pub(crate) fn next_if_unreachable(&self) -> String {
        match &self.target {
            Target::Demo => "pintle tour".to_owned(),
            Target::Configured(_) => self.line_with("info", "-v"),
            Target::Url(url) => format!("curl -i {}", quoted(&super::address::without_secrets(url))),
            Target::Program { .. }
                if self.options.cwd.as_ref().is_some_and(|directory| !directory.is_dir()) =>
            {
                let directory = self.options.cwd.as_deref().unwrap_or(Path::new("."));
                format!("mkdir -p {}", quoted(&directory.to_string_lossy()))
            }
            Target::Program { program, args } => {
                let words = std::iter::once(program).chain(args);
                let words: Vec<_> = words.map(|word| quoted(&word.to_string_lossy())).collect();
                match Path::new(program).components().count() {
                    1 if args.is_empty() => format!("which {}", words.join(" ")),
                    _ => words.join(" "),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str], command: &[&str]) -> TargetArgs {
        let connect =
            ConnectArgs { command: command.iter().map(Into::into).collect(), ..ConnectArgs::default() };
        TargetArgs { words: words.iter().map(|word| (*word).to_owned()).collect(), connect }
    }

    #[test]
    fn a_program_leaves_the_words_to_the_verb() {
        let given = args(&["tide", "hour=3"], &["python", "my server.py"]);
        let (endpoint, words) = Endpoint::take("call", given).unwrap();
        assert_eq!(words, ["tide", "hour=3"]);
        assert_eq!(
            endpoint.line("call", &["tide", "a=it's"]),
            r"pintle call tide 'a=it'\''s' -- python 'my server.py'"
        );
    }

    #[test]
    fn otherwise_the_first_word_is_the_target() {
        let (endpoint, words) = Endpoint::take("call", args(&["demo", "tide"], &[])).unwrap();
        assert_eq!(words, ["tide"]);
        assert_eq!(endpoint.line("call", &["tide"]), "pintle call demo tide");
        let none = Endpoint::take("ls", args(&[], &[])).unwrap_err();
        assert_eq!(none.next, "pintle ls demo");
    }

    #[test]
    fn options_that_would_be_ignored_are_refused() {
        let mut given = args(&[], &["server"]);
        given.connect.token_env = Some("TOKEN".into());
        let refused = Endpoint::take("ls", given).unwrap_err().message;
        assert!(refused.contains("`--token-env` is an option of a server at a URL"), "{refused}");
        let mut given = args(&["example.com"], &[]);
        given.connect.cwd = Some("/".into());
        let refused = Endpoint::take("ls", given).unwrap_err().message;
        assert!(refused.contains("`--cwd` is an option of a program"), "{refused}");
    }
}
