use std::fmt::Write as _;

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RawObject, RpcError};
use ring::digest;
use serde_json::value::to_raw_value;

use crate::server::{Cx, Elicited};

/// A question to the user that a gate has a call wait for.
pub(crate) struct Confirmation {
    name: String,
    question: String,
    /// The key of the question. It contains a digest of the entry and of the arguments that were judged, so that the answer is valid for these only, in every
    /// round of the call.
    key: String,
}

impl Confirmation {
    pub(super) fn new(name: &str, question: String, arguments: &str) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(name.as_bytes());
        context.update(&[0]);
        context.update(arguments.as_bytes());
        let mut key = "confirm-".to_owned();
        for byte in context.finish().as_ref() {
            let _ = write!(key, "{byte:02x}");
        }
        Self { name: name.to_owned(), question, key }
    }

    /// Asks the user. Returns the call as its handler sees it, without the answer.
    pub(super) async fn ask(self, cx: Cx) -> Result<Cx, Outcome> {
        match cx.elicit::<()>(&self.key, &self.question).await {
            Ok(Elicited::Accept(())) => Ok(cx.rewritten(|_, params| without_answer(params, &self.key))),
            Ok(Elicited::Decline | Elicited::Cancel) => {
                let message =
                    format!("the user did not confirm `{}`: ask the user what to do instead", self.name);
                Err(Outcome::Failed(RpcError::invalid_request(message)))
            }
            Err(error) => Err(Outcome::Failed(error.into())),
        }
    }
}

/// Removes the answer from the params, so that a server behind does not get it.
fn without_answer(params: &RawObject, key: &str) -> Option<RawObject> {
    let mut answers: JsonObject = params.decode_member("inputResponses").ok()??;
    answers.shift_remove(key)?;
    if answers.is_empty() {
        return Some(params.without(&["inputResponses"]));
    }
    Some(params.with("inputResponses", &to_raw_value(&answers).ok()?))
}
