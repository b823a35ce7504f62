use std::path::Path;

use pintle_host::config::{EntryTransport, RemoteKind};

use super::{ConfiguredServer, address::without_secrets};

/// Programs that run a package, which their first argument names.
const RUNNERS: &[&str] =
    &["npx", "bunx", "pnpx", "uvx", "pipx", "deno", "node", "bun", "python", "python3", "uv", "pnpm"];
/// Words between a runner and the package. None of them has a value.
const RUNNER_WORDS: &[&str] = &["-y", "--yes", "-q", "--quiet", "dlx", "run", "-m", "--", "-A", "exec"];
/// A longer part of the path of a URL may be a key.
const MAX_SEGMENT: usize = 24;

impl ConfiguredServer {
    /// Returns how the server is reached, without what may be a secret: arguments other than the name of a package, the query of
    /// a URL, and long parts of its path.
    pub(crate) fn summary(&self) -> String {
        match &self.entry.transport {
            EntryTransport::Stdio(stdio) => {
                let args: Vec<_> = stdio.args.iter().map(|arg| arg.as_written()).collect();
                // Some write arguments here too.
                let mut command = stdio.command.as_written().split_whitespace();
                program_summary(command.next().unwrap_or_default(), command.count(), &args)
            }
            EntryTransport::Remote(remote) => url_summary(remote.url.as_written()),
            _ => "a transport that this version does not know".to_owned(),
        }
    }

    /// Returns the name of the transport.
    pub(crate) fn transport(&self) -> &'static str {
        match &self.entry.transport {
            EntryTransport::Stdio(_) => "stdio",
            EntryTransport::Remote(remote) if remote.kind == Some(RemoteKind::Sse) => "sse",
            EntryTransport::Remote(_) => "http",
            _ => "unknown",
        }
    }
}

fn program_summary(program: &str, hidden: usize, args: &[&str]) -> String {
    let name = Path::new(program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let package = args.iter().position(|arg| !RUNNER_WORDS.contains(arg));
    let package = package.filter(|at| RUNNERS.contains(&name.as_str()) && is_package(args[*at]));
    let shown = package.map_or(0, |at| at + 1);
    let words: Vec<_> = std::iter::once(program).chain(args[..shown].iter().copied()).collect();
    match args.len() - shown + hidden {
        0 => words.join(" "),
        1 => format!("{} (1 argument)", words.join(" ")),
        left => format!("{} ({left} arguments)", words.join(" ")),
    }
}

/// Returns whether a word can be the name of a package or a script, and hardly a key.
fn is_package(word: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "@/._-".contains(letter);
    let is_key = |part: &str| {
        part.len() > MAX_SEGMENT && part.chars().filter(char::is_ascii_digit).count() > 3
            || part.starts_with("sk-")
            || part.starts_with("ghp_")
    };
    !word.starts_with('-') && word.chars().all(plain) && !word.split(['/', '@']).any(is_key)
}

fn url_summary(url: &str) -> String {
    let url = without_secrets(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    let mut parts = rest.split('/');
    let host = parts.next().unwrap_or_default();
    let path = parts.map(|part| if part.chars().count() > MAX_SEGMENT { "…" } else { part });
    let path: String = path.map(|part| format!("/{part}")).collect();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_shown_without_its_arguments() {
        for (program, args, shown) in [
            ("npx", &["-y", "@scope/server", "--key", "s3cret"][..], "npx -y @scope/server (2 arguments)"),
            ("/usr/bin/npx", &["-y", "server"], "/usr/bin/npx -y server"),
            ("uvx", &["--from", "x", "server"], "uvx (3 arguments)"),
            ("python3", &["-m", "server"], "python3 -m server"),
            ("server", &["s3cret"], "server (1 argument)"),
            ("npx", &["sk-s3cret"], "npx (1 argument)"),
            ("npx", &["0123456789abcdef0123456789abcdef"], "npx (1 argument)"),
            ("npx", &["${TOKEN}"], "npx (1 argument)"),
            ("server", &[], "server"),
        ] {
            assert_eq!(program_summary(program, 0, args), shown);
        }
        assert_eq!(program_summary("server", 2, &[]), "server (2 arguments)");
    }

    #[test]
    fn a_url_is_shown_without_keys() {
        for (url, shown) in [
            ("https://u:p@e.com/mcp?key=s3cret#x", "https://e.com/mcp"),
            ("https://e.com/s/0123456789abcdef0123456789abcdef/mcp", "https://e.com/s/…/mcp"),
            ("https://e.com", "https://e.com"),
            ("${URL}", "${URL}"),
        ] {
            assert_eq!(url_summary(url), shown);
        }
    }
}
