//! The attributes of `pintle`, which re-exports them. They print calls of its public functions and decide nothing.

mod arg;
mod docs;
mod handlers;
mod options;
mod params;
mod tool;

use proc_macro::TokenStream;

/// Makes a tool of a function: `pintle::tools![name]` names it for `Server::tools`.
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
/// **Options** of the tool: `name`, `title`, `description`, `read_only`, `destructive = bool`, `idempotent`,
/// `open_world = bool`. Of a parameter, in `#[arg(..)]`: `rename`, `description`, `default`, `title`, `examples`,
/// `minimum`, `maximum`, `exclusive_minimum`, `exclusive_maximum`, `multiple_of`, `min_length`, `max_length`, `pattern`,
/// `format`, `min_items`, `max_items`, `unique_items`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(options.into(), &item.into()).into()
}

/// Makes tools of the methods of an `impl` block that carry `#[tool]`.
///
/// The type gets `into_tools(self)` and, for one that is shared with others, `tools(self: &Arc<Self>)`. Methods take
/// `&self`; calls run at the same time, so what changes is behind a lock. Everything else in the block stays as it is.
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
/// }
///
/// let server = pintle::Server::new("notes", "1.0.0").tools(Notes::default().into_tools());
/// # server.check().unwrap();
/// ```
#[proc_macro_attribute]
pub fn handlers(options: TokenStream, item: TokenStream) -> TokenStream {
    handlers::expand(&options.into(), &item.into()).into()
}
