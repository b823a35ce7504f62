use clap::Args;
use pintle::types::{JsonObject, RawObject, method};
use serde_json::Value;

use crate::{
    args::{HELP, QuestionArgs, TargetArgs, examples},
    arguments::{Word, read_words},
    content,
    failure::Failure,
    forms::{Questions, Typed},
    output::Output,
    targets::Endpoint,
};

/// Send a request of any method, and print its result
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle raw demo tools/list", ""),
        (r#"pintle raw demo resources/read '{"uri": "harbour://notice"}'"#, ""),
        ("pintle raw demo resources/read uri=harbour://notice", "texts, and `:=` for JSON"),
        ("pintle raw demo tools/call -", "the params from standard input"),
    ]),
    help_template = HELP,
    override_usage = "pintle raw TARGET METHOD [PARAMS]",
)]
pub(crate) struct RawArgs {
    #[command(flatten)]
    questions: QuestionArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: RawArgs, output: &Output) -> Result<(), Failure> {
    let RawArgs { questions, target } = args;
    let (endpoint, mut words) = Endpoint::take("raw", target)?;
    if words.is_empty() {
        return Err(Failure::usage("which method?", endpoint.line("raw", &[method::TOOLS_LIST])));
    }
    let method = words.remove(0);
    let refused = |message: String| Failure::usage(message, endpoint.line("raw", &[&method, "{}"]));
    let params = params(read_words(&words).await.map_err(refused)?).map_err(refused)?;
    let mut questions = Questions::new(questions, &[], output).await?;
    let client = questions.attach(endpoint.client(output));
    let connection = endpoint.connect(&client, output).await?;
    questions.connected(&connection);
    let again: Vec<_> = std::iter::once(&method).chain(&words).map(String::as_str).collect();
    let call = connection.call_raw(method.clone(), params).suspendable().into_future();
    let typed = Typed { verb: "raw", words: &again };
    let done = questions.until_done(call, &endpoint, typed, output).await?;
    let result = done.map_err(|error| questions.explain(&error, &endpoint, typed))?;
    let result: Value = serde_json::from_str(result.as_str()).map_err(|error| Failure::internal(&error))?;
    output.result(&result, |text| {
        text.block(content::pretty(&result));
    })?;
    connection.close().await;
    questions.check_used(&endpoint.line("raw", &again))
}

fn params(words: Vec<Word>) -> Result<RawObject, String> {
    let mut params = JsonObject::new();
    for word in words {
        match word {
            Word::Object(members) => params.extend(members),
            Word::Json { name, value } => drop(params.insert(name, value)),
            Word::Text { name, text } => drop(params.insert(name, text.into())),
        }
    }
    RawObject::from_serialize(&params).map_err(|error| error.to_string())
}
