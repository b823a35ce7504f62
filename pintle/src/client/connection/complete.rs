use pintle_types::{
    RawObject, method,
    schema::{CompleteParams, Completion, CompletionArgument, CompletionContext, CompletionReference},
};

use super::{Connection, call::params, request::RequestBuilder};
use crate::{Result, Suggestion};

impl Connection {
    /// Completes an argument that begins with `value`. `context` holds the arguments that are already chosen.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::types::schema::{CompletionReference, PromptReference};
    ///
    /// let review = CompletionReference::Prompt(PromptReference::new("review"));
    /// let found = server.complete(review, "language", "ru", []).await?;
    /// println!("{:?}", found.values); // `["ruby", "rust"]`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The reference does not exist, or the server did not answer.
    pub fn complete(
        &self,
        reference: CompletionReference,
        argument: &str,
        value: &str,
        context: impl IntoIterator<Item = (String, String)>,
    ) -> RequestBuilder<'_, Completion> {
        let params = completion(reference, argument, value, context);
        RequestBuilder::completion(self, method::COMPLETION_COMPLETE, params)
    }

    /// Completes an argument like [`complete`](Self::complete), and returns the values with the labels and remarks that the
    /// server has sent.
    ///
    /// # Errors
    ///
    /// The reference does not exist, or the server did not answer.
    pub fn suggestions(
        &self,
        reference: CompletionReference,
        argument: &str,
        value: &str,
        context: impl IntoIterator<Item = (String, String)>,
    ) -> RequestBuilder<'_, Vec<Suggestion>> {
        let params = completion(reference, argument, value, context);
        RequestBuilder::completion(self, method::COMPLETION_COMPLETE, params)
    }
}

fn completion(
    reference: CompletionReference,
    argument: &str,
    value: &str,
    context: impl IntoIterator<Item = (String, String)>,
) -> Result<RawObject> {
    let mut asked = CompleteParams::new(reference, CompletionArgument::new(argument, value));
    let chosen: std::collections::BTreeMap<_, _> = context.into_iter().collect();
    if !chosen.is_empty() {
        let mut context = CompletionContext::new();
        context.arguments = Some(chosen);
        asked.context = Some(context);
    }
    params(&asked)
}
