use clap::Args;
use pintle::{
    Connection,
    types::schema::{GetPromptResult, Prompt, Role},
};
use serde_json::{Map, Value};

use crate::{
    args::{HELP, QuestionArgs, TargetArgs, examples, near},
    arguments::{self, prompt_signature, read_words},
    content,
    failure::Failure,
    forms::{Questions, Typed},
    output::{Output, Text, Tone},
    targets::Endpoint,
};

/// Get a prompt
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle prompt demo passage to=bergen", ""),
        ("pintle prompt demo passage to=bergen --text | llm", "only the text, for another program"),
    ]),
    help_template = HELP,
    override_usage = "pintle prompt TARGET NAME [NAME=VALUE]...",
)]
pub(crate) struct PromptArgs {
    /// Print the texts without their roles
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    questions: QuestionArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: PromptArgs, output: &Output) -> Result<(), Failure> {
    let PromptArgs { text: only_text, questions, target } = args;
    let (endpoint, mut words) = Endpoint::take("prompt", target)?;
    let list = endpoint.line("ls", &["prompts"]);
    if words.is_empty() {
        return Err(Failure::usage("no prompt is given", list));
    }
    let name = words.remove(0);
    let refused = |message: String| Failure::usage(message, &list);
    let typed = read_words(&words).await.map_err(refused)?;
    let typed = arguments::of_texts(typed).map_err(refused)?;
    let given: Map<_, _> = typed.into_iter().map(|(name, text)| (name, Value::String(text))).collect();

    let mut questions = Questions::new(questions, &[], output).await?;
    let client = questions.attach(endpoint.client(output));
    let connection = endpoint.connect(&client, output).await?;
    questions.connected(&connection);
    let again: Vec<_> = std::iter::once(&name).chain(&words).map(String::as_str).collect();
    let call = connection.get_prompt(&name, &given).suspendable().into_future();
    let line = Typed { verb: "prompt", words: &again };
    let result = match questions.until_done(call, &endpoint, line, output).await? {
        Ok(result) => result,
        // Only now it matters what there is.
        Err(error @ pintle::Error::Rpc(_)) => {
            let failure = questions.explain(&error, &endpoint, line);
            if let Some(explained) = explain(&connection, &name, Some(&given), &endpoint).await {
                return Err(explained);
            }
            let prompts = connection.prompts().await.unwrap_or_default();
            let prompt = prompts.iter().find(|prompt| prompt.name == name);
            return Err(prompt.map(prompt_signature).into_iter().fold(failure, Failure::detail));
        }
        Err(error) => return Err(questions.explain(&error, &endpoint, line)),
    };
    print(&result, only_text, output)?;
    connection.close().await;
    questions.check_used(&endpoint.line("prompt", &again))
}

/// Explains why a prompt was refused, from the list of prompts: no such prompt, or an argument is missing or unknown.
pub(super) async fn explain(
    connection: &Connection,
    name: &str,
    given: Option<&Map<String, Value>>,
    endpoint: &Endpoint,
) -> Option<Failure> {
    let prompts = connection.prompts().await.ok()?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        return Some(match near(name, prompts.iter().map(|prompt| &*prompt.name)) {
            Some(meant) => Failure::usage(
                format!("no such prompt: `{name}`; did you mean `{meant}`?"),
                endpoint.line("prompt", &[meant]),
            ),
            None => Failure::usage(format!("no such prompt: `{name}`"), endpoint.line("ls", &["prompts"])),
        });
    };
    let given = given?;
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let missing: Vec<_> = arguments
        .iter()
        .filter(|argument| argument.required == Some(true) && !given.contains_key(&argument.name))
        .map(|argument| argument.name.as_str())
        .collect();
    let unknown = given.keys().find(|name| arguments.iter().all(|argument| argument.name != **name));
    let message = match (unknown, missing.first()) {
        (Some(unknown), _) => match near(unknown, arguments.iter().map(|argument| &*argument.name)) {
            Some(meant) => format!("no argument `{unknown}`; did you mean `{meant}`?"),
            None => format!("no argument `{unknown}`"),
        },
        (None, Some(_)) => format!("missing: `{}`", missing.join("`, `")),
        (None, None) => return None,
    };
    Some(Failure::usage(message, example(prompt, endpoint)).detail(prompt_signature(prompt)))
}

/// Returns a command line with the required arguments of a prompt.
fn example(prompt: &Prompt, endpoint: &Endpoint) -> String {
    let arguments = prompt.arguments.iter().flatten().filter(|argument| argument.required == Some(true));
    let words: Vec<_> = arguments.map(|argument| format!("{}=…", argument.name)).collect();
    let words: Vec<_> = std::iter::once(&*prompt.name).chain(words.iter().map(String::as_str)).collect();
    endpoint.line("prompt", &words)
}

/// Prints the messages of a prompt.
pub(super) fn print(result: &GetPromptResult, only_text: bool, output: &Output) -> Result<(), Failure> {
    let mut printed = Ok(());
    output.result(result, |text| printed = print_messages(result, only_text, text))?;
    printed
}

fn print_messages(result: &GetPromptResult, only_text: bool, text: &mut Text) -> Result<(), Failure> {
    for message in &result.messages {
        if !only_text {
            let role = match message.role {
                Role::User => "user:",
                Role::Assistant => "assistant:",
            };
            text.tone(Tone::Title, role).end();
        }
        content::print(std::slice::from_ref(&message.content), None, text)?;
    }
    Ok(())
}
