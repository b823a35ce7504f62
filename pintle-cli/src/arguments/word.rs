use std::{fs, io, thread};

use pintle::types::JsonObject;
use serde_json::Value;
use tokio::sync::oneshot;

/// The largest file or standard input that is read. Servers refuse larger messages.
const MAX_BYTES: u64 = 64 << 20;

/// An argument as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    /// `name=text` and `name@file`: its type depends on the schema.
    Text { name: String, text: String },
    /// `name:=json` and `name:=@file`.
    Json { name: String, value: Value },
    /// `{…}`, or `-` for standard input.
    Object(JsonObject),
}

/// Reads the arguments that were typed, with the files that they name, and standard input for `-`.
pub(crate) async fn read_words(words: &[String]) -> Result<Vec<Word>, String> {
    if !words.iter().any(|word| word == "-" || word.ends_with("@-")) {
        return parse_words(words, &mut io::empty());
    }
    // In a thread that nobody waits for: Ctrl-C ends the command while it reads.
    let (sender, read) = oneshot::channel();
    let words = words.to_vec();
    thread::spawn(move || sender.send(parse_words(&words, &mut io::stdin())));
    read.await.unwrap_or_else(|_| Err("standard input cannot be read".to_owned()))
}

pub(super) fn parse_words(words: &[String], stdin: &mut dyn io::Read) -> Result<Vec<Word>, String> {
    words.iter().map(|word| read_word(word, stdin)).collect()
}

fn read_word(word: &str, stdin: &mut dyn io::Read) -> Result<Word, String> {
    if word == "-" {
        return object(&read_to_end(stdin, "standard input")?, "standard input");
    }
    if word.trim_start().starts_with('{') {
        return object(word, word);
    }
    let Some(at) = word.find([':', '=', '@']).filter(|at| *at > 0) else { return Err(unknown(word)) };
    // A name may have a colon, as long as it is not that of `:=`.
    let at = match word.find(":=") {
        Some(colon) if !word[..colon].contains(['=', '@']) => colon,
        _ => word.find(['=', '@']).filter(|found| *found >= at).ok_or_else(|| unknown(word))?,
    };
    let (name, rest) = word.split_at(at);
    let name = name.to_owned();
    match (rest.strip_prefix(":="), rest.strip_prefix('='), rest.strip_prefix('@')) {
        (Some(json), ..) => {
            let json = match json.strip_prefix('@') {
                Some(file) => read_file(file, stdin)?,
                None => json.to_owned(),
            };
            let value = serde_json::from_str(&json)
                .map_err(|error| format!("`{word}` is not JSON: {error}: a text is `{name}=text`"))?;
            Ok(Word::Json { name, value })
        }
        (_, Some(text), _) => Ok(Word::Text { name, text: text.to_owned() }),
        (_, _, Some(file)) => Ok(Word::Text { name, text: read_file(file, stdin)? }),
        _ => Err(unknown(word)),
    }
}

fn unknown(word: &str) -> String {
    format!("`{word}` is not an argument: write `name=value`, `name:=JSON`, `name@file` or a JSON object")
}

fn object(json: &str, whence: &str) -> Result<Word, String> {
    match serde_json::from_str(json) {
        Ok(members) => Ok(Word::Object(members)),
        Err(error) => Err(format!("`{whence}` is not a JSON object: {error}")),
    }
}

fn read_file(path: &str, stdin: &mut dyn io::Read) -> Result<String, String> {
    if path == "-" {
        return read_to_end(stdin, "standard input");
    }
    let file = fs::File::open(path).map_err(|error| format!("the file `{path}` cannot be read: {error}"))?;
    read_to_end(&mut io::BufReader::new(file), path)
}

fn read_to_end(from: &mut dyn io::Read, whence: &str) -> Result<String, String> {
    use io::Read as _;

    let mut bytes = Vec::new();
    let read = from.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    let count = read.map_err(|error| format!("`{whence}` cannot be read: {error}"))?;
    if count as u64 > MAX_BYTES {
        return Err(format!("`{whence}` is larger than {} MiB", MAX_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|_| format!("`{whence}` is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(word: &str) -> Result<Word, String> {
        read_word(word, &mut r#"{"a":1}"#.as_bytes())
    }

    #[test]
    fn the_first_sign_decides() {
        let text = |name: &str, text: &str| Ok(Word::Text { name: name.into(), text: text.into() });
        let json = |name: &str, value| Ok(Word::Json { name: name.into(), value });
        assert_eq!(read("mail=a@b"), text("mail", "a@b"));
        assert_eq!(read("url=http://x:=y"), text("url", "http://x:=y"));
        assert_eq!(read("a:b=c"), text("a:b", "c"));
        assert_eq!(read("n:=1"), json("n", json!(1)));
        assert_eq!(read("n:=@-"), json("n", json!({"a": 1})));
        assert_eq!(read("n@-"), text("n", r#"{"a":1}"#));
        assert_eq!(read("empty="), text("empty", ""));
        assert_eq!(read("-"), Ok(Word::Object(serde_json::from_str(r#"{"a":1}"#).unwrap())));
        for bad in ["word", "=x", "@file", ":=1", "{", "n@no/such/file", "a:b"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
