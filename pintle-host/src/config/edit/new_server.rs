use std::fmt;

use serde_json::{Map, Value, json};

use crate::config::Host;

/// A server to be written into the configuration files of hosts, each of which has a form of its own.
///
/// `Debug` prints neither arguments nor the values of variables and headers.
#[derive(Clone)]
pub struct NewServer {
    name: String,
    transport: NewTransport,
}

#[derive(Clone)]
enum NewTransport {
    Program {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        inherit_env: Vec<String>,
        cwd: Option<String>,
    },
    Remote {
        url: String,
        headers: Vec<(String, String)>,
        token_env: Option<String>,
    },
}

impl NewServer {
    /// A program to start.
    pub fn program(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let (env, inherit_env) = (Vec::new(), Vec::new());
        let args = args.into_iter().map(Into::into).collect();
        let command = command.into();
        Self {
            name: name.into(),
            transport: NewTransport::Program { command, args, env, inherit_env, cwd: None },
        }
    }

    /// A server at a URL.
    pub fn remote(name: impl Into<String>, url: impl Into<String>) -> Self {
        let transport = NewTransport::Remote { url: url.into(), headers: Vec::new(), token_env: None };
        Self { name: name.into(), transport }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets a variable in the environment of a program. At a URL it has no effect.
    pub fn env(mut self, variable: impl Into<String>, set: impl Into<String>) -> Self {
        if let NewTransport::Program { env, .. } = &mut self.transport {
            env.push((variable.into(), set.into()));
        }
        self
    }

    /// Passes a variable of the host's environment on to a program. At a URL it has no effect.
    pub fn inherit_env(mut self, variable: impl Into<String>) -> Self {
        if let NewTransport::Program { inherit_env, .. } = &mut self.transport {
            inherit_env.push(variable.into());
        }
        self
    }

    /// Starts a program in this directory. At a URL it has no effect.
    pub fn current_dir(mut self, directory: impl Into<String>) -> Self {
        if let NewTransport::Program { cwd, .. } = &mut self.transport {
            *cwd = Some(directory.into());
        }
        self
    }

    /// Sends a header with every request to a URL. For a program it has no effect.
    pub fn header(mut self, header: impl Into<String>, content: impl Into<String>) -> Self {
        if let NewTransport::Remote { headers, .. } = &mut self.transport {
            headers.push((header.into(), content.into()));
        }
        self
    }

    /// Sends the token in this variable of the host's environment to a URL. For a program it has no effect.
    pub fn token_env(mut self, variable: impl Into<String>) -> Self {
        if let NewTransport::Remote { token_env, .. } = &mut self.transport {
            *token_env = Some(variable.into());
        }
        self
    }

    /// Returns the entry in the form of a host. The error is the reason why there is none.
    pub(super) fn to_json(&self, host: Host) -> Result<Value, String> {
        match &self.transport {
            NewTransport::Program { command, args, env, inherit_env, cwd } => {
                let mut entry = Map::new();
                if let Some(kind) = program_type(host) {
                    entry.insert("type".to_owned(), kind.into());
                }
                if host == Host::OpenCode {
                    let words: Vec<_> = std::iter::once(command).chain(args).collect();
                    entry.insert("command".to_owned(), json!(words));
                } else {
                    entry.insert("command".to_owned(), command.as_str().into());
                    entry.insert("args".to_owned(), json!(args));
                }
                if let Some(cwd) = cwd {
                    if !HAVE_DIRECTORIES.contains(&host) {
                        return Err(format!("{host} cannot start a program in a directory of its choice"));
                    }
                    entry.insert("cwd".to_owned(), cwd.as_str().into());
                }
                let mut variables = pairs(host, env)?;
                for name in inherit_env {
                    if host == Host::Codex {
                        entry.insert("env_vars".to_owned(), json!(inherit_env));
                        break;
                    }
                    variables.insert(name.clone(), variable(host, name)?.into());
                }
                if !variables.is_empty() {
                    let member = if host == Host::OpenCode { "environment" } else { "env" };
                    entry.insert(member.to_owned(), variables.into());
                }
                Ok(finished(host, entry))
            }
            NewTransport::Remote { url, headers, token_env } => {
                let (member, kind) = remote_form(host).ok_or_else(|| {
                    format!("the file of {host} names programs only: add the URL in its settings")
                })?;
                let mut entry = Map::new();
                if let Some(kind) = kind {
                    entry.insert("type".to_owned(), kind.into());
                }
                entry.insert(member.to_owned(), literal(host, url)?.into());
                let mut headers = pairs(host, headers)?;
                match token_env {
                    Some(name) if host == Host::Codex => {
                        entry.insert("bearer_token_env_var".to_owned(), name.as_str().into());
                    }
                    Some(name) => {
                        let token = format!("Bearer {}", variable(host, name)?);
                        headers.insert("Authorization".to_owned(), token.into());
                    }
                    None => {}
                }
                if !headers.is_empty() {
                    let member = if host == Host::Codex { "http_headers" } else { "headers" };
                    entry.insert(member.to_owned(), headers.into());
                }
                Ok(finished(host, entry))
            }
        }
    }
}

/// The hosts that read `cwd`.
const HAVE_DIRECTORIES: &[Host] = &[
    Host::Cline,
    Host::Codex,
    Host::GeminiCli,
    Host::Inspector,
    Host::Mcporter,
    Host::Project,
    Host::RooCode,
    Host::VsCode,
];

/// The `type` of a program, where it is written.
fn program_type(host: Host) -> Option<&'static str> {
    match host {
        Host::ClaudeCode | Host::VsCode => Some("stdio"),
        Host::CopilotCli | Host::OpenCode => Some("local"),
        _ => None,
    }
}

