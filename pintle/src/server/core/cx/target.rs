use super::Cx;
pub use crate::target::Target;

impl Cx {
    /// Returns the entry that the request names, if it names exactly one: that of a call, a read or a completion. A
    /// subscription may name several; [`targets`](Self::targets) returns all.
    ///
    /// ```
    /// use pintle::{server::{Cx, Next, Outcome, Target}, types::RpcError};
    ///
    /// async fn no_deletions(cx: Cx, next: Next) -> Outcome {
    ///     match cx.target() {
    ///         Some(Target::Tool(name)) if name.starts_with("delete_") => {
    ///             Outcome::Failed(RpcError::invalid_request("nothing is deleted today: ask tomorrow"))
    ///         }
    ///         _ => next.run(cx).await,
    ///     }
    /// }
    /// ```
    pub fn target(&self) -> Option<Target<'_>> {
        crate::target::target(self.method(), self.params())
    }

    /// Returns the entries that the request names: those of a call, a read, a completion or a subscription. A request whose
    /// parameters cannot be read names none, and is refused by its handler.
    pub fn targets(&self) -> Vec<Target<'_>> {
        crate::target::targets(self.method(), self.params())
    }

    /// Returns whether the caller sees an entry: neither a [gate](crate::server::Server::gate) nor a right that it lacks hides it. Nothing
    /// hides an entry that does not exist. One that a provider may have whose lists were not read yet is judged by its name.
    ///
    /// A method that names entries of the server in its result leaves out those that are not shown.
    pub fn shows(&self, target: &Target<'_>) -> bool {
        let snapshot = self.snapshot();
        !snapshot.hides() || !snapshot.hides_target(&self.scope(), target)
    }

    /// Returns whether this is a notification, which has no response: what a layer returns for it is not sent.
    pub fn is_notification(&self) -> bool {
        self.call().is_notification()
    }
}
