//! The attributes of `pintle`, which re-exports them. They expand to calls of its public functions.

mod arg;
mod docs;
mod handlers;
mod kind;
mod lists;
mod options;
mod params;
mod route;
mod uri;

use proc_macro::TokenStream;

use kind::Kind;
use quote::quote;

/// Declares a function as a tool. Register it with `Server::tools(pintle::tools![name])`, or together with prompts and
/// resources with `Server::routes(pintle::routes![name])`.
///
/// The function itself is unchanged, so a test can call it. The expansion adds what one would write by hand: a struct of
/// its parameters, and `pintle::server::tool(name, handler)`. It also adds a type with the function's name, so that one
/// `use` imports both.
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
/// **Parameters** are the tool's arguments: their types implement serde's `Deserialize` and schemars' `JsonSchema`. `Option`
/// and parameters with a default are optional. Parameters of the types `Cx`, `State<..>`, `Extension<..>`,
/// `Option<Extension<..>>`, `HttpHead`, `Option<HttpHead>`, `Arguments`, `Args<..>` or `Principal` (of `pintle-oauth`) are extracted from
/// the call instead, and so are those with `#[extract]`, whose type is your own `FromCall`.
///
/// **Doc comments** of the function are the tool's description, those of a parameter the description in its schema.
///
/// **A function that is not `async`** runs on a thread for such functions, as with
/// [`blocking`](../pintle/server/fn.blocking.html), so that it may wait and compute. With `inline` it runs in place: that is
/// cheaper for a function that returns at once, and holds up its connection if it does not.
///
/// **Options** of the tool: `name`, `title`, `description`, `icon`, `read_only`, `destructive = bool`, `idempotent`,
/// `open_world = bool`, `annotations`, `strict` (unknown arguments are refused), `timeout`, `inline`, `asks(Form, ..)` (the
/// forms that the handler has filled in, checked when the server starts), `requires("right", ..)`, `hidden`. Of a parameter, in `#[arg(..)]`: `rename`, `description`,
/// `default`, `complete`, `title`, `examples`, `minimum`, `maximum`, `exclusive_minimum`, `exclusive_maximum`,
/// `multiple_of`, `min_length`, `max_length`, `pattern`, `format`, `min_items`, `max_items`, `unique_items`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    route::expand(Kind::Tool, options.into(), &item.into()).into()
}

/// Declares a function as a prompt. Register it with `Server::routes(pintle::routes![name])`.
///
/// As with [`tool`](macro@tool), the function is unchanged and its doc comment is the description. The expansion is a call
/// of `pintle::server::prompt`.
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
///     /// The tone. Its values are completed, because it is an enum.
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
/// **Parameters** are the prompt's arguments. They are strings on the wire, so each is a `String`, a number, a `bool`, an
/// enum, or an `Option` of one. `Option` and parameters with a default are optional. The error for an invalid argument
/// names it, the expected and the actual value. Parameters of the types `Cx`, `State<..>`, `Extension<..>`,
/// `Option<Extension<..>>`, `PromptArguments` or `Args<..>` are extracted from the call instead, and so are those with
/// `#[extract]`.
///
/// **The result** is a `String` or `&str` (a user message), a `PromptMessage`, a `Vec` of them, a `GetPromptResult`,
/// or a `Result` of one of them.
///
/// **Options** of the prompt: `name`, `title`, `description`, `icon`, `timeout`, `inline`, `asks(Form, ..)`,
/// `requires("right", ..)`, `hidden`. Of a parameter: those of a tool's.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    route::expand(Kind::Prompt, options.into(), &item.into()).into()
}

/// Declares a function as a resource or a resource template. Register it with `Server::routes(pintle::routes![name])`.
///
/// A URI without variables is a single resource. A URI with RFC 6570 variables is a template, and each variable is a
/// parameter of that name. As with [`tool`](macro@tool), the function is unchanged and its doc comment is the description.
/// The expansion is a call of `pintle::server::resource` or `pintle::server::template`.
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
/// /// A note. `None` means "not found".
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
/// **Parameters** are the variables of the template: types that can be parsed from a string, a `Vec` for a list such as
/// `{tags*}`, and an `Option` or a default for an optional variable. Every variable needs a parameter; `_name` ignores one.
/// The error for an invalid URI names the variable, the expected and the actual value. Parameters of the types `Cx`,
/// `State<..>`, `Extension<..>`, `Option<Extension<..>>` or `Vars<..>` are extracted from the call instead, and so are those
/// with `#[extract]`.
///
/// **The result** is a `String` or `&str`, a `Vec<u8>` or `Bytes` (binary), a `Json<T>`, `ResourceContents`, a `Vec` of
/// them, a `ReadResourceResult`, or an `Option` or `Result` of one of them.
///
/// **Options**, after the URI: `name`, `title`, `description`, `mime_type`, `icon`, `annotations`, `cache`, `timeout`,
/// `inline`, `asks(Form, ..)`, `requires("right", ..)`, `hidden`. Of a parameter: those of a tool's.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    route::expand(Kind::Resource, options.into(), &item.into()).into()
}

/// Declares the methods of an `impl` block with `#[tool]`, `#[prompt]` or `#[resource(..)]` as tools, prompts and
/// resources.
///
/// The type gets `into_routes(self)` and, for a shared value, `routes(self: &Arc<Self>)`, for `Server::routes`; if all
/// methods are tools, also `into_tools` and `tools`, for `Server::tools`. Methods take `&self`, or `self: Arc<Self>` to pass the
/// value on to a task. Calls run concurrently, so mutable state needs a lock. The rest of the block is unchanged.
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

/// Lists the tools of functions with `#[pintle::tool]`, for `Server::tools`.
///
/// ```
/// /// Add two integers.
/// #[pintle::tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// let server = pintle::Server::new("adder", "1.0.0").tools(pintle::tools![add]);
/// ```
#[proc_macro]
pub fn tools(list: TokenStream) -> TokenStream {
    let advice = "put_the_attribute_pintle_tool_on_this_function";
    lists::expand(list.into(), &quote!(ToolRoute), &quote!(DeclaredTool > ::tool()), advice).into()
}

/// Lists the routes of functions with `#[pintle::tool]`, `#[pintle::prompt]` or `#[pintle::resource]`, for `Server::routes`.
///
/// ```
/// /// Add two integers.
/// #[pintle::tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// /// Explain a sum.
/// #[pintle::prompt]
/// async fn explain(a: i64, b: i64) -> String {
///     format!("Explain why {a} and {b} are {}.", add(a, b).await)
/// }
///
/// let server = pintle::Server::new("adder", "1.0.0").routes(pintle::routes![add, explain]);
/// # server.check().unwrap();
/// ```
#[proc_macro]
pub fn routes(list: TokenStream) -> TokenStream {
    let advice = "put_an_attribute_such_as_pintle_tool_on_this_function";
    lists::expand(list.into(), &quote!(Route), &quote!(DeclaredRoute > ::route()), advice).into()
}
