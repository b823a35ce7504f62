//! A server with state, resources, prompts, and input requests to the user and the client's model.
//!
//! Try it with `client_with_sampling`, which answers the requests, or over HTTP: `cargo run --example notes --features http-server -- --http`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::{
    Server,
    server::{Cx, Json, Listen, Partial, RequestError, State, ToolError},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
    uri::{Values, expand},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shared state, which is cheap to clone.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

impl Notes {
    /// Locks the notes. Never hold the guard across an `.await`.
    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn titles(&self, beginning: &str) -> Vec<String> {
        self.with(|notes| notes.keys().filter(|title| title.starts_with(beginning)).cloned().collect())
    }

    fn text(&self, title: &str) -> Option<String> {
        self.with(|notes| notes.get(title).cloned())
    }
}

/// A form for the user. The doc comments are the labels of the fields.
#[derive(Deserialize, JsonSchema)]
struct Overwrite {
    /// Replace the old text?
    overwrite: bool,
}

/// The result of `save`. Its schema is the tool's output schema.
#[derive(JsonSchema, Serialize)]
struct Saved {
    /// The URI of the note.
    uri: String,
    replaced: bool,
}

/// Save a note.
#[pintle::tool(idempotent, open_world = false)]
async fn save(
    cx: Cx,
    State(notes): State<Notes>,
    /// The title of the note.
    #[arg(min_length = 1, max_length = 80)]
    title: String,
    text: String,
) -> Result<Json<Saved>, ToolError> {
    // Ask before acting: without a session, the handler runs again from the start with the answer.
    if notes.text(&title).is_some_and(|old| old != text) && cx.can_elicit() {
        let question = format!("There is a note `{title}` already.");
        let answer = cx.elicit::<Overwrite>("overwrite", &question).await?.accepted();
        if !answer.is_some_and(|answer| answer.overwrite) {
            return Err(ToolError::new("the user wants to keep the old note: choose another title"));
        }
    }
    let uri = expand("note://{title}", &Values::new().set("title", title.as_str()))?;
    let replaced = notes.with(|notes| notes.insert(title, text)).is_some();
    // Notifies the subscribers of this note.
    cx.server().resource_updated(uri.as_str());
    Ok(Json(Saved { uri, replaced }))
}

/// Summarize a note in a few words.
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
    Ok(cx.sample("digest", request).await?.text())
}

/// The titles of all notes, one on each line.
#[pintle::resource("notes://titles", mime_type = "text/plain")]
async fn titles(State(notes): State<Notes>) -> String {
    notes.titles("").join("\n")
}

/// Completes the title of a note.
async fn known(State(notes): State<Notes>, typed: Partial) -> Vec<String> {
    notes.titles(&typed.value)
}

/// A note, by its title. `None` means "not found".
#[pintle::resource("note://{title}", mime_type = "text/plain")]
async fn note(State(notes): State<Notes>, #[arg(complete = known)] title: String) -> Option<String> {
    notes.text(&title)
}

/// Review a note.
#[pintle::prompt]
async fn review(
    State(notes): State<Notes>,
    /// The title of the note.
    title: String,
) -> Result<String, RequestError> {
    let Some(text) = notes.text(&title) else {
        return Err(RequestError::bad_request(format!("there is no note `{title}`")));
    };
    Ok(format!("Say what is unclear in the note `{title}`:\n\n{text}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    Server::new("notes", "1.0.0")
        .instructions("Titles are unique. Read `notes://titles` for those that are taken.")
        .with_state(Notes::default())
        .routes(pintle::routes![save, digest, titles, note, review])
        .run(Listen::from_args())
        .await
}
