use clap::Args;
use serde_json::json;

use super::login;
use crate::{
    args::{HELP, TargetArgs, examples},
    auth::Logins,
    failure::Failure,
    output::Output,
    targets::Endpoint,
};

/// Forget the login to a server
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[("pintle logout https://example.com/mcp", "")]),
    help_template = HELP,
    override_usage = "pintle logout TARGET",
)]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: LogoutArgs, output: &Output) -> Result<(), Failure> {
    let (endpoint, words) = Endpoint::take("logout", args.target)?;
    endpoint.no_more(&words, "logout")?;
    let (_, url) = endpoint.unauthorized_http("logout", output).await?;
    let was = login::forget(&url).await?.is_some();
    Logins::remove(&url)?;
    output.result(&json!({ "url": url, "loggedOut": was }), |text| {
        text.line(if was { "logged out" } else { "there was no login" });
    })
}
