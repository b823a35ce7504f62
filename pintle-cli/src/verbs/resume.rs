use clap::Args;
use pintle::{
    Error,
    client::SuspendedCall,
    types::{
        RawObject, method,
        schema::{CallToolResult, GetPromptResult, ReadResourceResult},
    },
};
use serde_json::{Value, json};

use super::{call, prompt, read};
use crate::{
    args::{HELP, QuestionArgs, TargetArgs, examples},
    content,
    failure::Failure,
    forms::{Questions, Typed},
    output::Output,
    suspended::SuspendedStore,
    targets::Endpoint,
};

/// Resume a call that waits for input
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle resume k7m2…", "ask for the answers, on a terminal"),
        ("pintle resume k7m2… boat=Tern nights=3", "values are read by the form's schema"),
        ("pintle resume k7m2… --accept", "the page was opened"),
        ("pintle resume k7m2… --decline", "no answer will be given"),
        ("pintle resume k7m2… boat=Tern -- python server.py", "a program is given again, and so are headers"),
    ]),
    help_template = HELP,
    override_usage = "pintle resume TOKEN [NAME=VALUE]...",
)]
pub(crate) struct ResumeArgs {
    /// Tell the server that the page was opened
    #[arg(long, conflicts_with = "decline")]
    accept: bool,
    /// The URL of the server, if it has a query or a password, which are not stored
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    questions: QuestionArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: ResumeArgs, output: &Output) -> Result<(), Failure> {
    let ResumeArgs { accept, url, questions, target: TargetArgs { mut words, connect } } = args;
    if words.is_empty() {
        return Err(Failure::usage(
            "no token is given: write the one that was printed",
            "pintle resume --help",
        ));
    }
    let token = words.remove(0);
    let store = SuspendedStore::of_user().map_err(|reason| Failure::usage(reason, "pintle resume --help"))?;
    // Dropped on any failure from here on: the call can be resumed again.
    let (mut claim, record) = store.claim(&token)?;
    let target =
        record.target.clone().into_args(url.as_deref(), connect, &format!("pintle resume {token}"))?;
    let (endpoint, _) = Endpoint::take("resume", target)?;
    let mut questions = Questions::new(questions, &words, output).await?;
    questions.accept_pages(accept);
    let answers = questions.answers(&record).await;
    let answers =
        answers.map_err(|problem| questions.still_suspended(&token, &record, problem, &endpoint, output))?;
    questions.check_used(&endpoint.resume_line(&token, &[]))?;
    // What was agreed to is this page, not the next one.
    questions.accept_pages(false);

    let client = questions.attach(endpoint.client(output));
    let connection = endpoint.connect(&client, output).await?;
    questions.connected(&connection);
    let resumed = connection.resume(&record.call, answers).map_err(|error| endpoint.explain(&error))?;
    claim.sent();
    let typed = Typed { verb: "resume", words: &[] };
    let done = questions.until_done(resumed.suspendable().into_future(), &endpoint, typed, output).await?;
    let result = done.map_err(|error| {
        if !has_delivered(&error) {
            claim.release();
        }
        // The server may return the same error to the same state: the call is made again.
        let (verb, words) = verb_of(&record.call);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let failure = questions.explain(&error, &endpoint, Typed { verb, words: &words });
        match (&error, endpoint.starts_server()) {
            (Error::Rpc(_), true) => failure.detail(
                "the program was started again: it can resume the call only if it keeps its state key",
            ),
            _ => failure,
        }
    })?;
    claim.consume();
    print(&record.call.method, &result, output)?;
    connection.close().await;
    let is_error = result.decode_member("isError").ok().flatten().unwrap_or(false);
    let named = |name| record.call.params.decode_member::<String>(name).ok().flatten().unwrap_or_default();
    if is_error { Err(call::failed(&named("name"), &endpoint)) } else { Ok(()) }
}

/// Returns the verb that made a call, and its words without the target.
fn verb_of(call: &SuspendedCall) -> (&'static str, Vec<String>) {
    let text = |name| call.params.decode_member::<String>(name).ok().flatten().unwrap_or_default();
    let arguments = || {
        let arguments = call.params.decode_member::<Value>("arguments").ok().flatten();
        arguments.filter(|arguments| *arguments != json!({})).map(|arguments| arguments.to_string())
    };
    match call.method.as_str() {
        method::TOOLS_CALL => ("call", [text("name")].into_iter().chain(arguments()).collect()),
        method::PROMPTS_GET => ("prompt", [text("name")].into_iter().chain(arguments()).collect()),
        method::RESOURCES_READ => ("read", vec![text("uri")]),
        other => ("raw", vec![other.to_owned(), call.params.as_str().to_owned()]),
    }
}

/// Returns whether the server may have used the answers. An error of the server refuses them.
fn has_delivered(error: &Error) -> bool {
    match error {
        Error::Rpc(_) | Error::Misuse(_) => false,
        Error::Failed(failed) => failed.delivery != pintle::transport::Delivery::Never,
        _ => true,
    }
}

/// Prints a result as the verb that made the call would.
fn print(method: &str, result: &RawObject, output: &Output) -> Result<(), Failure> {
    if let (method::TOOLS_CALL, Ok(result)) = (method, result.decode::<CallToolResult>()) {
        return call::print(&result, None, output);
    }
    if let (method::PROMPTS_GET, Ok(result)) = (method, result.decode::<GetPromptResult>()) {
        return prompt::print(&result, false, output);
    }
    if let (method::RESOURCES_READ, Ok(result)) = (method, result.decode::<ReadResourceResult>()) {
        return read::print(&result, "pintle resume --help", output);
    }
    let result: Value = serde_json::from_str(result.as_str()).map_err(|error| Failure::internal(&error))?;
    output.result(&result, |text| {
        text.block(content::pretty(&result));
    })
}
