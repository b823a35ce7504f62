//! Texts that look like secrets: by their names, by their places, or by how random they are.

/// Words that are in the names of secrets, with or without others around them.
const ANYWHERE: [&str; 12] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "api-key",
    "api_key",
    "apikey",
    "privatekey",
];
/// Parts of names of secrets, which are parts of other words too.
const PARTS: [&str; 13] =
    ["auth", "pat", "pass", "pwd", "pw", "key", "keys", "jwt", "bearer", "cred", "creds", "sig", "signature"];
/// The last part of a name that says where a secret is.
const PLACES: [&str; 8] = ["file", "path", "dir", "url", "uri", "endpoint", "env", "name"];
/// The length from which a text can be a token.
const MIN_TOKEN: usize = 16;

/// Returns whether a header, variable, option or parameter of this name is probably a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = || name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    if parts().next_back().is_some_and(|last| PLACES.contains(&last)) {
        return false;
    }
    let is_part = |part: &str| {
        PARTS.contains(&part) || part.ends_with("pass") && !matches!(part, "bypass" | "compass" | "trespass")
    };
    parts().any(is_part) || ANYWHERE.iter().any(|word| name.contains(word))
}

/// Returns whether a value is probably a secret, whatever its name is.
pub(crate) fn has_secret(value: &str) -> bool {
    is_random(value) || in_url(value).is_some()
}

/// Returns the part of a URL that is probably a secret.
pub(crate) fn in_url(url: &str) -> Option<&'static str> {
    let (_, rest) = url.split_once("://")?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.rsplit_once('@').is_some_and(|(user, _)| !matches!(user, "" | "git")) {
        return Some("the user or password");
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_parameter = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        !value.is_empty() && is_secret(name) || is_random(pair)
    };
    match () {
        () if query.split(['&', ';', '#']).any(is_parameter) => Some("the query"),
        () if is_random(path) => Some("the path"),
        () => None,
    }
}

/// Returns what is probably a secret among the words of a command: the name of its option, or its number.
pub(crate) fn in_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut words = words.flat_map(str::split_whitespace).enumerate().peekable();
    while let Some((number, word)) = words.next() {
        let next = words.peek().map(|(_, next)| *next).filter(|next| !next.starts_with('-'));
        let (name, value) = match word.split_once('=').or_else(|| word.split_once(':')) {
            Some((name, value)) => (name, value),
            None if word.starts_with('-') || word.ends_with(':') => (word, next.unwrap_or_default()),
            None => ("", ""),
        };
        let value =
            if value.is_empty() { next.filter(|_| word.ends_with(':')).unwrap_or_default() } else { value };
        if is_secret(name) && !value.is_empty() && !value.contains('$') {
            return Some(format!("`{}`", name.trim_matches(['"', '\''])));
        }
        if has_secret(word) {
            return Some(format!("word {}", number + 1));
        }
    }
    None
}

/// Returns whether a text has a token: long, and of kinds of characters that change more often than in words.
fn is_random(text: &str) -> bool {
    // Digests of images and commits are public.
    let is_digest =
        |end: &str| matches!(end.len(), 40 | 64) && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let text = match text.rsplit_once(['@', ':']) {
        Some((before, end)) if is_digest(end) => before,
        _ => text,
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+')).any(|run| {
        let kind = |byte: u8| match byte {
            b'0'..=b'9' => 1,
            b'a'..=b'z' => 2,
            b'A'..=b'Z' => 3,
            _ => 0,
        };
        let changes = run.bytes().zip(run.bytes().skip(1)).filter(|(one, other)| {
            let (one, other) = (kind(*one), kind(*other));
            one != other && one != 0 && other != 0
        });
        run.len() >= MIN_TOKEN
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && 4 * changes.count() >= run.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_name_of_one() {
        for name in [
            "Authorization",
            "X-Auth",
            "x-api-key",
            "GITHUB_PAT",
            "PGPASS",
            "DB_PASS",
            "MY_TOKEN",
            "--token",
            "-key",
            "sig",
            "CLIENT_SECRET",
            "JWT",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "X-Team",
            "PATH",
            "X-Author",
            "KEYBOARD",
            "TOKEN_FILE",
            "PGPASSFILE",
            "BYPASS",
            "--token-url",
            "PATTERN",
            "HOME",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_are_found_in_urls_and_words() {
        let random = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        for (url, found) in [
            ("https://user:hunter2@a.example/mcp", Some("the user or password")),
            ("https://hunter2@a.example", Some("the user or password")),
            ("https://a.example/mcp?api_key=hunter2", Some("the query")),
            ("https://a.example/mcp?x=9f86d081884c7d659a2feaa0", Some("the query")),
            ("https://a.example/s/9f86d081884c7d659a2feaa0c55ad015/mcp", Some("the path")),
            ("https://a.example/mcp?tenant=blue&key=", None),
            ("https://mcp.long-example-name-2025.example/v1/mcp", None),
            ("ssh://git@a.example/x", None),
        ] {
            assert_eq!(in_url(url), found, "{url}");
        }
        for (words, found) in [
            (&["x", "--token", "hunter2"][..], Some("`--token`")),
            (&["x", "--api-key=hunter2"], Some("`--api-key`")),
            (&["sh", "-c", "PGPASS=hunter2 x"], Some("`PGPASS`")),
            (&["x", "--header", "Authorization: Bearer hunter2"], Some("`Authorization`")),
            (&["x", random], Some("word 2")),
            (&["x", "https://u:p@a.example"], Some("word 2")),
            (&["x", "--header", "Authorization:${AUTH}"], None),
            (&["docker", "run", "-e", "GITHUB_TOKEN", "ghcr.io/x/server"], None),
            (&["x", "--token-file", "/run/secrets/x", "--verbose"], None),
            (&["uvx", "mcp-server-git==2025.11.25", "--repository", "/srv/x86_64-linux-gnu"], None),
            (&["uvx", "git+https://a.example/x@3f786850e387550fdab836ed7e6dc881de23001b"], None),
            (&["npx", "-y", "@modelcontextprotocol/server-everything@2025.12.18"], None),
        ] {
            assert_eq!(in_words(words.iter().copied()).as_deref(), found, "{words:?}");
        }
    }
}
