use std::path::PathBuf;

use clap::Args;
use pintle::{
    Connection,
    schema::Schema,
    types::{
        JsonObject,
        schema::{CallToolResult, ProgressParams, Tool},
    },
};
use serde_json::Value;

use crate::{
    args::{HELP, QuestionArgs, TargetArgs, examples, flag_of, help_of, near},
    arguments::{self, read_words, signature},
    completion::cache_tool,
    content,
    failure::{Exit, Failure},
    forms::{Questions, Typed},
    output::{Output, Text, Tone},
    targets::Endpoint,
};

/// Call a tool
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle call demo tide port=bergen hour=4", "values are read by the tool's schema"),
        ("pintle call demo tide port=bergen hour:=4", "`:=` is followed by JSON"),
        (r#"pintle call demo tide '{"port": "bergen", "hour": 4}'"#, "all arguments as JSON"),
        ("pintle call demo post text@notice.txt", "a text from a file; `-` is standard input"),
        ("pintle call demo tide --port bergen --hour 4", "arguments as options"),
        ("pintle call demo tide --help", "the arguments of a tool"),
        ("pintle call search query=tides -- uvx mcp-server-x", "a tool of a program, which comes last"),
    ]),
    help_template = HELP,
    override_usage = "pintle call TARGET TOOL [NAME=VALUE]...",
    disable_help_flag = true,
)]
pub(crate) struct CallArgs {
    /// Print the help of the tool, or this one
    #[arg(long, short)]
    help: bool,
    /// Send arguments that do not match the tool's schema
    #[arg(long)]
    no_check: bool,
    /// Save images, audio and other data in this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    questions: QuestionArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: CallArgs, output: &Output) -> Result<(), Failure> {
    let CallArgs { help, no_check, save, questions, target } = args;
    let for_tool = target.words.len() + usize::from(!target.connect.command.is_empty()) > 1;
    if help && !for_tool {
        return output.text(|text| {
            text.block(help_of::<CallArgs>());
        });
    }
    if let Some(option) = target.words.first().and_then(|word| flag_of(word)) {
        return Err(Failure::usage(format!("no such option: `--{option}`"), "pintle call --help"));
    }
    let (endpoint, mut words) = Endpoint::take("call", target)?;
    if words.is_empty() {
        return Err(Failure::usage("no tool is given", endpoint.line("ls", &["tools"])));
    }
    let name = words.remove(0);
    if let Some(option) = flag_of(&name) {
        let next = endpoint.line("ls", &["tools"]);
        return Err(Failure::usage(format!("no such option: `--{option}`, and no tool is given"), next));
    }
    let refused = |message: String| Failure::usage(message, endpoint.line("call", &[&name, "--help"]));
    // Options are arguments that only the tool's schema can tell from values.
    let has_flags = words.iter().any(|word| flag_of(word).is_some());
    let typed = if has_flags { Vec::new() } else { read_words(&words).await.map_err(refused)? };

    let mut questions = Questions::new(questions, &[], output).await?;
    let client = questions.attach(endpoint.client(output));
    let connection = endpoint.connect(&client, output).await?;
    questions.connected(&connection);
    let tool = find(&connection, &name, &endpoint).await?;
    cache_tool(endpoint.plain_word(), &tool);
    if help {
        output.result(&tool, |text| arguments::help(&tool, &endpoint, text))?;
        connection.close().await;
        return Ok(());
    }
    let reminded = |failure: Failure| failure.detail(signature(&tool));
    let typed = match has_flags {
        true => {
            let replaced = arguments::replace_flags(&arguments::parameters(&tool.input_schema), &words);
            words = replaced.map_err(refused).map_err(reminded)?;
            read_words(&words).await.map_err(refused).map_err(reminded)?
        }
        false => typed,
    };
    let arguments = arguments::of_tool(&tool, typed).map_err(refused).map_err(reminded)?;
    if !no_check {
        check(&tool, &arguments).map_err(refused).map_err(reminded)?;
    }
    let again: Vec<_> = std::iter::once(&name).chain(&words).map(String::as_str).collect();
    let call = send(&connection, &tool, arguments, output);
    let typed = Typed { verb: "call", words: &again };
    let done = questions.until_done(call, &endpoint, typed, output).await?;
    let result = done.map_err(|error| reminded(questions.explain(&error, &endpoint, typed)))?;
    print(&result, save.as_deref(), output)?;
    connection.close().await;
    match result.is_error {
        Some(true) => {
            let failure = questions.explain_failed(failed(&name, &endpoint), &result, &endpoint, typed);
            Err(reminded(failure))
        }
        _ => questions.check_used(&endpoint.line("call", &again)),
    }
}

