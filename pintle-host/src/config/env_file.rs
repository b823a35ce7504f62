use std::{fs, io::Read as _, path::Path};

/// The maximum size of a file of variables.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file of variables (`.env`), one `NAME=value` per line. Errors do not contain values.
pub(super) fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("`envFile` cannot be read: `{shown}`: {error}");
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(format!("`envFile` cannot be read: `{shown}` is not a file"));
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("`envFile` is larger than {} MiB: `{shown}`", MAX_BYTES >> 20));
    }
    parse(&text).map_err(|line| {
        format!("line {line} of `envFile` is invalid: `{shown}`: write `NAME=value`, and close quotes")
    })
}

/// Parses variables; the error is the number of a line.
fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    for (number, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let parsed = line.split_once('=').and_then(|(name, value)| {
            let name = name.trim();
            let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '\0');
            Some((is_name.then(|| name.to_owned())?, value_of(value.trim())?))
        });
        variables.push(parsed.ok_or(number + 1)?);
    }
    Ok(variables)
}

/// A value without its quotes, or without the comment after it.
fn value_of(text: &str) -> Option<String> {
    if text.contains('\0') {
        return None;
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        return quoted.split_once('\'').map(|(value, _)| value.to_owned());
    }
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(" #").unwrap_or(text.len());
        return Some(text[..end].trim_end().to_owned());
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_line_by_line() {
        let text = "\u{feff}# comment\n\nA=1\nexport B = two words # not this\nC='a # b'\nD=\"x\\ny\\\"\" # c\nE=\nF=a=b#c\r\n";
        let expected =
            [("A", "1"), ("B", "two words"), ("C", "a # b"), ("D", "x\ny\""), ("E", ""), ("F", "a=b#c")];
        assert_eq!(
            parse(text),
            Ok(expected.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
        );
        for (text, line) in [("A=1\nB", 2), ("=x", 1), ("A='x", 1), ("A=\"x", 1), ("A B=1", 1), ("A=\0", 1)] {
            assert_eq!(parse(text), Err(line), "{text:?}");
        }
    }
}
