use pintle_host::config::Directories;

use super::{Target, address, configured};
use crate::failure::Failure;

/// Finds out which server a word means.
///
/// The order is: `demo`, a URL, an entry of a file, a path, a configured name of the user, a host, a configured name of the project: a
/// project decides nothing about words that mean something else.
pub(crate) fn resolve(typed: &str) -> Result<Target, Failure> {
    resolve_in(typed, &configured::directories())
}

fn resolve_in(typed: &str, directories: &Directories) -> Result<Target, Failure> {
    if typed == "demo" {
        return Ok(Target::Demo);
    }
    if let Some((scheme, _)) = typed.split_once("://") {
        return match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => Ok(Target::Url(typed.to_owned())),
            _ => Err(Failure::usage(
                format!("`{scheme}` is not a scheme of MCP servers: write `https://` or `http://`"),
                format!("pintle info https://{}", typed.split_once("://").map_or("", |(_, rest)| rest)),
            )),
        };
    }
    if let Some((file, name)) = configured::split(typed) {
        return configured::entry_of(file, name, directories)
            .map(|server| Target::Configured(Box::new(server)));
    }
    if is_path(typed) {
        let next = format!("pintle info -- {typed}");
        return Err(Failure::usage(format!("`{typed}` is a path: write `--` before a program"), next));
    }
    if address::is_host(typed) {
        return Ok(match configured::find_own(typed, directories)? {
            Some(server) => Target::Configured(Box::new(server)),
            None => Target::Url(address::url_of_host(typed)),
        });
    }
    configured::find(typed, directories).map(|server| Target::Configured(Box::new(server)))
}

/// Returns whether a word names a file of this machine.
fn is_path(typed: &str) -> bool {
    let begins = ["./", "../", "/", "~/", ".\\", "..\\"].iter().any(|start| typed.starts_with(start));
    let drive = typed.as_bytes().get(1..3).is_some_and(|rest| rest == b":\\" || rest == b":/");
    begins || drive
}

#[cfg(test)]
mod tests {
    use pintle_host::config::Platform;

    use super::*;

    fn resolved(typed: &str) -> Result<String, Failure> {
        let nowhere = Directories::below(Platform::current(), "/no/such/home");
        resolve_in(typed, &nowhere).map(|target| target.to_string())
    }

    #[test]
    fn a_word_means_one_server() {
        for (typed, target) in [
            ("demo", "the demo server in this process"),
            ("http://10.0.0.7/mcp", "the URL http://10.0.0.7/mcp"),
            ("HTTPS://example.com/", "the URL HTTPS://example.com/"),
            ("example.com/mcp", "the URL https://example.com/mcp"),
            ("localhost:8000", "the URL http://localhost:8000/mcp"),
        ] {
            assert_eq!(resolved(typed).unwrap(), target);
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_to_type() {
        for (typed, message) in [
            ("ftp://example.com/x", "`ftp` is not a scheme"),
            ("./server.py", "write `--` before a program"),
            ("C:\\server.exe", "write `--` before a program"),
            ("tides", "no server is named `tides`"),
            ("no/such/file.json:tides", "the file cannot be read"),
        ] {
            let failure = resolved(typed).unwrap_err();
            assert!(failure.message.contains(message), "{failure:?}");
            assert!(!failure.next.is_empty(), "{failure:?}");
        }
    }
}
