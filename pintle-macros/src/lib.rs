//! The attributes of `pintle`, which re-exports them. They print calls of its public functions and decide nothing.

mod arg;
mod docs;
mod handlers;
mod kind;
mod options;
mod params;
mod route;
mod uri;

use proc_macro::TokenStream;

use kind::Kind;

/// Makes a tool of a function: `pintle::tools![name]` names it for `Server::tools`, and `pintle::routes![name]` together
/// with prompts and resources for `Server::routes`.
///
/// The function stays as it is written, so a test can call it. What is printed beside it is what one would write by
/// hand: a struct of its parameters, and `pintle::server::tool(name, handler)`. A type of the function's name goes
/// with it, so that one `use` brings both.
///
/// ```
/// # mod kept {
/// use pintle::server::{Cx, State, ToolError};
/// # #[derive(Clone)] pub struct Shelf;
///
/// /// Finds books by their title.
/// #[pintle::tool(title = "Find books", read_only, open_world = false)]
/// async fn find(
///     cx: Cx,
///     State(shelf): State<Shelf>,
///     /// A part of the title.
///     #[arg(min_length = 2, max_length = 80)]
///     title: String,
///     /// How many to show.
///     #[arg(default = 10, minimum = 1)]
///     limit: u32,
/// ) -> Result<String, ToolError> {
///     Ok(format!("{limit} books named {title}"))
/// }
/// # pub fn server() -> pintle::Server {
/// # pintle::Server::new("s", "0").with_state(Shelf)
/// #     .tools(pintle::tools![find])
/// # } }
/// # kept::server().check().unwrap();
/// ```
///
/// **Parameters** are the tool's arguments: each type has serde's `Deserialize` and schemars' `JsonSchema`. An `Option`
/// or one with a default need not be given. Those whose type is written `Cx`, `State<..>`, `Extension<..>`,
/// `Option<Extension<..>>`, `Arguments` or `Args<..>` come from the call instead, as does one with `#[extract]`, whose
/// type is a `FromCall` of your own.
///
/// **Docs** of the function are the tool's description, those of a parameter the description in its schema.
///
/// **Options** of the tool: `name`, `title`, `description`, `icon`, `read_only`, `destructive = bool`, `idempotent`,
/// `open_world = bool`, `requires("right", ..)`, `hidden`. Of a parameter, in `#[arg(..)]`: `rename`, `description`, `default`, `complete`, `title`, `examples`,
/// `minimum`, `maximum`, `exclusive_minimum`, `exclusive_maximum`, `multiple_of`, `min_length`, `max_length`, `pattern`,
/// `format`, `min_items`, `max_items`, `unique_items`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    route::expand(Kind::Tool, options.into(), &item.into()).into()
}

/// Makes a prompt of a function: `pintle::routes![name]` names it for `Server::routes`.
///
/// As with [`tool`](macro@tool), the function stays as it is written, its docs are the description, and what is printed
/// is a call of `pintle::server::prompt`.
///
/// ```
/// # mod kept {
/// use pintle::{server::Partial, types::schema::PromptMessage};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(rename_all = "lowercase")]
/// enum Tone {
///     Kind,
///     Strict,
/// }
///
/// async fn languages(typed: Partial) -> Vec<&'static str> {
///     ["Go", "Python", "Rust"].into_iter().filter(|name| name.starts_with(&typed.value)).collect()
/// }
///
/// /// Reviews a piece of code.
/// #[pintle::prompt(title = "Review code")]
/// async fn review(
///     /// The code.
///     code: String,
///     /// What it is written in.
///     #[arg(complete = languages)]
///     language: Option<String>,
///     /// How to say it: its values are completed, because it is an enum.
///     tone: Tone,
///     /// How many remarks to make.
///     #[arg(default = 3, maximum = 10)]
///     remarks: u8,
/// ) -> Vec<PromptMessage> {
///     let language = language.unwrap_or_default();
///     let manner = match tone {
///         Tone::Kind => "Be kind.",
///         Tone::Strict => "Spare me nothing.",
///     };
///     vec![
///         PromptMessage::user(format!("Review this {language} code with {remarks} remarks. {manner}\n\n{code}")),
///         PromptMessage::assistant("First,"),
///     ]
/// }
/// # pub fn server() -> pintle::Server {
/// # pintle::Server::new("s", "0")
/// #     .routes(pintle::routes![review])
/// # } }
/// # kept::server().check().unwrap();
/// ```
///
/// **Parameters** are the prompt's arguments. They come as texts, so each is a `String`, a number, a `bool`, an enum, or
/// an `Option` of one. An `Option` or one with a default need not be given. What does not fit is answered with an error
/// that names the argument, what was expected and what came. Those whose type is written `Cx`, `State<..>`,
/// `Extension<..>`, `Option<Extension<..>>`, `PromptArguments` or `Args<..>` come from the call instead, as does one
/// with `#[extract]`.
///
/// **The result** is a `String` or `&str` (what the user says), a `PromptMessage`, a `Vec` of them, a `GetPromptResult`,
/// or a `Result` of one of them.
///
/// **Options** of the prompt: `name`, `title`, `description`, `icon`, `requires(..)`, `hidden`. Of a parameter: those of a tool's.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    route::expand(Kind::Prompt, options.into(), &item.into()).into()
}

