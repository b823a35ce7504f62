use std::sync::{Mutex, PoisonError};

use pintle::types::JsonObject;
use serde_json::Value;

use super::form::Form;
use crate::{
    args::near,
    arguments::{Word, read_words},
};

/// Answers that were given on the command line, for the fields of whatever forms the server asks for.
#[derive(Debug, Default)]
pub(super) struct GivenAnswers {
    words: Vec<Word>,
    /// The names that were used, and those of every field that was asked for.
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    used: Vec<String>,
    asked: Vec<String>,
}

impl GivenAnswers {
    /// Reads `name=value` words and a file with a JSON object.
    pub(super) async fn read(words: &[String], file: Option<&str>) -> Result<Self, String> {
        let mut read = read_words(words).await?;
        if let Some(file) = file {
            // As an argument from a file.
            let whole = if file == "-" { "-".to_owned() } else { format!("answers:=@{file}") };
            for word in read_words(&[whole]).await? {
                match word {
                    Word::Json { value: Value::Object(members), .. } | Word::Object(members) => {
                        read.push(Word::Object(members));
                    }
                    _ => return Err(format!("the file `{file}` is not a JSON object")),
                }
            }
        }
        Ok(Self { words: read, seen: Mutex::default() })
    }

    /// Returns the values of the fields of a form, read by its schema. The error is for the one who gave them.
    pub(super) fn values_of(&self, form: &Form) -> Result<JsonObject, String> {
        let mut values = JsonObject::new();
        let mut unknown = Vec::new();
        for (name, value) in self.words.iter().flat_map(members) {
            let Some(field) = form.field(name) else {
                unknown.push(name);
                continue;
            };
            let value = match value {
                Given::Text(text) => field.read(text)?,
                Given::Json(value) => field.check(value).map(|()| value.clone())?,
            };
            match (values.get_mut(name), value) {
                (Some(Value::Array(items)), Value::Array(more)) if field.is_list() => items.extend(more),
                (Some(_), _) => return Err(format!("`{name}` is given twice")),
                (None, value) => drop(values.insert(name.to_owned(), value)),
            }
        }
        // Items that were given one by one are checked together.
        for (name, value) in &values {
            form.field(name).map_or(Ok(()), |field| field.check(value))?;
        }
        // One that this form does not ask for may be for the next; a slip is not.
        for name in unknown {
            if self.was_asked(name) {
                continue;
            }
            if let Some(meant) = near(name, form.names()).filter(|meant| !values.contains_key(*meant)) {
                return Err(format!(
                    "the server does not ask for `{name}`; did you mean `{meant}`? it asks for {}",
                    quoted_names(form.names())
                ));
            }
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.asked.extend(form.names().map(str::to_owned));
        seen.used.extend(values.keys().cloned());
        Ok(values)
    }

    /// Returns an error if an answer was given that no form asked for.
    pub(super) fn check_used(&self) -> Result<(), String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |name: &&str| !seen.used.iter().any(|used| used == name);
        let Some(unused) = self.words.iter().flat_map(members).map(|(name, _)| name).find(is_unused) else {
            return Ok(());
        };
        Err(match seen.asked.is_empty() {
            true => format!("the server did not ask for `{unused}`: it asked for nothing"),
            false => format!(
                "the server did not ask for `{unused}`: it asked for {}",
                quoted_names(seen.asked.iter().map(String::as_str))
            ),
        })
    }

    fn was_asked(&self, name: &str) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.asked.iter().any(|asked| asked == name)
    }
}

enum Given<'a> {
    Text(&'a str),
    Json(&'a Value),
}

fn members(word: &Word) -> Vec<(&str, Given<'_>)> {
    match word {
        Word::Text { name, text } => vec![(name, Given::Text(text))],
        Word::Json { name, value } => vec![(name, Given::Json(value))],
        Word::Object(members) => {
            members.iter().map(|(name, value)| (name.as_str(), Given::Json(value))).collect()
        }
    }
}

/// Formats names for a message: at most twenty.
pub(super) fn quoted_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    all.dedup();
    if let more @ 1.. = all.len().saturating_sub(20) {
        all.truncate(20);
        all.push(format!("{more} others"));
    }
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use pintle::types::schema::ElicitFormParams;
    use serde_json::json;

    use super::*;
    use crate::forms::form::Filled;

    fn form() -> Form {
        let params: ElicitFormParams = serde_json::from_value(json!({
            "message": "Who?",
            "requestedSchema": {"type": "object", "required": ["boat", "nights"], "properties": {
                "boat": {"type": "string"},
                "nights": {"type": "integer", "maximum": 14},
                "flags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            }},
        }))
        .unwrap();
        Form::new(&params)
    }

    async fn filled(words: &[&str]) -> Result<(bool, Value), String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let given = GivenAnswers::read(&words, None).await?;
        let filled = match form().fill(&given)? {
            Filled::Whole(values) => (true, Value::Object(values)),
            Filled::Partly(values) => (false, Value::Object(values)),
        };
        given.check_used()?;
        Ok(filled)
    }

    #[tokio::test]
    async fn answers_are_read_by_the_schema_of_the_form() {
        assert_eq!(
            filled(&["boat=7", "nights=7", "flags=a", "flags=b"]).await,
            Ok((true, json!({"boat": "7", "nights": 7, "flags": ["a", "b"]})))
        );
        assert_eq!(filled(&["boat=x"]).await, Ok((false, json!({"boat": "x"}))));
        assert_eq!(
            filled(&[r#"{"boat": "x", "nights": 1}"#]).await,
            Ok((true, json!({"boat": "x", "nights": 1})))
        );
    }

    #[tokio::test]
    async fn what_was_not_asked_for_names_what_was() {
        for (words, message) in [
            (&["boat=x", "nights=40"][..], "`nights` must be an integer at most 14, not `40`"),
            (
                &["boat=x", "nigths=4"],
                "the server does not ask for `nigths`; did you mean `nights`? it asks for `boat`, `nights`, `flags`",
            ),
            (
                &["boat=x", "nights=4", "captain=y"],
                "the server did not ask for `captain`: it asked for `boat`, `nights`, `flags`",
            ),
            (&["boat=x", "boat=y"], "`boat` is given twice"),
            (&["boat:=1"], "`boat` must be a text, not `1`"),
        ] {
            assert_eq!(filled(words).await, Err(message.to_owned()));
        }
    }
}
