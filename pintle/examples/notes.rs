//! Notes: a server with state, resources, prompts, and questions to the user and to the client's model.
//!
//! Try it with `client_with_sampling`, which answers the questions.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::{
    Server,
    server::{Cx, Json, RequestError, State, ToolError, prompt, resource, template},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
    uri::{Values, expand},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state: cheap to clone, and the same for every call.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

impl Notes {
    /// Looks at the notes, or changes them. Never held across an `.await`.
    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn text(&self, title: &str) -> Option<String> {
        self.with(|notes| notes.get(title).cloned())
    }
}

const NOTE: &str = "note://{title}";

/// A form for the user: each field is a question, its doc comment the words to it.
#[derive(Deserialize, JsonSchema)]
struct Overwrite {
    /// Replace the old text?
    overwrite: bool,
}

/// What `save` returns: its schema is the tool's output schema.
#[derive(JsonSchema, Serialize)]
struct Saved {
    /// Where the note can be read.
    uri: String,
    replaced: bool,
}

/// Save a note.
#[pintle::tool(idempotent, open_world = false)]
async fn save(
    cx: Cx,
    State(notes): State<Notes>,
    /// What the note is called.
    #[arg(min_length = 1, max_length = 80)]
    title: String,
    text: String,
) -> Result<Json<Saved>, ToolError> {
    // Ask first, act after: a client without a session runs this from the top again, with the answer in its hands.
    if notes.text(&title).is_some_and(|old| old != text) && cx.can_elicit() {
        let question = format!("There is a note `{title}` already.");
        let answer = cx.elicit::<Overwrite>("overwrite", &question).await?.accepted();
        if !answer.is_some_and(|answer| answer.overwrite) {
            return Err(ToolError::new("the user wants to keep the old note: choose another title"));
        }
    }
    let uri = expand(NOTE, &Values::new().set("title", title.as_str()))?;
    let replaced = notes.with(|notes| notes.insert(title, text)).is_some();
    // Whoever watches this note is told, and no one else.
    cx.server().resource_updated(uri.as_str());
    Ok(Json(Saved { uri, replaced }))
}

/// Say in a few words what a note is about.
#[pintle::tool(read_only, open_world = false)]
async fn digest(cx: Cx, State(notes): State<Notes>, title: String) -> Result<String, ToolError> {
    let Some(text) = notes.text(&title) else {
        return Err(ToolError::new(format!(
            "there is no note `{title}`: list the resources to see which there are"
        )));
    };
    if !cx.can_sample() {
        return Ok(text.chars().take(80).collect());
    }
    let note = SamplingMessage::new(Role::User, ContentBlock::text(text));
    let mut request = CreateMessageParams::new(vec![note], 100);
    request.system_prompt = Some("Say in a few words what this is about.".into());
    let said = cx.sample("digest", request).await?;
    Ok(said.content.as_slice().iter().filter_map(ContentBlock::as_text).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let notes = Notes::default();
    let titles = {
        let notes = notes.clone();
        resource("notes://titles", "titles", move |_cx| {
            let titles = notes.with(|notes| notes.keys().cloned().collect::<Vec<_>>().join("\n"));
            async move { Ok(titles) }
        })
    };
    let note = {
        let (notes, known) = (notes.clone(), notes.clone());
        template(NOTE, "note", move |_cx, vars| {
            let text = vars.get("title").and_then(|title| notes.text(title));
            async move { text.ok_or_else(RequestError::not_found) }
        })
        .complete("title", move |partial| {
            let begins = |title: &&String| title.starts_with(&partial.value);
            let titles: Vec<_> = known.with(|notes| notes.keys().filter(begins).cloned().collect());
            async move { titles }
        })
    };
    let review = prompt("review", |_cx, arguments| async move {
        let title = arguments.get("title").cloned().unwrap_or_default();
        Ok(format!("Read the note `{title}` and say what is unclear in it."))
    });
    Server::new("notes", "1.0.0")
        .instructions("Titles are unique. Read `notes://titles` for those that are taken.")
        .with_state(notes)
        .tools(pintle::tools![save, digest])
        .resource(titles.mime_type("text/plain"))
        .template(note.description("A note, by its title.").mime_type("text/plain"))
        .prompt(review.description("Review a note.").argument("title", "Which note."))
        .serve_stdio()
        .await
}
