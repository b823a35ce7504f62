use pintle_proto::server::Outcome;
use pintle_types::RpcError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::extract::Kind;
use crate::{
    server::{Cx, Description, FromCall, PromptArguments},
    uri,
};

/// The variables of a resource template, as a type: a struct by their names, a tuple by their order, or the one that
/// there is.
///
/// Numbers, booleans and enums are read from their texts, a `Vec` from a list, and an `Option` is `None` where the URI
/// leaves a variable out. The values of an enum are completed. A URI whose variables do not fit gets an error that
/// says which one and why. [`uri::Vars`](crate::uri::Vars) takes them as they came.
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
        cx.given().ok_or_else(missing)?.decode().map(Self)
    }
}

/// The variables of a resource template, not decoded.
impl FromCall for uri::Vars {
    fn describe(description: &mut Description<'_>) {
        description.belongs("uri::Vars", &[Kind::Template]);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.given().map(|given| given.vars().clone()).ok_or_else(missing)
    }
}

/// The arguments of a prompt, not decoded.
impl FromCall for PromptArguments {
    fn describe(description: &mut Description<'_>) {
        description.belongs("PromptArguments", &[Kind::Prompt]);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        let given = cx.given().ok_or_else(missing)?;
        Ok(given.vars().iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect())
    }
}

/// Nobody comes here: the registration was refused.
fn missing() -> Outcome {
    Outcome::Failed(RpcError::internal("the call has no such texts"))
}