/// The member of a URL, and the `type` beside it.
fn remote_form(host: Host) -> Option<(&'static str, Option<&'static str>)> {
    Some(match host {
        Host::ClaudeDesktop => return None,
        Host::ClaudeCode | Host::CopilotCli | Host::Project | Host::VsCode => ("url", Some("http")),
        Host::Cline => ("url", Some("streamableHttp")),
        Host::Inspector | Host::RooCode => ("url", Some("streamable-http")),
        Host::OpenCode => ("url", Some("remote")),
        Host::GeminiCli => ("httpUrl", None),
        Host::Mcporter => ("baseUrl", None),
        Host::Windsurf => ("serverUrl", None),
        Host::Codex | Host::Cursor | Host::Kiro | Host::LmStudio | Host::Zed => ("url", None),
    })
}

/// Returns how a host writes a variable of its environment.
fn variable(host: Host, name: &str) -> Result<String, String> {
    match host {
        Host::Cursor | Host::RooCode | Host::VsCode | Host::Windsurf => Ok(format!("${{env:{name}}}")),
        Host::OpenCode => Ok(format!("{{env:{name}}}")),
        Host::ClaudeDesktop | Host::Cline | Host::Codex | Host::LmStudio | Host::Zed => {
            Err(format!("the file of {host} has no variables: give the value of `{name}`"))
        }
        _ => Ok(format!("${{{name}}}")),
    }
}

/// Refuses variables in a text where a host would not replace them.
fn literal(host: Host, text: &str) -> Result<String, String> {
    match text.contains("${") && variable(host, "").is_err() {
        true => Err(format!("the file of {host} has no variables such as `${{NAME}}`: give the value")),
        false => Ok(text.to_owned()),
    }
}

fn pairs(host: Host, pairs: &[(String, String)]) -> Result<Map<String, Value>, String> {
    pairs.iter().map(|(name, content)| Ok((name.clone(), literal(host, content)?.into()))).collect()
}

/// Adds the members that a host requires in every entry.
fn finished(host: Host, mut entry: Map<String, Value>) -> Value {
    match host {
        Host::CopilotCli => drop(entry.insert("tools".to_owned(), json!(["*"]))),
        Host::OpenCode => drop(entry.insert("enabled".to_owned(), true.into())),
        _ => {}
    }
    entry.into()
}

impl fmt::Debug for NewServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewServer").field("name", &self.name).finish_non_exhaustive()
    }
}
