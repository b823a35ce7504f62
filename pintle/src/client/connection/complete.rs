use pintle_types::{
    RawObject, method,
    schema::{
        CompleteParams, Completion, CompletionArgument, CompletionContext, CompletionReference,
        PromptReference, ResourceReference,
    },
};

use super::{Connection, call::params, request::RequestBuilder};
use crate::{Result, Suggestion};

impl Connection {
    /// Completes an argument of a prompt that begins with `value`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, server::{Partial, prompt}};
    ///
    /// async fn languages(typed: Partial) -> Vec<&'static str> {
    ///     ["go", "ruby", "rust"].into_iter().filter(|name| name.starts_with(&typed.value)).collect()
    /// }
    ///
    /// let review = prompt("review", || async { "Review this." })
    ///     .argument("language", "The programming language.")
    ///     .complete("language", languages);
    /// let server = Server::new("demo", "1.0.0").prompt(review);
    /// let connection = Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
    /// assert_eq!(connection.complete_prompt("review", "language", "ru").await?.values, ["ruby", "rust"]);
    /// # }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The prompt does not exist, or the server did not answer.
    pub fn complete_prompt(&self, name: &str, argument: &str, value: &str) -> RequestBuilder<'_, Completion> {
        self.complete(CompletionReference::Prompt(PromptReference::new(name)), argument, value, [])
    }

    /// Completes a variable of a resource template that begins with `value`.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// let found = server.complete_resource("repo://{owner}/{name}", "owner", "to").await?;
    /// println!("{:?}", found.values); // `["tokio-rs", "tower-rs"]`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The template does not exist, or the server did not answer.
    pub fn complete_resource(
        &self,
        template: &str,
        variable: &str,
        value: &str,
    ) -> RequestBuilder<'_, Completion> {
        let template = CompletionReference::Resource(ResourceReference::new(template));
        self.complete(template, variable, value, [])
    }

    /// Completes an argument that begins with `value`. `context` holds the arguments that are already chosen;
    /// [`complete_prompt`](Self::complete_prompt) and [`complete_resource`](Self::complete_resource) send none.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::types::schema::{CompletionReference, PromptReference};
    ///
    /// let review = CompletionReference::Prompt(PromptReference::new("review"));
    /// let chosen = [("language".to_owned(), "rust".to_owned())];
    /// let found = server.complete(review, "framework", "ax", chosen).await?;
    /// println!("{:?}", found.values); // `["axum"]`
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
