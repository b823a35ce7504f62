use clap::Args;
use serde_json::json;

use super::login;
use crate::{
    args::{HELP, TargetArgs, examples},
    auth::{Login, Logins, NoConsent},
    failure::Failure,
    output::Output,
    targets::Endpoint,
};

/// Forget the login to a server, and revoke its tokens
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle logout https://example.com/mcp", ""),
        ("pintle logout https://example.com/mcp --local", "without a request to the authorization server"),
    ]),
    help_template = HELP,
    override_usage = "pintle logout TARGET",
)]
pub(crate) struct LogoutArgs {
    /// Forget the tokens without revoking them at the authorization server
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: LogoutArgs, output: &Output) -> Result<(), Failure> {
    let (endpoint, words) = Endpoint::take("logout", args.target)?;
    endpoint.no_more(&words, "logout")?;
    let (_, url) = endpoint.unauthorized_http("logout", output).await?;
    let login = Logins::load().find(&url).cloned();
    let revoked = match &login {
        Some(login) if !args.local => revoke(login).await?,
        _ => None,
    };
    let mut result = json!({ "url": url, "loggedOut": login.is_some(), "revoked": revoked == Some(Ok(())) });
    if let Some(Err(reason)) = revoked {
        output.note(format_args!("the tokens are removed here, but were not revoked: {reason}"));
        result["reason"] = reason.into();
    }
    let was = login::forget(&url).await?.is_some();
    Logins::remove(&url)?;
    output.result(&result, |text| {
        text.line(if was { "logged out" } else { "there was no login" });
    })
}

/// Revokes the tokens of a login, if there are any. A failure is its reason: the tokens are forgotten anyway.
async fn revoke(login: &Login) -> Result<Option<Result<(), String>>, Failure> {
    let Some(stored) = login.stored().await? else { return Ok(None) };
    Ok(Some(login.oauth(NoConsent)?.revoke(&stored).await.map_err(|error| error.to_string())))
}
