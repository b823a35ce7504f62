use std::collections::BTreeMap;

use pintle::{
    server::{Cx, Form, ToolError},
    types::JsonObject,
};
use serde_json::{Value, json};

use crate::argument::Argument;

/// The beginning of the keys of these questions. A worker has no such key.
pub(crate) const OWN_KEYS: &str = "tool.";
/// The most bytes of a plan that the user is shown.
const MAX_SHOWN: usize = 8 << 10;
/// The most characters of a run of blanks that are shown one by one.
const MAX_BLANKS: usize = 4;

/// The questions that the user is asked before a tool acts.
#[derive(Debug)]
pub(crate) struct Questions {
    /// The schemas of the arguments that are asked for if a call leaves them out.
    asked: BTreeMap<String, Value>,
    pub(crate) confirm: bool,
}

impl Questions {
    /// Makes the arguments of these names optional. Their defaults are those of the form.
    pub(crate) fn new(
        names: &[String],
        confirm: bool,
        arguments: &mut BTreeMap<String, Argument>,
    ) -> Result<Self, String> {
        let mut asked = BTreeMap::new();
        for name in names {
            let Some(argument) = arguments.get_mut(name) else {
                return Err(format!("`ask` names `{name}`, which is no argument: add it to `arguments`"));
            };
            let mut schema = argument.schema.clone();
            argument.is_required = false;
            if let (Some(listed), Some(asked)) = (argument.schema.as_object_mut(), schema.as_object_mut()) {
                listed.remove("default");
                // Forms have no patterns. The answer is checked by the whole schema.
                asked.remove("pattern");
            }
            asked.insert(name.clone(), schema);
        }
        let questions = Self { asked, confirm };
        match questions.form(|_| true) {
            Err(reason) => Err(format!("an argument of `ask` cannot be asked for: {reason}")),
            Ok(_) => Ok(questions),
        }
    }

    /// Returns the form for the arguments that are missing; `None` if none is.
    fn form(&self, is_missing: impl Fn(&str) -> bool) -> Result<Option<Form>, String> {
        let missing: Vec<_> = self.asked.iter().filter(|(name, _)| is_missing(name)).collect();
        let required: Vec<_> = missing.iter().map(|(name, _)| name).collect();
        let properties: JsonObject =
            missing.iter().map(|(name, schema)| ((*name).clone(), (*schema).clone())).collect();
        if properties.is_empty() {
            return Ok(None);
        }
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Form::from_schema(&schema).map(Some).map_err(|error| error.to_string())
    }

    /// Returns whether a call leaves out an argument that is asked for.
    pub(crate) fn asks(&self, arguments: &JsonObject) -> bool {
        self.asked.keys().any(|name| !arguments.contains_key(name))
    }

    /// Returns the arguments with those that the user gave.
    pub(crate) async fn complete(
        &self,
        cx: &Cx,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<JsonObject, ToolError> {
        let form = self.form(|name| !arguments.contains_key(name)).map_err(ToolError::new)?;
        let Some(form) = form else { return Ok(arguments) };
        let given = cx
            .elicit_form(&format!("{OWN_KEYS}arguments"), &format!("`{tool}` needs more to begin."), &form)
            .await?;
        let Some(given) = given.accepted() else {
            return Err(ToolError::new(format!("the user did not give the arguments that `{tool}` needs")));
        };
        Ok(arguments.into_iter().chain(given).collect())
    }

    /// Has the user confirm what the tool would do.
    pub(crate) async fn confirm(&self, cx: &Cx, tool: &str, plan: &str) -> Result<(), ToolError> {
        let shown = shown(plan);
        if shown.len() > MAX_SHOWN {
            return Err(ToolError::new(format!(
                "what `{tool}` would do has {} bytes, and the user is shown at most {MAX_SHOWN}: call it with shorter arguments",
                shown.len()
            )));
        }
        match cx
            .elicit::<()>(&format!("{OWN_KEYS}confirm"), &format!("Run `{tool}`?\n\n{shown}"))
            .await?
            .accepted()
        {
            Some(()) => Ok(()),
            None => Err(ToolError::new(format!("the user does not want `{tool}` to run"))),
        }
    }
}

/// Returns a text in one line in which nothing is hidden: what a user would not see is escaped, and runs of it are counted.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    let letters: Vec<char> = text.chars().collect();
    for run in letters.chunk_by(|one, next| one == next) {
        let (letter, length) = (run[0], run.len());
        let visible = visible(letter);
        let is_blank = letter == ' ' || !visible.starts_with(letter);
        match (is_blank && length > MAX_BLANKS, letter) {
            (true, ' ') => shown += &format!("[{length} spaces]"),
            (true, _) => shown += &format!("[{length} × {visible}]"),
            (false, _) => shown += &visible.repeat(length),
        }
    }
    shown
}

/// Returns a character, or its escape if it is a control, changes the direction of text, is invisible, or strikes out another one.
fn visible(letter: char) -> String {
    match letter {
        '\'' | '"' | '\\' => letter.to_string(),
        '\u{334}'..='\u{338}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}'
        | '\u{e0100}'..='\u{e01ef}' => letter.escape_unicode().to_string(),
        // Marks are escaped at the beginning of a text only.
        _ => format!("a{letter}").escape_debug().skip(1).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_would_not_see_is_shown() {
        for text in ["echo 'it''s' \"a\" \\d+ a  b", "Grüße, 東京, مرحبا, क्षि, 👍"] {
            assert_eq!(shown(text), text);
        }
        for (text, expected) in [
            ("a\nb\tc\r", r"a\nb\tc\r"),
            ("\u{1b}[2K\u{202e}\u{200b}\u{feff}\u{a0}", r"\u{1b}[2K\u{202e}\u{200b}\u{feff}\u{a0}"),
            ("\u{3164}\u{2800}\u{fe0f}\u{e0041}\u{e0100}", r"\u{3164}\u{2800}\u{fe0f}\u{e0041}\u{e0100}"),
        ] {
            assert_eq!(shown(text), expected);
        }
        assert_eq!(shown(&format!("rm a{}/etc/passwd", " ".repeat(3_000))), "rm a[3000 spaces]/etc/passwd");
        assert_eq!(shown(&format!("rm a{}/etc/passwd", "\n".repeat(3_000))), r"rm a[3000 × \n]/etc/passwd");
    }
}