/// Makes a resource of a function, or a family of resources: `pintle::routes![name]` names it for `Server::routes`.
///
/// A URI without variables is one resource. With variables, as RFC 6570 writes them, it is a family, and each variable is
/// a parameter of that name. As with [`tool`](macro@tool), the function stays as it is written, its docs are the
/// description, and what is printed is a call of `pintle::server::resource` or `pintle::server::template`.
///
/// ```
/// # mod kept {
/// use pintle::server::{Json, State};
/// # #[derive(Clone)] pub struct Notes;
/// # impl Notes { fn text(&self, _: u32) -> Option<String> { None } }
///
/// /// What is new.
/// #[pintle::resource("notes://news", mime_type = "text/plain")]
/// async fn news() -> &'static str {
///     "Nothing."
/// }
///
/// /// A note. `None` is "not found".
/// #[pintle::resource("notes://by-id/{id}")]
/// async fn note(State(notes): State<Notes>, id: u32) -> Option<String> {
///     notes.text(id)
/// }
///
/// /// Notes about something, as JSON.
/// #[pintle::resource("notes://search{?about,limit}")]
/// async fn search(about: String, #[arg(default = 10, maximum = 50)] limit: usize) -> Json<Vec<String>> {
///     Json(vec![about; limit])
/// }
/// # pub fn server() -> pintle::Server {
/// # pintle::Server::new("s", "0").with_state(Notes)
/// #     .routes(pintle::routes![news, note, search])
/// # } }
/// # kept::server().check().unwrap();
/// ```
///
/// **Parameters** are the variables of the template: what can be read from a text, a `Vec` for a list such as `{tags*}`,
/// and an `Option` or a default for what a URI may leave out. Every variable is taken by one; `_name` takes one that
/// does not matter. A URI that does not fit is answered with an error that names the variable, what was expected and
/// what came. Those whose type is written `Cx`, `State<..>`, `Extension<..>`, `Option<Extension<..>>` or `Vars<..>` come
/// from the call instead, as does one with `#[extract]`.
///
/// **The result** is a `String` or `&str`, a `Vec<u8>` or `Bytes` (binary), a `Json<T>`, `ResourceContents`, a `Vec` of
/// them, a `ReadResourceResult`, or an `Option` or `Result` of one of them.
///
/// **Options**, behind the URI: `name`, `title`, `description`, `mime_type`, `icon`, `annotations`, `cache`, `requires(..)`,
/// `hidden`. Of a
/// parameter: those of a tool's.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    route::expand(Kind::Resource, options.into(), &item.into()).into()
}

/// Makes tools, prompts and resources of the methods of an `impl` block that carry `#[tool]`, `#[prompt]` or
/// `#[resource(..)]`.
///
/// The type gets `into_routes(self)` and, for one that is shared with others, `routes(self: &Arc<Self>)`, for
/// `Server::routes`; if all are tools also `into_tools` and `tools`, for `Server::tools`. Methods take `&self`; calls run
/// at the same time, so what changes is behind a lock. Everything else in the block stays as it is.
///
/// ```
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Notes(Mutex<Vec<String>>);
///
/// #[pintle::handlers]
/// impl Notes {
///     /// Keep a note.
///     #[tool(destructive = false)]
///     async fn save(&self, text: String) -> String {
///         let mut notes = self.0.lock().unwrap();
///         notes.push(text);
///         format!("kept {}", notes.len())
///     }
///
///     /// A note.
///     #[resource("notes://{number}", mime_type = "text/plain")]
///     async fn note(&self, number: usize) -> Option<String> {
///         self.0.lock().unwrap().get(number).cloned()
///     }
///
///     /// Make sense of all notes.
///     #[prompt]
///     async fn summary(&self) -> String {
///         format!("Summarize these notes:\n\n{}", self.0.lock().unwrap().join("\n"))
///     }
/// }
///
/// let server = pintle::Server::new("notes", "1.0.0").routes(Notes::default().into_routes());
/// # server.check().unwrap();
/// ```
#[proc_macro_attribute]
pub fn handlers(options: TokenStream, item: TokenStream) -> TokenStream {
    handlers::expand(&options.into(), &item.into()).into()
}
