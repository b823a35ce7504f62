use pintle::{
    forward::RelayedRound,
    server::Outcome,
    types::{RawValue, keys},
};

use crate::{
    meta::without_meta,
    request::RelayedRequest,
    upstream::failure::{Failure, replaced},
};

/// A round of a client without a session to a server without sessions. Questions and answers are passed on unread.
pub(super) struct BothStateless<'a>(pub(super) RelayedRequest<'a>);

impl BothStateless<'_> {
    pub(super) async fn forward(self) -> Result<Outcome, Failure> {
        let request = self.0;
        let mut params = request.params();
        let answers: Option<Box<RawValue>> =
            request.cx.params().decode_member("inputResponses").ok().flatten();
        if let Some(answers) = answers {
            params = params.with("inputResponses", &answers);
        }
        if let Some(state) = request.downstream().state() {
            if !state.get().starts_with('"') {
                return Err(replaced().into());
            }
            params = params.with("requestState", &state);
        }
        let result = request.call_as((request.cx.method(), &params), &request.capabilities()).await?;
        if result.get("resultType") != Some("\"input_required\"") {
            return Ok(request.complete(result));
        }
        let state = result.decode_member("requestState").ok().flatten();
        Ok(Outcome::Relayed(RelayedRound::new(without_meta(result, &[keys::SERVER_INFO]), state)))
    }
}