/// Returns the failure of a tool that ran and failed.
pub(super) fn failed(name: &str, endpoint: &Endpoint) -> Failure {
    let next = endpoint.line("call", &[name, "--help"]);
    Failure::new(Exit::Tool, format!("the tool `{name}` failed"), next)
}

/// Finds a tool by its name.
pub(super) async fn find(connection: &Connection, name: &str, endpoint: &Endpoint) -> Result<Tool, Failure> {
    let mut tools = connection.tools_stream();
    let mut names = Vec::new();
    while let Some(tool) = tools.next().await.map_err(|error| endpoint.explain(&error))? {
        if !endpoint.allows_tool(&tool.name) {
            if tool.name == name {
                let message = format!("the configuration of the server does not allow its tool `{name}`");
                return Err(Failure::usage(message, endpoint.line("ls", &["tools"])));
            }
            continue;
        }
        if tool.name == name {
            return Ok(tool);
        }
        names.push(tool.name);
    }
    Err(match near(name, names.iter().map(String::as_str)) {
        Some(meant) => Failure::usage(
            format!("no such tool: `{name}`; did you mean `{meant}`?"),
            endpoint.line("call", &[meant, "--help"]),
        ),
        None => Failure::usage(format!("no such tool: `{name}`"), endpoint.line("ls", &["tools"])),
    })
}

/// Checks arguments against the schema of the tool. A schema that cannot be used is left to the server.
pub(super) fn check(tool: &Tool, arguments: &JsonObject) -> Result<(), String> {
    let Ok(schema) = Schema::compile(&Value::Object((*tool.input_schema).clone())) else { return Ok(()) };
    schema.check(&Value::Object(arguments.clone())).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(arguments::typed_fault).collect();
        faults.join("; ")
    })
}

async fn send(
    connection: &Connection,
    tool: &Tool,
    arguments: JsonObject,
    output: &Output,
) -> pintle::Result<CallToolResult> {
    let call = connection.call(&*tool.name).args(arguments).extended_by_progress().suspendable();
    if !output.shows_progress() {
        let output = output.clone();
        return call.on_progress(move |progress| output.detail(progress_text(&progress))).send().await;
    }
    let shown = output.clone();
    let result = call.on_progress(move |progress| shown.progress(&progress_bar(&progress))).send().await;
    output.progress(&Text::new());
    result
}

/// The width of a progress bar.
const BAR: usize = 20;

/// Formats progress: `██████░░░ 2/3 on the open sea`.
fn progress_bar(progress: &ProgressParams) -> Text {
    let Some(total) = progress.total.filter(|total| *total > 0.0) else { return progress_text(progress) };
    let done = (progress.progress / total * BAR as f64).clamp(0.0, BAR as f64) as usize;
    let mut text = Text::new();
    text.add("█".repeat(done)).add("░".repeat(BAR - done)).add(" ");
    text.append(progress_text(progress));
    text
}

/// Formats progress: `2/3 on the open sea`.
fn progress_text(progress: &ProgressParams) -> Text {
    let mut text = Text::new();
    text.tone(Tone::Faint, progress.progress);
    if let Some(total) = progress.total {
        text.tone(Tone::Faint, format_args!("/{total}"));
    }
    if let Some(message) = &progress.message {
        text.add(" ").add(message);
    }
    text
}

pub(super) fn print(
    result: &CallToolResult,
    save: Option<&std::path::Path>,
    output: &Output,
) -> Result<(), Failure> {
    let mut printed = Ok(());
    output.result(result, |text| {
        printed = content::print(&result.content, save, text);
        if let (true, Some(structured)) = (result.content.is_empty(), &result.structured_content) {
            text.block(content::pretty(structured));
        }
    })?;
    printed
}
