use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::server::{PromptRoute, ResourceRoute, Route, TemplateRoute, ToolRoute};

/// A function with `#[pintle::tool]`, `#[pintle::prompt]` or `#[pintle::resource]`, for [`routes!`](crate::routes).
///
/// The attributes implement it. Import it to configure a route before it is added: `add::route().title("Add")`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool, a prompt or a resource",
    note = "put `#[pintle::tool]` on the function `{Self}`, or add it with `pintle::server::tool(\"{Self}\", {Self})`"
)]
pub trait Declared {
    /// The kind of route: a tool, a prompt, a resource, or a resource template.
    type Route: Into<Route>;

    /// Creates the route, to be added to a server.
    fn route() -> Self::Route;
}

/// A route of the type `R`, as [`Server::tool`](crate::Server::tool) and its kin take it.
///
/// The routes implement it, and nothing else. It is a trait because the compiler's error can then tell what to write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a route of the type `{R}`",
    label = "not a `{R}`",
    note = "a function with an attribute is added by its name in a list: `.tools(pintle::tools![add])`, or `.routes(pintle::routes![add])`",
    note = "any other handler is made a route first: `.tool(tool(\"add\", add))`, `.prompt(prompt(\"greeting\", greeting))`"
)]
pub trait IntoRoute<R> {
    /// Returns the route.
    fn into_route(self) -> R;
}

macro_rules! into_route {
    ($($route:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl IntoRoute<$route> for $route {
            fn into_route(self) -> $route {
                self
            }
        }
    )*};
}

into_route!(ToolRoute PromptRoute ResourceRoute TemplateRoute);

/// A type that a parameter of a `#[pintle::tool]` function may have: any type with serde's `Deserialize` and schemars'
/// `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument: derive `serde::Deserialize` and `schemars::JsonSchema` for it, or take `State<{Self}>` if the server has it",
    label = "not an argument",
    note = "other values of the call are `Extension<T>`, `HttpHead` and `Cx`; `#[extract]` marks a type with a `FromCall` of your own"
)]
pub trait ToolArgument: DeserializeOwned + JsonSchema + Send {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send> ToolArgument for T {}

/// A type that a parameter of a `#[pintle::prompt]` or `#[pintle::resource]` function may have: one that serde reads from a
/// text, with schemars' `JsonSchema`.
///
/// The compiler cannot see whether a type is a text, a number or an enum. One that is a struct is refused when the
/// server is checked.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a text: take a `String`, a number, a `bool`, an `Option` of one or an enum that derives `serde::Deserialize` and `schemars::JsonSchema`, or take `State<{Self}>` if the server has it",
    label = "not a text",
    note = "other values of the call are `Extension<T>`, `HttpHead` and `Cx`; `#[extract]` marks a type with a `FromCall` of your own"
)]
pub trait TextArgument: DeserializeOwned + JsonSchema + Send {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send> TextArgument for T {}
