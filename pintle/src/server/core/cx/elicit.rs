use pintle_proto::inputs::{Answer, AskError, Question};
use pintle_types::{
    JsonObject,
    schema::{ElicitAction, ElicitFormParams, ElicitParams, ElicitResult},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Cx;
use crate::server::form::Form;

/// The answer of a user to a form.
///
/// ```
/// use pintle::server::{Cx, Elicited, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name {
///     name: String,
/// }
///
/// async fn greet(cx: Cx) -> Result<String, ToolError> {
///     Ok(match cx.elicit::<Name>("name", "What is your name?").await? {
///         Elicited::Accept(Name { name }) => format!("Hello, {name}."),
///         Elicited::Decline => "Hello, whoever you are.".to_owned(),
///         Elicited::Cancel => return Err(ToolError::new("the user went away: try again later")),
///     })
/// }
/// # let _ = pintle::server::tool("greet", greet);
/// ```
#[expect(clippy::exhaustive_enums, reason = "every revision has these three")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Elicited<T> {
    /// The user filled in the form.
    Accept(T),
    /// The user declined.
    Decline,
    /// The user closed the form without an answer.
    Cancel,
}

impl<T> Elicited<T> {
    /// Returns the content of the form, if the user accepted.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(value) => Some(value),
            Self::Decline | Self::Cancel => None,
        }
    }
}

impl Cx {
    /// Asks the user for a `T`: the client shows a form with its fields.
    ///
    /// `T` is a flat struct of strings, numbers, booleans and enums; doc comments are the descriptions of the fields. Declare
    /// `T` with [`asks`](crate::server::ToolRoute::asks) when the tool is registered, so that a `T` that cannot be a form is
    /// reported when the server starts. See [`ask`](Self::ask) for code that may run twice.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError, tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Guests {
    ///     /// How many will come?
    ///     #[schemars(range(min = 1, max = 12))]
    ///     count: u8,
    /// }
    ///
    /// async fn book(cx: Cx) -> Result<String, ToolError> {
    ///     let guests = cx.elicit::<Guests>("guests", "A table for how many?").await?.accepted();
    ///     Ok(guests.map_or("Never mind.".to_owned(), |guests| format!("A table for {}.", guests.count)))
    /// }
    ///
    /// let book = tool("book", book).asks::<Guests>();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the client cannot show forms (see [`can_elicit`](Self::can_elicit)) or the answer is not a `T`.
    pub async fn elicit<T>(&self, key: &str, message: &str) -> Result<Elicited<T>, AskError>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let form = self.server().forms().of::<T>();
        let form = match &*form {
            Ok(form) => form,
            Err(error) => return Err(AskError::BadQuestion { reason: error.to_string() }),
        };
        self.show(key, message, form, |content| form.read(content)).await
    }

    /// Asks the user to fill in a form that is built at run time.
    ///
    /// # Errors
    ///
    /// Returns an error if the client cannot show forms or the answer does not match the form.
    pub async fn elicit_form(
        &self,
        key: &str,
        message: &str,
        form: &Form,
    ) -> Result<Elicited<JsonObject>, AskError> {
        form.check().map_err(|error| AskError::BadQuestion { reason: error.to_string() })?;
        self.show(key, message, form, |content| form.fits(&content).map(|()| content)).await
    }

    async fn show<T>(
        &self,
        key: &str,
        message: &str,
        form: &Form,
        read: impl FnOnce(JsonObject) -> Result<T, String>,
    ) -> Result<Elicited<T>, AskError> {
        let params = ElicitParams::Form(ElicitFormParams::new(message, form.schema().clone()));
        let Answer::Elicit(ElicitResult { action, content, .. }) =
            self.ask(key, Question::Elicit(Box::new(params))).await?
        else {
            return Err(AskError::CallOver);
        };
        match action {
            ElicitAction::Decline => Ok(Elicited::Decline),
            ElicitAction::Cancel => Ok(Elicited::Cancel),
            ElicitAction::Accept => {
                let value = read(content.unwrap_or_default());
                let value = value.map_err(|reason| AskError::BadAnswer { key: key.to_owned(), reason });
                value.inspect_err(|error| self.note_refusal(error)).map(Elicited::Accept)
            }
        }
    }
}
