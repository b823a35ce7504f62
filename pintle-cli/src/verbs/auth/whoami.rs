use clap::Args;

use super::listing;
use crate::{
    args::{HELP, TargetArgs, examples},
    auth::Logins,
    failure::{Exit, Failure},
    output::Output,
    targets::Endpoint,
};

/// Show the login to a server, and check that the server accepts it
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[("pintle whoami https://example.com/mcp", "")]),
    help_template = HELP,
    override_usage = "pintle whoami TARGET",
)]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: WhoamiArgs, output: &Output) -> Result<(), Failure> {
    let (endpoint, words) = Endpoint::take("whoami", args.target)?;
    endpoint.no_more(&words, "whoami")?;
    let (_, url) = endpoint.unauthorized_http("whoami", output).await?;
    let Some(login) = Logins::load().find(&url).cloned() else {
        let message = format!("there is no login to `{url}`");
        return Err(Failure::new(Exit::Authorization, message, endpoint.line("login", &[])));
    };
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    connection.close().await;
    // It may have been refreshed.
    let stored = login.stored().await?;
    output.result(&listing::to_json(&login, stored.as_ref()), |text| {
        listing::to_text(&login, stored.as_ref(), text);
    })
}
