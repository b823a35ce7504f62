//! One Rust file, seen three ways: as written, without comments, and without comments and strings.

use std::ops::Range;

/// A Rust file with its comments, strings and tests told apart. All three texts have the same offsets.
#[derive(Debug)]
pub(super) struct Source {
    /// From the workspace root, with `/`.
    pub(super) path: String,
    /// Package that holds it.
    pub(super) krate: String,
    /// From the package's folder: `src/server/session.rs`.
    pub(super) inside: String,
    pub(super) raw: String,
    /// Comments blanked out.
    pub(super) code: String,
    /// Comments and the insides of strings and characters blanked out.
    pub(super) bare: String,
    /// The whole file is test code.
    pub(super) all_test: bool,
    tests: Vec<Range<usize>>,
}

impl Source {
    pub(super) fn new(krate: &str, dir: &str, inside: &str, raw: String) -> Self {
        let (code, bare) = mask(&raw);
        let tests = test_items(&bare);
        Self {
            path: if dir.is_empty() { inside.to_owned() } else { format!("{dir}/{inside}") },
            krate: krate.to_owned(),
            inside: inside.to_owned(),
            all_test: inside.starts_with("tests/"),
            raw,
            code,
            bare,
            tests,
        }
    }

    pub(super) fn in_src(&self) -> bool {
        self.inside.starts_with("src/")
    }

    pub(super) fn is_test(&self, at: usize) -> bool {
        self.all_test || self.tests.iter().any(|range| range.contains(&at))
    }

    pub(super) fn line(&self, at: usize) -> usize {
        line(&self.raw, at)
    }

    /// Offsets of `word` in the bare text, where it is no part of a longer name.
    pub(super) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let bytes = self.bare.as_bytes();
        self.bare.match_indices(word).map(|(at, _)| at).filter(move |&at| {
            let before = at.checked_sub(1).is_some_and(|i| is_name(bytes[i]) && is_name(bytes[at]));
            let end = at + word.len();
            !before && !bytes.get(end).is_some_and(|byte| is_name(*byte) && is_name(bytes[end - 1]))
        })
    }

    /// Names of modules that this file declares for tests only and keeps in files of their own.
    pub(super) fn test_modules(&self) -> Vec<String> {
        let items = self.tests.iter().map(|range| &self.bare[range.clone()]);
        items.filter_map(declared_module).map(str::to_owned).collect()
    }
}

/// The line number of an offset, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The end of the group that opens at `open`, just after its closing bracket.
pub(super) fn group_end(bare: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in bare.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    bare.len()
}

/// `mod name;` at the end of an item's text.
fn declared_module(item: &str) -> Option<&str> {
    let (_, name) = item.strip_suffix(';')?.rsplit_once("mod ")?;
    let name = name.trim();
    name.bytes().all(is_name).then_some(name)
}

fn test_items(bare: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for attribute in ["#[cfg(test)]", "#[cfg(all(test", "#[test]"] {
        for (start, _) in bare.match_indices(attribute) {
            let after = group_end(bare, start + 1);
            let end = match bare[after..].find(['{', ';']) {
                Some(at) if bare.as_bytes()[after + at] == b'{' => group_end(bare, after + at),
                Some(at) => after + at + 1,
                None => bare.len(),
            };
            items.push(start..end);
        }
    }
    items
}

/// The text without comments, and without comments and strings.
fn mask(raw: &str) -> (String, String) {
    let bytes = raw.as_bytes();
    let (mut code, mut bare) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let fresh = at == 0 || !is_name(bytes[at - 1]);
        if rest.starts_with(b"//") {
            let end = at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            blank(&mut code, at..end);
            blank(&mut bare, at..end);
            at = end;
        } else if rest.starts_with(b"/*") {
            let end = at + block_comment(rest);
            blank(&mut code, at..end);
            blank(&mut bare, at..end);
            at = end;
        } else if let Some((open, close)) = string(rest, fresh) {
            blank(&mut bare, at + open..at + close.saturating_sub(1));
            at += close;
        } else {
            at += 1;
        }
    }
    (text(&code), text(&bare))
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Where the inside of a string or character starts and where the literal ends, if one starts here.
fn string(rest: &[u8], fresh: bool) -> Option<(usize, usize)> {
    match rest[0] {
        b'"' => Some((1, quoted(rest, b'"'))),
        b'\'' => {
            let escaped = rest.get(1) == Some(&b'\\');
            let width = 1 + rest.iter().skip(2).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
            let single = rest.get(1 + width) == Some(&b'\'') && rest.get(1) != Some(&b'\'');
            // Else a lifetime.
            (escaped || single).then(|| (1, quoted(rest, b'\'')))
        }
        b'r' | b'b' | b'c' if fresh => {
            let letters = rest.iter().take_while(|byte| matches!(byte, b'r' | b'b' | b'c')).count();
            let hashes = rest[letters..].iter().take_while(|byte| **byte == b'#').count();
            let open = letters + hashes;
            if letters > 2 || rest.get(open) != Some(&b'"') || rest[letters - 1] != b'r' {
                return None;
            }
            let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            let close = rest[open + 1..].windows(end.len()).position(|window| window == end);
            Some((open + 1, close.map_or(rest.len(), |at| open + 1 + at + end.len())))
        }
        _ => None,
    }
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn blank(text: &mut [u8], range: Range<usize>) {
    for byte in &mut text[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn text(bytes: &[u8]) -> String {
    // Only whole characters were blanked, so nothing is lost here.
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(raw: &str) -> Source {
        Source::new("pintle", "pintle", "src/lib.rs", raw.to_owned())
    }

    #[test]
    fn comments_and_strings_are_distinguished_from_code() {
        let raw = concat!(
            "let a = \"one // \\\" two\"; // three\n",
            "/* four /* five */ six */ let b = r#\"seven \" eight\"#;\n",
            "let c: &'static str = 'x'; let d = '\\''; let e = b\"nine\"; let f = 'é'; let g = \"ü\";\n",
        );
        let source = source(raw);
        for word in ["three", "four", "six"] {
            assert!(!source.code.contains(word), "{word}: {}", source.code);
        }
        for word in ["one", "two", "seven", "eight", "nine"] {
            assert!(source.code.contains(word) && !source.bare.contains(word), "{word}: {}", source.bare);
        }
        for word in ["let b", "'static", "let d", "let e", "let f", "let g"] {
            assert!(source.bare.contains(word), "{word}: {}", source.bare);
        }
        assert_eq!((raw.len(), raw.len()), (source.code.len(), source.bare.len()));
        assert_eq!(source.line(raw.find("let c").unwrap()), 3);
    }

    #[test]
    fn what_is_compiled_for_tests_only_is_known() {
        let raw = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { \"}\"; }\n}\nfn c() {}\n#[cfg(test)]\nmod deep;\n";
        let source = source(raw);
        let at = |word: &str| raw.find(word).unwrap();
        assert!(!source.is_test(at("fn a")) && source.is_test(at("fn b")) && !source.is_test(at("fn c")));
        assert_eq!(source.test_modules(), ["deep"]);
    }

    #[test]
    fn a_word_is_not_a_part_of_a_name() {
        let source = source("Order Ord for PartialOrd my_Ord");
        assert_eq!(source.words("Ord").collect::<Vec<_>>(), [6]);
    }
}
