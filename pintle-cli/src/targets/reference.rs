use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Endpoint, Target, address::without_secrets};
use crate::{
    args::{ConnectArgs, EraArg, TargetArgs, quoted},
    failure::Failure,
};

/// A description of a target with which a later command reaches it again. It has no command lines and no credentials: those are given again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct TargetReference {
    server: ServerReference,
    /// Options whose values are not stored.
    given: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_env: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
enum ServerReference {
    Demo,
    Url(String),
    /// A URL without its query, user and password.
    PartOfUrl(String),
    /// A word that names an entry of a configuration file, and the directory in which it does.
    Configured {
        typed: String,
        directory: PathBuf,
    },
    Program,
}

impl Endpoint {
    /// Returns what a later command needs to reach the server again.
    pub(crate) fn reference(&self) -> TargetReference {
        let server = match &self.target {
            Target::Demo => ServerReference::Demo,
            Target::Url(url) if without_secrets(url) == *url => ServerReference::Url(url.clone()),
            Target::Url(url) => ServerReference::PartOfUrl(without_secrets(url)),
            Target::Program { .. } => ServerReference::Program,
            Target::Configured(_) => ServerReference::Configured {
                typed: self.typed.clone().unwrap_or_default(),
                directory: std::env::current_dir().unwrap_or_default(),
            },
        };
        let ConnectArgs { headers, token_env, env, cwd, revision, .. } = &self.options;
        let given = [("--header", !headers.is_empty()), ("--env", !env.is_empty()), ("--cwd", cwd.is_some())];
        TargetReference {
            server,
            given: given.iter().filter(|(_, given)| *given).map(|(name, _)| (*name).to_owned()).collect(),
            token_env: token_env.clone(),
            revision: revision.map(|revision| revision.as_str().to_owned()),
        }
    }

    /// Formats the command line that resumes a call of this server.
    pub(crate) fn resume_line(&self, token: &str, words: &[String]) -> String {
        let mut line = format!("pintle resume {token}");
        for word in words {
            line.extend([" ", &quoted(word)]);
        }
        if let ServerReference::PartOfUrl(url) = self.reference().server {
            line.push_str(&format!(" --url {}", quoted(&format!("{url}?…"))));
        }
        for option in self.reference().given {
            line.push_str(&format!(" {option} …"));
        }
        if let Target::Program { program, args } = &self.target {
            line.push_str(" --");
            for word in std::iter::once(program).chain(args) {
                line.extend([" ", &quoted(&word.to_string_lossy())]);
            }
        }
        line
    }
}

impl TargetReference {
    /// Returns the target again. `url` and `options` are those that were given again.
    pub(crate) fn into_args(
        self,
        url: Option<&str>,
        mut options: ConnectArgs,
        line: &str,
    ) -> Result<TargetArgs, Failure> {
        let has_program = !options.command.is_empty();
        let word = match self.server {
            ServerReference::Program if has_program => None,
            ServerReference::Program => {
                return Err(Failure::usage(
                    "the call was made with a program, whose command line is not stored: give it again",
                    format!("{line} -- PROGRAM"),
                ));
            }
            _ if has_program => {
                return Err(Failure::usage("the call was not made with a program: leave it out", line));
            }
            ServerReference::PartOfUrl(part) => match url {
                Some(url) if without_secrets(url) == part => Some(url.to_owned()),
                _ => {
                    let message = format!(
                        "the URL {part} had a query or a password, which is not stored: give it again with `--url`"
                    );
                    return Err(Failure::usage(message, format!("{line} --url {}", quoted(&part))));
                }
            },
            _ if url.is_some() => {
                return Err(Failure::usage("the target is stored: leave out `--url`", line));
            }
            ServerReference::Demo => Some("demo".to_owned()),
            ServerReference::Url(url) => Some(url),
            ServerReference::Configured { typed, directory } => {
                if std::env::current_dir().unwrap_or_default() != directory {
                    let directory = directory.to_string_lossy();
                    let message = format!("`{typed}` is a name in `{directory}`: resume the call there");
                    return Err(Failure::usage(message, format!("cd {} && {line}", quoted(&directory))));
                }
                Some(typed)
            }
        };
        let has = |option: &str| match option {
            "--header" => !options.headers.is_empty(),
            "--env" => !options.env.is_empty(),
            _ => options.cwd.is_some(),
        };
        if let Some(missing) = self.given.iter().find(|option| !has(option)) {
            let message = format!("the call was made with `{missing}`, which is not stored: give it again");
            return Err(Failure::usage(message, format!("{line} {missing} …")));
        }
        options.token_env = options.token_env.or(self.token_env);
        options.revision =
            options.revision.or_else(|| self.revision.and_then(|revision| revision.parse().ok()));
        options.era = EraArg::Stateless;
        Ok(TargetArgs { words: word.into_iter().collect(), connect: options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(words: &[&str], connect: ConnectArgs) -> Endpoint {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Endpoint::take("call", TargetArgs { words, connect }).unwrap().0
    }

    #[test]
    fn secrets_are_not_stored_and_are_given_again() {
        let headers = vec!["Authorization: Bearer s3cret".to_owned()];
        let options = ConnectArgs { headers, token_env: Some("TOKEN".into()), ..ConnectArgs::default() };
        let url = "https://u:s3cret@example.com/mcp?key=s3cret";
        let endpoint = endpoint(&[url], options.clone());
        let stored = serde_json::to_string(&endpoint.reference()).unwrap();
        assert!(!stored.contains("s3cret") && stored.contains("https://example.com/mcp"), "{stored}");
        assert_eq!(
            endpoint.resume_line("abc", &["a=b c".into()]),
            "pintle resume abc 'a=b c' --url 'https://example.com/mcp?…' --header …"
        );
        let reference = endpoint.reference();
        let again = |url: Option<&str>, options: &ConnectArgs| {
            reference.clone().into_args(url, options.clone(), "pintle resume abc")
        };
        let refused = again(None, &options).unwrap_err();
        assert!(refused.message.contains("give it again with `--url`"), "{refused:?}");
        assert!(again(Some("https://evil.example/mcp?key=s3cret"), &options).is_err());
        let refused = again(Some(url), &ConnectArgs::default()).unwrap_err();
        assert!(refused.message.contains("`--header`, which is not stored"), "{refused:?}");
        let args = again(Some(url), &options).unwrap();
        assert_eq!((args.words[0].as_str(), args.connect.token_env.as_deref()), (url, Some("TOKEN")));
    }

    #[test]
    fn a_command_line_is_not_stored() {
        let command = vec!["server".into(), "--key=s3cret".into()];
        let options = ConnectArgs { command, ..ConnectArgs::default() };
        let reference = endpoint(&[], options.clone()).reference();
        assert!(!serde_json::to_string(&reference).unwrap().contains("s3cret"));
        let refused =
            reference.clone().into_args(None, ConnectArgs::default(), "pintle resume abc").unwrap_err();
        assert_eq!(refused.next, "pintle resume abc -- PROGRAM");
        assert!(reference.into_args(None, options, "").unwrap().words.is_empty());
        let demo = endpoint(&["demo"], ConnectArgs::default()).reference();
        assert_eq!(demo.into_args(None, ConnectArgs::default(), "").unwrap().words, ["demo"]);
    }
}
