use std::fmt;

use pintle_proto::client::{InputRequest, InputRequired};
use pintle_types::{RawObject, RawValue};
use serde::{Deserialize, Serialize};

/// A call whose server waits for input that no handler gave, from [`Error::Suspended`](crate::Error::Suspended).
///
/// Without a session the server keeps nothing of the call, so this is all of it: it can be stored, and
/// [resumed](crate::Connection::resume) later, on another connection or by another process. The state may contain secrets of the server,
/// and the params those of the user: store it as a credential.
///
/// ```
/// # #[cfg(all(feature = "server", feature = "client"))]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// use pintle::{Client, Error, Server, client::SuspendedCall, server::{Cx, StateKeys, ToolError, tool}, types::RpcError};
/// use serde_json::json;
///
/// #[derive(schemars::JsonSchema, serde::Deserialize)]
/// struct Meal { meal: String }
///
/// async fn book(cx: Cx) -> Result<String, ToolError> {
///     let asked = cx.elicit::<Meal>("meal", "Which meal?").await?;
///     Ok(asked.accepted().map_or("nothing".to_owned(), |answer| answer.meal))
/// }
///
/// // The key outlives the process that serves.
/// let server = || Server::new("demo", "1.0.0").state_keys(StateKeys::from([7; 32])).tool(tool("book", book));
///
/// let client = Client::new("demo", "1.0.0").on_elicit(|_| async { Err::<pintle::client::Answer, _>(RpcError::internal("later")) });
/// let connection = client.connect(server().in_process()?).await?;
/// let Err(Error::Suspended(call)) = connection.call("book").suspendable().send().await else { panic!() };
/// let stored = serde_json::to_string(&call).unwrap();
///
/// // Later:
/// let call: SuspendedCall = serde_json::from_str(&stored).unwrap();
/// assert_eq!(call.requests[0].key, "meal");
/// let connection = client.connect(server().in_process()?).await?;
/// let answers = [("meal", json!({"action": "accept", "content": {"meal": "soup"}}))];
/// let result = connection.resume(&call, answers)?.await?;
/// assert!(result.as_str().contains("soup"));
/// # Ok(()) }
/// # #[cfg(not(all(feature = "server", feature = "client")))]
/// # fn main() {}
/// ```
#[non_exhaustive]
#[derive(Clone, Deserialize, Serialize)]
pub struct SuspendedCall {
    /// The method of the request.
    pub method: String,
    /// The params of its first round.
    pub params: RawObject,
    /// The input requests of the server. All of them have to be answered.
    pub requests: Vec<SuspendedQuestion>,
    /// The server's state, which is sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<RawValue>>,
    /// The reason for which there is no answer, for people.
    pub reason: String,
}

/// The params and the state are not printed.
impl fmt::Debug for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedCall")
            .field("method", &self.method)
            .field("requests", &self.requests)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// An input request of a [`SuspendedCall`].
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SuspendedQuestion {
    /// The key of the question, and of its answer.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The params of the question.
    pub params: RawObject,
}

impl SuspendedCall {
    pub(crate) fn new(method: &str, params: &RawObject, asked: InputRequired, reason: String) -> Self {
        let question = |request: InputRequest| SuspendedQuestion {
            key: request.key.into(),
            method: request.method.into(),
            params: request.params,
        };
        Self {
            method: method.to_owned(),
            // Of an earlier round, if this one was resumed.
            params: params.without(&["inputResponses", "requestState"]),
            requests: asked.requests.into_iter().map(question).collect(),
            state: asked.state,
            reason,
        }
    }
}

impl fmt::Display for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` waits for input: {}: resume it with the answers", self.method, self.reason)
    }
}
