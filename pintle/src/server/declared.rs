use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::ToolRoute;

/// A function that `#[pintle::tool]` made a tool of. [`tools!`](crate::tools) names it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[pintle::tool]` on the function `{Self}`, or add it with `pintle::server::tool(\"{Self}\", {Self})`"
)]
pub trait Declared {
    /// The tool, not yet part of a server.
    fn route() -> ToolRoute;
}

/// What a parameter of a `#[pintle::tool]` function may be: anything with serde's `Deserialize` and schemars'
/// `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a tool",
    note = "put `#[derive(serde::Deserialize, schemars::JsonSchema)]` on the type",
    note = "or take it from the server: `State<S>`, `Extension<T>`, `Cx`, or `#[extract]` for a `FromCall` of your own"
)]
pub trait ToolArgument: DeserializeOwned + JsonSchema + Send {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send> ToolArgument for T {}

/// The tools of functions that carry `#[pintle::tool]`, for [`Server::tools`](super::Server::tools).
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
    ($($tool:path),* $(,)?) => {
        ::std::vec::Vec::<$crate::server::ToolRoute>::from([
            $(<$tool as $crate::server::Declared>::route()),*
        ])
    };
}
