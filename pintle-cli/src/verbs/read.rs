use std::{fs, path::PathBuf};

use clap::Args;
use pintle::{
    Connection,
    types::schema::{ReadResourceResult, ResourceBody, ResourceContents},
    uri::{Values, expand},
};

use crate::{
    args::{HELP, QuestionArgs, TargetArgs, examples, near},
    arguments::{self, read_words},
    content,
    failure::Failure,
    forms::{Questions, Typed},
    output::{Image, Output},
    targets::Endpoint,
};

/// Read a resource
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle read demo harbour://notice", ""),
        ("pintle read demo 'harbour://tides/{port}/{hour}' port=bergen hour=4", "a template with its values"),
        ("pintle read demo harbour://notice -o notice.txt", "into a file"),
    ]),
    help_template = HELP,
    override_usage = "pintle read TARGET URI|TEMPLATE [NAME=VALUE]...",
)]
pub(crate) struct ReadArgs {
    /// Write the contents to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    questions: QuestionArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

pub(super) async fn run(args: ReadArgs, output: &Output) -> Result<(), Failure> {
    let ReadArgs { output: file, questions, target } = args;
    let (endpoint, mut words) = Endpoint::take("read", target)?;
    let list = endpoint.line("ls", &["resources", "templates"]);
    if words.is_empty() {
        return Err(Failure::usage("which resource?", list));
    }
    let typed = words.remove(0);
    let refused = |message: String| Failure::usage(message, &list);
    let values = arguments::of_texts(read_words(&words).await.map_err(refused)?).map_err(refused)?;
    let uri = uri(&typed, values).map_err(refused)?;

    let mut questions = Questions::new(questions, &[], output).await?;
    let client = questions.attach(endpoint.client(output));
    let connection = endpoint.connect(&client, output).await?;
    questions.connected(&connection);
    let again: Vec<_> = std::iter::once(&typed).chain(&words).map(String::as_str).collect();
    let call = connection.read_resource(&uri).suspendable().into_future();
    let line = Typed { verb: "read", words: &again };
    let result = match questions.until_done(call, &endpoint, line, output).await? {
        Ok(result) => result,
        Err(error @ pintle::Error::Rpc(_)) => {
            let failure = questions.explain(&error, &endpoint, line);
            return Err(explain(&connection, &uri, &endpoint).await.unwrap_or(failure));
        }
        Err(error) => return Err(questions.explain(&error, &endpoint, line)),
    };
    match file {
        Some(file) => fs::write(&file, bytes(&result)?).map_err(|error| {
            let message = format!("`{}` cannot be written: {error}", file.display());
            Failure::usage(message, endpoint.line("read", &[&typed]))
        })?,
        None => print(&result, &endpoint.line("read", &[&typed, "-o", "file"]), output)?,
    }
    connection.close().await;
    questions.check_used(&endpoint.line("read", &again))
}

/// Expands a template with values. Without values, the URI is used as it was typed.
fn uri(typed: &str, given: Vec<(String, String)>) -> Result<String, String> {
    if given.is_empty() && !typed.contains('{') {
        return Ok(typed.to_owned());
    }
    if let Some((name, _)) = given.iter().find(|(name, _)| !typed.contains(name.as_str())) {
        return Err(format!("`{typed}` has no variable `{name}`"));
    }
    let has = |name: &str| given.iter().any(|(given, _)| given == name);
    let missing: Vec<_> = required_variables(typed).into_iter().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        return Err(format!("missing: `{}`", missing.join("`, `")));
    }
    let values = given.into_iter().fold(Values::new(), |values, (name, text)| values.set(&name, text));
    expand(typed, &values).map_err(|error| error.to_string())
}

/// Returns the variables of a template without which its URI is another one: those of a path.
fn required_variables(template: &str) -> Vec<&str> {
    let expressions = template.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let names = expressions
        .filter(|expression| !expression.starts_with(['?', '&', '#']))
        .flat_map(|expression| expression.trim_start_matches(['+', '.', '/', ';']).split(','));
    names
        .map(|name| name.split([':', '*']).next().unwrap_or_default())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Prints the contents of a resource. `next` is what to type to write them to a file.
pub(super) fn print(result: &ReadResourceResult, next: &str, output: &Output) -> Result<(), Failure> {
    let is_blob = |contents: &ResourceContents| matches!(contents.body, ResourceBody::Blob(_));
    if result.contents.iter().any(is_blob) && !output.is_structured() {
        if output.takes_bytes() {
            return output.bytes(&bytes(result)?);
        }
        let shown =
            output.shows_images().then(|| result.contents.iter().map(image).collect::<Option<Vec<_>>>());
        let Some(images) = shown.flatten() else {
            return Err(Failure::usage("the contents are not text, and this is a terminal", next));
        };
        return output.text(|text| {
            for image in images {
                text.image(image);
            }
        });
    }
    output.result(result, |text| {
        for contents in &result.contents {
            text.block(contents.as_text().unwrap_or_default());
        }
    })
}

/// Returns the contents as an image that a terminal can show.
fn image(contents: &ResourceContents) -> Option<Image> {
    match &contents.body {
        ResourceBody::Blob(base64) => {
            Image::new(contents.mime_type.as_deref()?, &content::decode(base64).ok()?)
        }
        ResourceBody::Text(_) => None,
    }
}

/// Returns the contents as bytes, one after the other.
fn bytes(result: &ReadResourceResult) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    for contents in &result.contents {
        match &contents.body {
            ResourceBody::Text(text) => all.extend(text.bytes()),
            ResourceBody::Blob(base64) => all.extend(content::decode(base64)?),
        }
    }
    Ok(all)
}

/// Explains why a resource was refused, if one with a similar URI exists.
async fn explain(connection: &Connection, uri: &str, endpoint: &Endpoint) -> Option<Failure> {
    let resources = connection.resources().await.ok()?;
    if resources.iter().any(|resource| resource.uri == uri) {
        return None;
    }
    let meant = near(uri, resources.iter().map(|resource| &*resource.uri))?;
    let message = format!("no such resource: `{uri}`; did you mean `{meant}`?");
    Some(Failure::usage(message, endpoint.line("read", &[meant])))
}
