use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::server::Route;

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

/// A type that a parameter of a `#[pintle::tool]` function may have: any type with serde's `Deserialize` and schemars'
/// `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument: derive `serde::Deserialize` and `schemars::JsonSchema` for it, or take `State<{Self}>` if the server has it",
    label = "not an argument",
    note = "other values of the call are `Extension<T>` and `Cx`; `#[extract]` marks a type with a `FromCall` of your own"
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
    note = "other values of the call are `Extension<T>` and `Cx`; `#[extract]` marks a type with a `FromCall` of your own"
)]
pub trait TextArgument: DeserializeOwned + JsonSchema + Send {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send> TextArgument for T {}

/// Lists the tools of functions with `#[pintle::tool]`, for [`Server::tools`](crate::server::Server::tools).
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
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! tools {
    ($($($part:ident)::+),* $(,)?) => {
        ::std::vec::Vec::<$crate::server::ToolRoute>::from([
            $({
                // The error for a function without the attribute contains this name.
                use $($part)::+ as put_the_attribute_pintle_tool_on_this_function;
                <put_the_attribute_pintle_tool_on_this_function as $crate::__private::DeclaredTool>::tool()
            }),*
        ])
    };
}

/// Lists the routes of functions with `#[pintle::tool]`, `#[pintle::prompt]` or
/// `#[pintle::resource]`, for [`Server::routes`](crate::server::Server::routes).
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
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! routes {
    ($($($part:ident)::+),* $(,)?) => {
        ::std::vec::Vec::<$crate::server::Route>::from([
            $({
                // The error for a function without an attribute contains this name.
                use $($part)::+ as put_an_attribute_such_as_pintle_tool_on_this_function;
                <put_an_attribute_such_as_pintle_tool_on_this_function as $crate::__private::DeclaredRoute>::route()
            }),*
        ])
    };
}
