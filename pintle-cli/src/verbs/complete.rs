use clap::Args;
use pintle::types::schema::{CompleteResult, CompletionReference, PromptReference, ResourceReference};

use crate::{
    args::{HELP, TargetArgs, examples},
    arguments::{self, read_words},
    failure::Failure,
    output::Output,
    targets::Endpoint,
};

/// Complete an argument of a prompt, or a variable of a template
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle complete demo passage to=be", "the argument `to` of a prompt, as far as it is typed"),
        ("pintle complete demo 'harbour://tides/{port}/{hour}' port=", "a variable of a template"),
        ("pintle complete demo 'harbour://tides/{port}/{hour}' port=bergen hour=1", "the last one, given the others"),
    ]),
    help_template = HELP,
    override_usage = "pintle complete TARGET PROMPT|TEMPLATE [NAME=VALUE]... NAME=START",
)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: CompleteArgs, output: &Output) -> Result<(), Failure> {
    let CompleteArgs { target } = args;
    let (endpoint, mut words) = Endpoint::take("complete", target)?;
    if words.is_empty() {
        return Err(Failure::usage(
            "no prompt or template is given",
            endpoint.line("ls", &["prompts", "templates"]),
        ));
    }
    let of = words.remove(0);
    let refused = |message: String| Failure::usage(message, endpoint.line("complete", &[&of, "name="]));
    let mut given = arguments::of_texts(read_words(&words).await.map_err(refused)?).map_err(refused)?;
    let Some((name, start)) = given.pop() else { return Err(refused("no argument is given".to_owned())) };
    let reference = match of.contains("://") || of.contains('{') {
        true => CompletionReference::Resource(ResourceReference::new(&of)),
        false => CompletionReference::Prompt(PromptReference::new(&of)),
    };
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    let is_prompt = matches!(reference, CompletionReference::Prompt(_));
    let completion = match connection.complete(reference, &name, &start, given).await {
        Ok(completion) => completion,
        Err(error) => {
            let unknown = match is_prompt {
                true => super::prompt::explain(&connection, &of, None, &endpoint).await,
                false => None,
            };
            return Err(unknown.unwrap_or_else(|| endpoint.explain(&error)));
        }
    };
    let more = completion.has_more == Some(true);
    let result = CompleteResult::new(completion);
    output.result(&result, |text| {
        for value in &result.completion.values {
            text.line(value);
        }
    })?;
    if more {
        output.note("there are more: type more of the value");
    }
    connection.close().await;
    Ok(())
}
