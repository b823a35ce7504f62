use super::{Parameter, shape::Shape};
use crate::args::{flag_of, near};

/// Replaces options by the arguments that they name: `--port bergen` by `port=bergen`. An error is one line.
///
/// A dash in an option may be an underscore in the name. An option of a boolean needs no value, and `--no-NAME` is false.
pub(crate) fn replace_flags(parameters: &[Parameter<'_>], words: &[String]) -> Result<Vec<String>, String> {
    let mut replaced = Vec::with_capacity(words.len());
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let Some(option) = flag_of(word) else {
            replaced.push(word.clone());
            continue;
        };
        let (name, given) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let find = |name: &str| {
            let is_it = |parameter: &&Parameter<'_>| {
                parameter.name == name || parameter.name.replace('_', "-") == name.replace('_', "-")
            };
            parameters.iter().find(is_it)
        };
        if let Some(parameter) = find(name) {
            let value = match given {
                Some(value) => value,
                None if parameter.shape == Shape::Boolean => {
                    let is_value =
                        |word: &&String| ["true", "false", "yes", "no", "on", "off"].contains(&word.as_str());
                    rest.next_if(|word| is_value(word)).map_or("true", String::as_str)
                }
                None => {
                    rest.next_if(|word| flag_of(word).is_none()).map(String::as_str).ok_or_else(|| {
                        format!("`--{name}` needs a value: it is {}", parameter.shape.described())
                    })?
                }
            };
            replaced.push(format!("{}={value}", parameter.name));
            continue;
        }
        let negated = name.strip_prefix("no-").and_then(find);
        match negated.filter(|parameter| parameter.shape == Shape::Boolean && given.is_none()) {
            Some(parameter) => replaced.push(format!("{}=false", parameter.name)),
            None => {
                let meant = near(name, parameters.iter().map(|parameter| parameter.name));
                let meant = meant.map(|meant| format!("; did you mean `--{meant}`?")).unwrap_or_default();
                return Err(format!("no option and no argument `--{name}`{meant}"));
            }
        }
    }
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::parameters;

    fn replaced(words: &[&str]) -> Result<Vec<String>, String> {
        let schema = json!({"properties": {
            "port": {"type": "string"}, "max_age": {"type": "integer"}, "dry_run": {"type": "boolean"}}});
        let words: Vec<_> = words
            .iter()
            .map(|word| if word.starts_with("--") { format!("\u{1}{word}") } else { (*word).to_owned() })
            .collect();
        replace_flags(&parameters(schema.as_object().unwrap()), &words)
    }

    #[test]
    fn an_option_is_an_argument() {
        assert_eq!(
            replaced(&["--port", "a=b", "--max-age=7", "--dry-run", "x:=1"]),
            Ok(vec!["port=a=b".into(), "max_age=7".into(), "dry_run=true".into(), "x:=1".into()])
        );
        assert_eq!(replaced(&["--dry-run", "no"]), Ok(vec!["dry_run=no".into()]));
        assert_eq!(
            replaced(&["--no-dry-run", "--max_age", "1"]),
            Ok(vec!["dry_run=false".into(), "max_age=1".into()])
        );
        for (words, message) in [
            (&["--prot", "x"][..], "no option and no argument `--prot`; did you mean `--port`?"),
            (&["--port"], "`--port` needs a value: it is a text"),
            (&["--port", "--dry-run"], "`--port` needs a value"),
            (&["--no-port"], "no option and no argument `--no-port`"),
        ] {
            let error = replaced(words).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
