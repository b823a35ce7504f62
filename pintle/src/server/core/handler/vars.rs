use pintle_proto::server::Outcome;
use pintle_types::RpcError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::extract::HandlerKind;
use crate::{
    server::{Cx, Description, FromCall},
    uri,
};

/// The variables of a resource template, decoded into a type: a struct by name, a tuple by position, or a single value.
///
/// Numbers, booleans and enums are parsed from text and a `Vec` from a list; an `Option` is `None` if the URI omits the
/// variable. The values of an enum are completed. If a variable cannot be decoded, the client receives an error with its
/// name and the reason. [`uri::Vars`](crate::uri::Vars) gives the variables as text.
///
/// ```
/// use pintle::server::{Server, Vars, template};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Lines {
///     file: String,
///     from: Option<u32>,
/// }
///
/// async fn lines(Vars(Lines { file, from }): Vars<Lines>) -> Option<String> {
///     // `None` is "not found".
///     (file == "main.rs").then(|| format!("fn main() {{}} // from line {}", from.unwrap_or(1)))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("source", "1.0.0").template(template("source://{+file}{?from}", "lines", lines));
/// # #[cfg(feature = "client")] {
/// let client = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
/// let read = client.read_resource("source://main.rs?from=7").await?;
/// assert!(format!("{read:?}").contains("from line 7"));
/// let error = client.read_resource("source://main.rs?from=top").await.unwrap_err().to_string();
/// assert!(error.contains("variable `from`: `top` is not a whole number"), "{error}");
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument lists")]
pub struct Vars<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send> FromCall for Vars<T> {
    fn describe(description: &mut Description<'_>) {
        description.takes_variables::<T>();
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.texts().ok_or_else(missing)?.decode().map(Self)
    }
}

/// The variables of a resource template as text.
impl FromCall for uri::Vars {
    fn describe(description: &mut Description<'_>) {
        description.belongs("uri::Vars", &[HandlerKind::Template]);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.texts().map(|texts| texts.vars().clone()).ok_or_else(missing)
    }
}

/// Returns the outcome of a call without variables or prompt arguments. Unreachable: such a registration is refused.
pub(crate) fn missing() -> Outcome {
    Outcome::Failed(RpcError::internal("the call has no variables or prompt arguments"))
}
