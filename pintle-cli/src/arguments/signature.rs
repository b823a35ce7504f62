use pintle::types::schema::{Prompt, Tool};

use super::{
    Parameter, parameters,
    shape::{Shape, bare},
};
use crate::{output::Text, output::Tone, targets::Endpoint};

/// Formats a tool as a person writes it: `tide(port: bergen|esbjerg, [hour: int = 6])`.
pub(crate) fn signature(tool: &Tool) -> String {
    let parameters: Vec<_> = parameters(&tool.input_schema).iter().map(parameter).collect();
    format!("{}({})", tool.name, parameters.join(", "))
}

/// Formats a prompt with its arguments: `passage(to, [by])`.
pub(crate) fn prompt_signature(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.iter().flatten().map(|argument| match argument.required {
        Some(true) => argument.name.clone(),
        _ => format!("[{}]", argument.name),
    });
    format!("{}({})", prompt.name, arguments.collect::<Vec<_>>().join(", "))
}

fn parameter(parameter: &Parameter<'_>) -> String {
    let Parameter { name, shape, required, default, .. } = parameter;
    match (required, default) {
        (true, _) => format!("{name}: {shape}"),
        (false, Some(default)) => format!("[{name}: {shape} = {}]", bare(default)),
        (false, None) => format!("[{name}: {shape}]"),
    }
}

/// Formats the help of a tool: what it does, its arguments, and a line to type.
pub(crate) fn help(tool: &Tool, endpoint: &Endpoint, text: &mut Text) {
    text.tone(Tone::Title, signature(tool)).end();
    if let Some(description) = &tool.description {
        text.end().block(description);
    }
    let parameters = parameters(&tool.input_schema);
    text.end().line("Usage:");
    text.add("  ").line(example(tool, endpoint));
    if parameters.is_empty() {
        return;
    }
    text.end().line("Arguments:");
    for Parameter { name, shape, required, description, default } in &parameters {
        text.add("  ")
            .tone(Tone::Method, name)
            .add(", ")
            .tone(Tone::Method, format_args!("--{}", name.replace('_', "-")));
        text.add("  ").add(shape);
        match (required, default) {
            (true, _) => text.tone(Tone::Faint, ", required"),
            (false, Some(default)) => text.tone(Tone::Faint, format_args!(", default {}", bare(default))),
            (false, None) => text,
        };
        text.end();
        if let Some(description) = description {
            description.lines().for_each(|line| {
                text.add("      ").line(line);
            });
        }
    }
    text.end()
        .line("`name=text` is read by the schema, `name:=JSON` is JSON, `name@file` the contents of a file.")
        .line("`--name value` is `name=value`; where the command has an option of that name, only the latter is the tool's.");
}

/// Returns a command line that calls the tool with its required arguments.
pub(crate) fn example(tool: &Tool, endpoint: &Endpoint) -> String {
    let mut words = vec![tool.name.clone()];
    let parameters = parameters(&tool.input_schema);
    words.extend(parameters.iter().filter(|parameter| parameter.required).map(word));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    endpoint.line("call", &words)
}

fn word(parameter: &Parameter<'_>) -> String {
    let name = parameter.name;
    if let Some(default) = parameter.default {
        return format!("{name}={}", bare(default));
    }
    match &parameter.shape {
        Shape::Choice(values) => format!("{name}={}", values.first().map(bare).unwrap_or_default()),
        Shape::Integer | Shape::Number => format!("{name}=1"),
        Shape::Boolean => format!("{name}=true"),
        Shape::Object => format!("{name}:={{}}"),
        Shape::List(_) => format!("{name}:=[]"),
        _ => format!("{name}=…"),
    }
}
