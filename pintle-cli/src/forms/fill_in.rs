use pintle::{client::Answer, types::JsonObject};
use serde_json::Value;

use super::{
    field::{Field, FieldKind, bare},
    form::Form,
};
use crate::output::{Text, Tone, Turn};

/// Asks the user to fill in a form, except for the values that were given. Shows them before they are sent.
pub(super) async fn fill_in(server: &str, form: &Form, given: JsonObject, turn: &mut Turn<'_>) -> Answer {
    let mut text = Text::new();
    text.tone(Tone::Title, server).add(" asks: ").block(&form.message);
    if !form.fields.is_empty() {
        text.tone(Tone::Faint, "Enter takes what is in brackets; Ctrl-D cancels.").end();
    }
    turn.print(&text);
    let mut values = given.clone();
    loop {
        for field in &form.fields {
            if given.contains_key(&field.name) {
                continue;
            }
            // In the second pass, what was typed before is the default.
            let before = values.shift_remove(&field.name).or_else(|| field.default.clone());
            let Some(value) = ask_field(field, before, turn).await else { return Answer::Cancel };
            values.extend(value.map(|value| (field.name.clone(), value)));
        }
        if !form.fields.is_empty() {
            turn.print(&summary(form, &values));
        }
        loop {
            let Some(typed) = turn.ask(&Text::from("Send it? (yes, no, edit) [yes]: ")).await else {
                return Answer::Cancel;
            };
            match typed.trim().to_lowercase().as_str() {
                "" | "y" | "yes" => return Answer::accept(&values),
                "n" | "no" => return Answer::Decline,
                "e" | "edit" if !form.fields.is_empty() => break,
                _ => turn.print(Text::from("Type `yes`, `no` or `edit`; `no` declines.").end()),
            }
        }
    }
}

/// Asks for one field until what is typed fits. `None` if the user cancels, `Some(None)` if there is no value.
async fn ask_field(field: &Field, default: Option<Value>, turn: &mut Turn<'_>) -> Option<Option<Value>> {
    turn.print(&heading(field));
    let hint = match (&default, field.required) {
        (Some(default), _) => format!(" [{}]", shown(default)),
        (None, true) => String::new(),
        (None, false) => " [none]".to_owned(),
    };
    let mut prompt = Text::new();
    prompt.tone(Tone::Method, &field.name).add(hint).add(": ");
    loop {
        let typed = turn.ask(&prompt).await?;
        if typed.is_empty() {
            if default.is_some() || !field.required {
                return Some(default);
            }
            turn.print(&problem(&format!("`{}` is required: it is {}", field.name, field.expected())));
            continue;
        }
        match field.read_typed(&typed) {
            Ok(value) => return Some(Some(value)),
            Err(reason) => turn.print(&problem(&reason)),
        }
    }
}

fn heading(field: &Field) -> Text {
    let mut text = Text::new();
    text.end();
    if let Some(title) = field.title.as_ref().filter(|title| **title != field.name) {
        text.tone(Tone::Method, title).end();
    }
    for line in field.description.iter().flat_map(|description| description.lines()) {
        text.add("  ").line(line);
    }
    match &field.kind {
        FieldKind::Choice(choices) | FieldKind::Choices { choices, .. } => {
            for (number, choice) in choices.iter().enumerate() {
                text.tone(Tone::Faint, format_args!("{:>4}  ", number + 1)).add(&choice.value);
                if let Some(title) = &choice.title {
                    text.add("  ").tone(Tone::Faint, title);
                }
                text.end();
            }
            let how = match field.kind {
                FieldKind::Choice(_) => "  A number or a value.",
                _ => "  Numbers or values, with commas between them.",
            };
            text.tone(Tone::Faint, how).end();
        }
        _ => {
            text.tone(Tone::Faint, format_args!("  {}", field.expected())).end();
        }
    }
    text
}

fn summary(form: &Form, values: &JsonObject) -> Text {
    let mut text = Text::new();
    text.end();
    for name in form.names() {
        let value = values.get(name).map_or_else(|| "none".to_owned(), shown);
        text.add("  ").tone(Tone::Method, name).add(" = ").line(value);
    }
    text
}

/// Formats a value as it is typed: a list with commas.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(bare).collect::<Vec<_>>().join(", "),
        value => bare(value),
    }
}

fn problem(reason: &str) -> Text {
    let mut text = Text::new();
    text.tone(Tone::Error, "  ! ").line(reason);
    text
}
