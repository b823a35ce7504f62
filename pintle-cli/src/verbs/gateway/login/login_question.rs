use std::{sync::Arc, time::Duration};

use pintle::{
    server::{Cx, Next, Outcome},
    types::{
        ErrorCode, RpcError,
        schema::{ElicitUrlParams, UrlElicitationRequiredData},
    },
};
use tokio::time::{Instant, timeout_at};

use super::pages::LoginPages;

/// The key of the question.
const QUESTION: &str = "login";
/// The time that the user has to log in after the answer, before the call fails: shorter than clients wait for a call.
const LOGIN_WAIT: Duration = Duration::from_secs(20);

/// Runs a call. If it needs a login, the user of a client without a session is asked to open its page, and the call goes on when the user has
/// logged in. Clients with sessions have an error of their own for that.
pub(in super::super) async fn ask_to_log_in(pages: Arc<LoginPages>, cx: Cx, next: Next) -> Outcome {
    let mut connections = pages.connections();
    let outcome = next.clone().run(cx.clone()).await;
    let Some(page) = required_page(&cx, &outcome) else { return outcome };
    match cx.elicit_url(QUESTION, &page.message, &page.url).await {
        Ok(true) => {}
        Ok(false) => return Outcome::Failed(declined(&page)),
        // The request cannot ask.
        Err(_) => return outcome,
    }
    let end = Instant::now() + LOGIN_WAIT;
    while let Ok(Ok(())) = timeout_at(end, connections.changed()).await {
        let outcome = next.clone().run(cx.clone()).await;
        if required_page(&cx, &outcome).is_none() {
            return outcome;
        }
    }
    outcome
}

/// Returns the page that a client can be asked, where questions are responses, to open.
fn required_page(cx: &Cx, outcome: &Outcome) -> Option<ElicitUrlParams> {
    let Outcome::Failed(error) = outcome else { return None };
    let can_be_asked = !cx.facts().asks_by_request && cx.can_elicit_url();
    if error.code != ErrorCode::URL_ELICITATION_REQUIRED || !can_be_asked {
        return None;
    }
    error.data_as::<UrlElicitationRequiredData>()?.elicitations.into_iter().next()
}

fn declined(page: &ElicitUrlParams) -> RpcError {
    let ElicitUrlParams { message, url, .. } = page;
    RpcError::invalid_request(format!(
        "the user did not agree to open the page of the login ({message}): open {url} in a browser, and call again"
    ))
}
