use clap::{Args, Subcommand};
use serde_json::json;

use super::listing;
use crate::{
    args::{HELP, examples},
    auth::Logins,
    failure::Failure,
    output::Output,
};

/// List the servers that you have logged in to
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[("pintle auth ls", ""), ("pintle auth ls --json", "")]),
    help_template = HELP,
    override_usage = "pintle auth ls",
)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    _verb: Option<AuthVerb>,
}

#[derive(Debug, Subcommand)]
enum AuthVerb {
    /// List the servers that you have logged in to
    Ls,
}

pub(crate) async fn run(_: AuthArgs, output: &Output) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for login in Logins::load().logins {
        let stored = login.stored().await?;
        rows.push((login, stored));
    }
    let json: Vec<_> = rows.iter().map(|(login, stored)| listing::to_json(login, stored.as_ref())).collect();
    output.result(&json!({ "logins": json }), |text| {
        for (login, stored) in &rows {
            listing::to_text(login, stored.as_ref(), text);
        }
    })?;
    if rows.is_empty() {
        output.note("there are no logins; `pintle login URL` makes one");
    }
    Ok(())
}
