use clap::Args;
use pintle::Error;
use pintle_oauth::client::{DeviceCode, Loopback, OAuth, Paste, Registered, StoredLogin};

use super::listing;
use crate::{
    args::{HELP, TargetArgs, examples},
    auth::{APPLICATION, Grant, Login, Logins, credentials, of_server, show_login_page, unusable},
    failure::{Exit, Failure},
    output::{Output, Text},
    targets::Endpoint,
};

/// Log in to a server, for all verbs
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle login https://example.com/mcp", "in a browser"),
        ("pintle login https://example.com/mcp --paste", "on a machine without one: paste where the browser ends"),
        ("pintle login https://example.com/mcp --device", "with a code on another device"),
        ("pintle login https://example.com/mcp --client-id bot --client-secret-env SECRET --issuer https://login.example.com --client-credentials", ""),
    ]),
    help_template = HELP,
    override_usage = "pintle login TARGET",
)]
pub(crate) struct LoginArgs {
    /// Paste the address that the browser ends at
    #[arg(long, conflicts_with_all = ["device", "client_credentials"])]
    paste: bool,
    /// Type a code on another device
    #[arg(long, conflicts_with = "client_credentials")]
    device: bool,
    /// Print the address of the login page, and do not open it
    #[arg(long)]
    no_browser: bool,
    /// Log in as the client itself, without a user
    #[arg(long, requires = "client_id", requires = "client_secret_env")]
    client_credentials: bool,
    /// The client, if it is registered with the authorization server
    #[arg(long, value_name = "ID", requires = "issuer")]
    client_id: Option<String>,
    /// The environment variable with the secret of the client
    #[arg(long, value_name = "NAME", requires = "client_id")]
    client_secret_env: Option<String>,
    /// The authorization server of the client
    #[arg(long, value_name = "URL", requires = "client_id")]
    issuer: Option<String>,
    /// A scope to ask for, in addition to those that the server names
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The port of the redirect, if the client is registered with one
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Log in again, although there is a login
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: LoginArgs, output: &Output) -> Result<(), Failure> {
    let (endpoint, words) = Endpoint::take("login", args.target.clone())?;
    endpoint.no_more(&words, "login")?;
    let (http, url) = endpoint.unauthorized_http("login", output).await?;
    if args.again || !args.scopes.is_empty() {
        forget(&url).await?;
    }
    let oauth = oauth(&args, output)?.scopes(&args.scopes).store(credentials()?);
    let client = endpoint.client(output);
    let connection =
        client.connect(http.auth(oauth)).await.map_err(|error| explain(&error, &endpoint, &args))?;
    if connection.capabilities().tools.is_some() {
        // Some servers require a token only for what they offer.
        connection.tools().await.map_err(|error| explain(&error, &endpoint, &args))?;
    }
    connection.close().await;
    let stored = credentials()?.logins().await.map_err(|error| unusable(&error))?;
    let Some(stored) = of_server(stored, &url) else {
        return output.result(&serde_json::json!({ "url": url, "loggedIn": false }), |text| {
            text.line("the server did not ask for a login");
        });
    };
    let grant = if args.client_credentials { Grant::ClientCredentials } else { Grant::User };
    let StoredLogin { issuer, resource, .. } = stored.clone();
    let (client_id, secret_env) = (args.client_id, args.client_secret_env);
    let login = Login { url, grant, issuer, resource, client_id, secret_env };
    Logins::add(login.clone())?;
    output.note("logged in");
    output.result(&listing::to_json(&login, Some(&stored)), |text| {
        listing::to_text(&login, Some(&stored), text)
    })
}

/// Removes the tokens of a login.
pub(super) async fn forget(url: &str) -> Result<Option<Login>, Failure> {
    let Some(login) = Logins::load().find(url).cloned() else { return Ok(None) };
    if let Some(stored) = login.stored().await? {
        credentials()?.forget(&stored).await.map_err(|error| unusable(&error))?;
    }
    Ok(Some(login))
}

fn oauth(args: &LoginArgs, output: &Output) -> Result<OAuth, Failure> {
    let registered = match (&args.issuer, &args.client_id) {
        (Some(issuer), Some(id)) => Some(Registered::new(issuer, id)),
        _ => None,
    };
    let secret = args.client_secret_env.as_ref().map(|name| {
        let secret = std::env::var(name).ok().filter(|secret| !secret.is_empty());
        let message = format!("the environment variable `{name}` has no secret");
        secret.ok_or_else(|| Failure::usage(message, format!("export {name}=…")))
    });
    let registered = match (registered, secret.transpose()?) {
        (Some(client), Some(secret)) => Some(client.secret(secret)),
        (client, _) => client,
    };
    let oauth = match registered {
        Some(client) if args.client_credentials => return Ok(OAuth::machine(client)),
        Some(client) => by_user(args, output).registered(client),
        None => by_user(args, output),
    };
    Ok(oauth)
}

fn by_user(args: &LoginArgs, output: &Output) -> OAuth {
    let shown = output.clone();
    if args.device {
        return OAuth::device(APPLICATION, move |device: &DeviceCode| {
            let mut text = Text::from(format_args!("open {} and type ", device.url()));
            shown.question(text.tone(crate::output::Tone::Title, device.code()).end());
        });
    }
    if args.paste {
        return OAuth::login(
            APPLICATION,
            Paste::new("http://localhost/callback", move |url| paste(url, shown.clone())),
        );
    }
    let no_browser = args.no_browser;
    let open = move |url: &str| {
        show_login_page(url, no_browser, &shown);
        Ok(())
    };
    OAuth::login(APPLICATION, Loopback::new(open).port(args.port))
}

async fn paste(url: String, output: Output) -> pintle::Result<String> {
    let mut text = Text::new();
    text.line("to log in, open").end().add("  ").line(url).end();
    let mut turn = output.console().turn(&output).await;
    turn.print(text.line("and paste the address that the browser ends at, which shows no page:"));
    let line = turn.ask(&Text::new()).await.unwrap_or_default();
    match line.trim() {
        "" => Err(Error::Refused("no address was pasted; log in again".into())),
        line => Ok(line.to_owned()),
    }
}

fn explain(error: &Error, endpoint: &Endpoint, args: &LoginArgs) -> Failure {
    let failure = endpoint.explain(error);
    match failure.exit {
        Exit::Authorization if !args.paste => {
            Failure { next: endpoint.line_with("login", "--paste"), ..failure }
        }
        Exit::Authorization => Failure { next: "pintle login --help".to_owned(), ..failure },
        _ => failure,
    }
}
