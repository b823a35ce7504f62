use pintle::{
    Server,
    client::http::Http,
    transport::{Child, ChildCommand},
};
use pintle_host::config::{Platform, RemoteServer, ResolvedServer};
use pintle_oauth::client::Reach;

use super::{Endpoint, Target, address::without_secrets, launched};
use crate::{demo, failure::Failure, output::Output};

/// A target whose variables are replaced. It can be connected to any number of times.
#[derive(Clone, Debug)]
pub(crate) enum ResolvedTarget {
    /// A server in this process.
    InProcess(Server),
    /// A program, with the words that start it on this system.
    Program(ChildCommand),
    Url(ResolvedUrl),
}

/// The URL of a server. `Debug` prints no secrets.
#[derive(Clone)]
pub(crate) enum ResolvedUrl {
    Typed(String),
    /// With the headers of its entry.
    Configured(RemoteServer),
}

impl ResolvedUrl {
    /// Returns the URL without secrets, as logins have it.
    pub(super) fn plain(&self) -> String {
        match self {
            Self::Typed(url) => without_secrets(url),
            Self::Configured(remote) => without_secrets(&remote.url),
        }
    }
}

impl std::fmt::Debug for ResolvedUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ResolvedUrl").field(&self.plain()).finish()
    }
}

impl Endpoint {
    /// Replaces the variables of the target. A project's file has to be approved for it.
    pub(crate) async fn resolved(&self, output: &Output) -> Result<ResolvedTarget, Failure> {
        let platform = Platform::current();
        match &self.target {
            Target::Configured(server) => {
                of_entry(server.resolve(&self.options.inputs, output).await?, platform)
            }
            target => of_word(target, platform),
        }
    }

    /// Returns the transport of a server at a URL, with the headers and the token of the options and without a login.
    pub(super) fn http(&self, url: &ResolvedUrl) -> Result<Http, Failure> {
        let http = match url {
            ResolvedUrl::Typed(url) => {
                Http::new(url).map_err(|error| Failure::usage(error.to_string(), "pintle --help"))?
            }
            ResolvedUrl::Configured(remote) => {
                remote.http().map_err(|error| Failure::usage(error.to_string(), self.line("info", &[])))?
            }
        };
        let http = match self.reach(url) {
            Some(reach) => http.only(move |address| reach.allows(address)),
            None => http,
        };
        self.with_headers(http)
    }

    /// Returns the networks that requests to a URL may reach, if they are limited.
    pub(super) fn reach(&self, url: &ResolvedUrl) -> Option<Reach> {
        self.is_guarded.then(|| Reach::as_written(&url.plain()))
    }
}

fn of_word(target: &Target, platform: Platform) -> Result<ResolvedTarget, Failure> {
    Ok(match target {
        Target::Demo => ResolvedTarget::InProcess(demo::server(&demo::Harbour::default())),
        Target::Url(url) => ResolvedTarget::Url(ResolvedUrl::Typed(url.clone())),
        Target::Program { program, args } => {
            let (program, args) = launched(platform, program.clone(), args.clone());
            ResolvedTarget::Program(Child::command(program).args(args))
        }
        Target::Configured(_) => {
            return Err(Failure::internal(&"the variables of an entry are not replaced"));
        }
    })
}

fn of_entry(server: ResolvedServer, platform: Platform) -> Result<ResolvedTarget, Failure> {
    Ok(match server {
        ResolvedServer::Stdio(mut stdio) => {
            (stdio.command, stdio.args) = launched(platform, stdio.command, stdio.args);
            ResolvedTarget::Program(stdio.command())
        }
        ResolvedServer::Remote(remote) => ResolvedTarget::Url(ResolvedUrl::Configured(remote)),
        _ => return Err(Failure::internal(&"an entry of an unknown kind")),
    })
}

#[cfg(test)]
mod tests {
    use pintle_host::config::{ConfigFile, Variables};

    use super::*;

    /// Every way to name a server, and what is reached on each platform.
    #[test]
    fn a_script_is_started_by_cmd_on_windows_however_it_was_named() {
        let config = r#"{"mcpServers": {
            "script": {"command": "npx", "args": ["-y", "server"]},
            "program": {"command": "uvx", "args": ["server"]},
            "url": {"url": "https://u:s3cret@example.com/mcp?key=s3cret", "headers": {"X-Key": "s3cret"}}}}"#;
        let path = std::env::temp_dir().join(format!("pintle-resolved-{}.json", std::process::id()));
        std::fs::write(&path, config).unwrap();
        let file = ConfigFile::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let entry = |name: &str, platform| {
            let server = file.server(name).unwrap().resolve(&Variables::process()).unwrap();
            of_entry(server, platform).unwrap()
        };
        let words = |words: &str, platform| {
            let mut all = words.split(' ').map(Into::into);
            let target = Target::Program { program: all.next().unwrap(), args: all.collect() };
            of_word(&target, platform).unwrap()
        };
        let url =
            |platform| of_word(&Target::Url("https://example.com/mcp?key=s3cret".into()), platform).unwrap();
        type Resolve<'a> = Box<dyn Fn(Platform) -> ResolvedTarget + 'a>;
        let rows: [(Resolve<'_>, &str, &str); 6] = [
            (
                Box::new(|on| words("npx -y server", on)),
                r#"program: "cmd", args: 4"#,
                r#"program: "npx", args: 2"#,
            ),
            (Box::new(|on| entry("script", on)), r#"program: "cmd", args: 4"#, r#"program: "npx", args: 2"#),
            (
                Box::new(|on| words("uvx server", on)),
                r#"program: "uvx", args: 1"#,
                r#"program: "uvx", args: 1"#,
            ),
            (Box::new(|on| entry("program", on)), r#"program: "uvx", args: 1"#, r#"program: "uvx", args: 1"#),
            (
                Box::new(url),
                r#"ResolvedUrl("https://example.com/mcp")"#,
                r#"ResolvedUrl("https://example.com/mcp")"#,
            ),
            (
                Box::new(|on| entry("url", on)),
                r#"ResolvedUrl("https://example.com/mcp")"#,
                r#"ResolvedUrl("https://example.com/mcp")"#,
            ),
        ];
        for (resolve, windows, linux) in &rows {
            for (platform, expected) in [(Platform::Windows, windows), (Platform::Linux, linux)] {
                let shown = format!("{:?}", resolve(platform));
                assert!(shown.contains(expected) && !shown.contains("s3cret"), "{expected}: {shown}");
            }
        }
    }
}
