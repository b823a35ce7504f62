use super::{Target, address};
use crate::failure::Failure;

/// Finds out which server a word means.
///
/// The order is: `demo`, a URL, a configured name, a host.
pub(crate) fn resolve(typed: &str) -> Result<Target, Failure> {
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
    if is_path(typed) {
        let next = format!("pintle info -- {typed}");
        return Err(Failure::usage(format!("`{typed}` is a path: write `--` before a program"), next));
    }
    if address::is_host(typed) {
        return Ok(Target::Url(address::url_of_host(typed)));
    }
    Err(Failure::usage(
        format!("`{typed}` is not a target: write a URL, a host, `demo`, or `--` and a program"),
        "pintle ls demo",
    ))
}

/// Returns whether a word names a file of this machine.
fn is_path(typed: &str) -> bool {
    let begins = ["./", "../", "/", "~/", ".\\", "..\\"].iter().any(|start| typed.starts_with(start));
    let drive = typed.as_bytes().get(1..3).is_some_and(|rest| rest == b":\\" || rest == b":/");
    begins || drive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_one_server() {
        let url = |url: &str| Target::Url(url.to_owned());
        for (typed, target) in [
            ("demo", Target::Demo),
            ("http://10.0.0.7/mcp", url("http://10.0.0.7/mcp")),
            ("HTTPS://example.com/", url("HTTPS://example.com/")),
            ("example.com/mcp", url("https://example.com/mcp")),
            ("localhost:8000", url("http://localhost:8000/mcp")),
        ] {
            assert_eq!(resolve(typed).unwrap(), target);
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_to_type() {
        for (typed, message) in [
            ("ftp://example.com/x", "`ftp` is not a scheme"),
            ("./server.py", "write `--` before a program"),
            ("C:\\server.exe", "write `--` before a program"),
            ("tides", "`tides` is not a target"),
        ] {
            let failure = resolve(typed).unwrap_err();
            assert!(failure.message.contains(message), "{failure:?}");
            assert!(failure.next.starts_with("pintle "), "{failure:?}");
        }
    }
}
