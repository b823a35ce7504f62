//! `pintle gateway`: many servers as one.

mod api;
mod backend;
mod drafts;
mod dry_run;
mod exchange;
mod explain;
mod file;
mod fleet;
mod health;
mod login;
mod logs;
mod metrics;
mod names;
mod overlaps;
mod protection;
mod reload;
mod running;
mod secret;
mod settings;
mod status;
mod target;
mod target_opening;
mod virtual_server;
mod whole_list;

use std::{future::ready, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use clap::Args;
use http::{Request, StatusCode};
use pintle::server::http::RequestBody;
use serde_json::json;
use tokio::time::Instant;

use self::{
    drafts::{from_help, from_hosts, import},
    explain::ExplainedRequest,
    file::{FileSource, GatewayFile},
    fleet::{FleetArgs, GatewayFleet, GatewayKeys},
    login::{LOGIN_PATH, LoginFleet, LoginPages},
    running::{Gateway, GatewayUsers},
};
use crate::{
    args::{HELP, LogArgs, examples, message_size, near},
    failure::{Exit, Failure},
    listen::{Beside, BrowserPage, ENDPOINT, ListenArgs, Page, PageAccess, PageReader, Routes},
    output::{Output, counted},
    signals::interrupted,
};

/// The time that running calls have to complete when the gateway is ended.
const GRACE: Duration = Duration::from_secs(30);
/// The time that connections have to be closed after that.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Serve the tools of a file, and many servers as one, with rules about who may use what
#[derive(Args, Debug)]
#[command(
    visible_alias = "serve",
    before_help = examples(&[
        ("pintle gateway team.toml --http 127.0.0.1:8000", "all targets of the file, at http://127.0.0.1:8000/mcp"),
        ("pintle gateway team.toml", "the same, on standard input and output"),
        ("pintle gateway team.toml --check", "whether the file is right"),
        ("pintle serve -e 'greet(name: string) = echo Hello {name}'", "a tool that runs a command"),
        ("pintle serve --openapi pets.yaml", "the operations of an HTTP API as tools"),
        ("pintle serve tools.toml --dry-run log count=3", "what a call would run"),
        ("pintle gateway team.toml --explain ANN git_push '{\"force\": true}'", "which rule decides, and why"),
        ("pintle gateway --from-hosts team.toml", "a file out of what is configured on this machine"),
        ("pintle serve tools.toml --from-help 'git log'", "a tool out of what a program says about itself"),
    ]),
    help_template = HELP,
)]
pub(crate) struct GatewayArgs {
    /// The file with the tools, the targets and the rules, in TOML
    #[arg(required_unless_present_any = ["schema", "from_hosts", "from_help", "import", "lines", "openapi"])]
    file: Option<PathBuf>,
    /// Serve HTTP at this address, until Ctrl-C, and print the URL; otherwise standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Check the file, and end
    #[arg(long)]
    check: bool,
    /// With `--check`: connect to the targets too, and print the names that are changed for hosts
    #[arg(long, requires = "check")]
    connect: bool,
    /// Print which rule decides about a tool, prompt or URI, and end. The principal is a name, `@local` or `@anonymous`
    #[arg(long, num_args = 2..=3, value_names = ["PRINCIPAL", "NAME", "ARGUMENTS"])]
    explain: Option<Vec<String>>,
    /// Serve this virtual server of the file on standard streams; with `--explain`, ask it, or a target, by the names that it has
    #[arg(long, visible_alias = "profile", value_name = "NAME", conflicts_with = "http")]
    server: Option<String>,
    /// Write FILE with the servers that hosts on this machine have configured, or print it, and end
    #[arg(long, conflicts_with_all = ["http", "check", "explain", "schema"])]
    from_hosts: bool,
    /// Write FILE with a tool that is drafted from the help of a program, such as 'git log', or print it, and end
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["http", "check", "explain", "schema", "from_hosts"])]
    from_help: Option<String>,
    /// Write FILE with the tools and profiles of go-go-mcp at PATH, a file or a folder, or print it, and end
    #[arg(long, value_name = "PATH", conflicts_with_all = ["http", "check", "explain", "schema", "from_hosts", "from_help"])]
    import: Option<PathBuf>,
    /// Rewrite FILE as one of the current version of its format, with its comments, and end
    #[arg(long, requires = "file", conflicts_with_all = ["http", "check", "explain", "schema", "from_hosts", "from_help"])]
    migrate: bool,
    /// Print the JSON Schema of the file, and end
    #[arg(long)]
    schema: bool,
    /// Serve the operations of an OpenAPI document as tools too
    #[arg(long, value_name = "DOCUMENT")]
    openapi: Option<PathBuf>,
    /// With `--openapi`: the URL of the API, in place of the servers of the document
    #[arg(long, requires = "openapi", value_name = "URL")]
    base: Option<String>,
    /// Serve a tool of one line too, such as 'greet(name: string) = echo Hello {name}'
    #[arg(short = 'e', value_name = "TOOL")]
    lines: Vec<String>,
    /// Print what a call of a tool of the file would run or send, and end
    #[arg(long, num_args = 1.., value_names = ["TOOL", "ARGUMENTS"], conflicts_with_all = ["http", "check", "explain", "schema", "from_hosts", "from_help"])]
    dry_run: Option<Vec<String>>,
    /// The most bytes of a message, in both directions; the default is that of the file, or 16MiB
    #[arg(long, value_name = "SIZE", value_parser = message_size)]
    max_message: Option<usize>,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    fleet: FleetArgs,
    #[command(flatten)]
    log: LogArgs,
}

impl GatewayArgs {
    /// Returns whether the verb ends by itself when it is interrupted.
    pub(super) fn handles_signals(&self) -> bool {
        self.http.is_some() && !self.check && self.explain.is_none()
    }
}

pub(super) async fn run(args: GatewayArgs, output: &Output) -> Result<(), Failure> {
    let GatewayArgs {
        file: path,
        http,
        check,
        connect,
        explain,
        server,
        from_hosts,
        from_help,
        import,
        migrate,
        schema,
        openapi,
        base,
        lines,
        dry_run,
        max_message,
        listen,
        fleet,
        log,
    } = args;
    if from_hosts {
        return from_hosts::write(path.as_deref(), output);
    }
    if let Some(command) = from_help {
        return from_help::write(&command, path.as_deref(), output).await;
    }
    if let Some(source) = import {
        return import::write(&source, path.as_deref(), output);
    }
    if schema {
        return GatewayFile::print_schema(output);
    }
    if let Some(path) = path.as_deref().filter(|_| migrate) {
        return GatewayFile::migrate(path, output);
    }
    if let Some(option) = listen.given().or(fleet.given()).filter(|_| http.is_none()) {
        let message = format!("`{option}` is an option of `--http`");
        return Err(Failure::usage(message, "pintle gateway --help"));
    }
    let source = FileSource { path, lines, openapi: openapi.map(|document| (document, base)) };
    let file = source.read(None)?;
    let shown = source.shown();
    file.read_secrets()?;
    if check && !connect {
        let own = [
            ("tools", file.tools.len(), "tool"),
            ("workers", file.workers.len(), "worker"),
            ("prompts", file.prompts.len(), "prompt"),
            ("resources", file.resources.len(), "resource"),
            ("apis", file.apis.len(), "API"),
        ];
        let (targets, servers, rules) = (file.targets.len(), file.servers.len(), file.rules.len());
        let mut counts = json!({ "targets": targets, "servers": servers, "rules": rules });
        own.iter().for_each(|(kind, count, _)| counts[*kind] = json!(count));
        for (name, api) in &file.loaded {
            counts["documents"][name] = api.json();
        }
        return output.result(&counts, |text| {
            let own = own.iter().filter(|(_, count, _)| *count > 0);
            let own = own.map(|(_, count, one)| counted(*count, one, &format!("{one}s")) + ", ");
            let own: String = own.collect();
            let (targets, rules) = (counted(targets, "target", "targets"), counted(rules, "rule", "rules"));
            let servers = match servers {
                0 => String::new(),
                count => format!(", {}", counted(count, "server", "servers")),
            };
            text.line(format!("{shown}: {own}{targets}{servers} and {rules}"));
            for (name, api) in &file.loaded {
                text.line(format!("{name}: {}", api.summary()));
                for note in api.notes() {
                    text.line(format!("  {note}"));
                }
            }
        });
    }
    if let Some(words) = dry_run {
        return dry_run::print(&file, &words, output).await;
    }
    // A changed file is compared with the file, not with the options.
    let started = GatewayFile { max_message: max_message.or(file.max_message), ..file.clone() };
    match (explain, http) {
        (Some(explain), _) => {
            let request = ExplainedRequest::read(&explain, server.as_deref())?;
            Gateway::new(&started, GatewayUsers::Local, output)?.explain(&file, &request, output).await
        }
        (None, _) if check => Gateway::new(&started, GatewayUsers::Local, output)?.check(&file, output).await,
        (None, None) if !output.takes_bytes() => {
            // What the targets send would reach the terminal as it is.
            let message =
                "standard output is a terminal, and a gateway speaks to a host there: give it `--http`";
            let next = format!("pintle gateway {shown} --http 127.0.0.1:8000");
            Err(Failure::usage(message, next))
        }
        (None, None) => {
            log.start(output)?;
            let gateway = Gateway::new(&started, GatewayUsers::Local, output)?;
            gateway.connect(&file).await;
            let server = match server {
                None => gateway.whole_server(),
                Some(name) => match file.servers.get(&name) {
                    Some(entry) => gateway.virtual_server(&name, entry)?.1,
                    None => {
                        let near = near(&name, file.servers.keys().map(String::as_str));
                        let meant =
                            near.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                        let message = format!("the file has no `[servers.{name}]`{meant}");
                        return Err(Failure::usage(message, format!("pintle gateway {shown} --check")));
                    }
                },
            };
            let served = tokio::select! {
                served = server.serve_stdio() => served,
                never = gateway.reload(&source, file.clone(), None) => match never {},
            };
            gateway.close().await;
            served.map_err(|error| {
                let message = format!("the gateway failed: {error}");
                Failure::new(Exit::Server, message, format!("pintle gateway {shown} --check"))
            })
        }
        (None, Some(address)) => {
            log.start(output)?;
            let mut stop = pin!(interrupted());
            let serving = async {
                let opened = fleet.open(source.path.as_deref(), output).await?;
                GatewayServing::start(&started, &address, &listen, opened, output).await
            };
            let serving = tokio::select! {
                biased;
                () = &mut stop => return Err(Failure::silent(Exit::Interrupted)),
                serving = serving => serving?,
            };
            tokio::select! {
                biased;
                () = &mut stop => {}
                never = serving.gateway.reload(&source, file.clone(), Some(&*serving.routes)) => match never {},
                never = serving.gateway.watch_store() => match never {},
            }
            // The second time, calls are not waited for.
            tokio::select! {
                biased;
                () = interrupted() => Err(Failure::silent(Exit::Interrupted)),
                () = serving.drain(output) => Ok(()),
            }
        }
    }
}

/// A gateway that serves HTTP.
struct GatewayServing {
    gateway: Arc<Gateway>,
    routes: Arc<Routes>,
    http: pintle::server::http::HttpServing,
    /// The login pages of all processes, if there are others.
    logins: Option<Arc<LoginFleet>>,
}

impl GatewayServing {
    async fn start(
        file: &GatewayFile,
        address: &str,
        listen: &ListenArgs,
        (keys, fleet): (GatewayKeys, Option<GatewayFleet>),
        output: &Output,
    ) -> Result<Self, Failure> {
        let wrong = |error: pintle::Error| Failure::usage(error.to_string(), "pintle gateway --help");
        let (listening, protection) = match &file.auth {
            None => (listen.listen(address, "gateway").await?, None),
            Some(auth) => {
                let protection = auth.of_paths(fleet.as_ref()).map_err(wrong)?;
                (listen.listen_for_routes(address, "gateway").await?, Some(protection))
            }
        };
        let users = match () {
            () if listening.is_open_to_local() => GatewayUsers::Machine,
            () if listening.is_open_to_all() => GatewayUsers::Everybody,
            () => GatewayUsers::Many,
        };
        if users == GatewayUsers::Everybody {
            file.not_for_everybody()?;
        }
        let url = file.gateway_url().map(str::to_owned).or_else(|| listening.local_url());
        let nodes = match &fleet {
            Some(fleet) => Some(fleet.login_nodes().await?),
            None => None,
        };
        let pages = url.map(|url| LoginPages::new(&url, nodes.clone())).transpose()?.map(Arc::new);
        let logins = pages.clone().zip(nodes).map(|(pages, nodes)| Arc::new(LoginFleet::start(pages, nodes)));
        let gateway = Arc::new(
            Gateway::new(file, users, output)?.login_pages(pages).sealed_with(keys).shared_with(fleet),
        );
        gateway.connect(file).await;
        let routes = Arc::new(listening.routes(protection));
        gateway.serve(&routes, ENDPOINT, &gateway.whole_server()).await?;
        for backend in gateway.backends() {
            let (path, server) = gateway.target_server(&backend);
            gateway.serve(&routes, &path, &server).await?;
        }
        for (name, entry) in &file.servers {
            let (path, server) = gateway.virtual_server(name, entry)?;
            gateway.serve(&routes, &path, &server).await?;
        }
        listening.announce(ENDPOINT, output)?;
        let names: Vec<_> =
            gateway.backends().iter().map(|backend| format!("`{}`", backend.name())).collect();
        output.note(format!(
            "serving at {}, with {} targets: {}",
            listening.address(),
            names.len(),
            names.join(", ")
        ));
        let (shown, others) = (gateway.clone(), logins.clone());
        let pages = Arc::new(GatewayPages { gateway: shown, routes: routes.clone(), logins: others });
        let http = listening.serve_routes(routes.clone(), pages, output)?;
        Ok(Self { gateway, routes, http, logins })
    }

    /// Refuses new calls, waits for the running ones, and disconnects from the targets.
    async fn drain(self, output: &Output) {
        // What is printed is so.
        let drained = self.routes.drain(GRACE);
        output.note("ending: new calls are refused, and running ones have 30 s to complete");
        let leave = async {
            if let Some(logins) = &self.logins {
                logins.leave().await;
            }
        };
        let (ended, ()) = tokio::join!(drained, leave);
        if ended > 0 {
            output.note(match ended {
                1 => "1 call had not completed, and was ended".to_owned(),
                _ => format!("{ended} calls had not completed, and were ended"),
            });
        }
        self.http.shutdown(CLOSE_GRACE).await;
        self.gateway.close().await;
        output.note("ended");
    }
}

/// The pages of a gateway, and its log of refused requests.
struct GatewayPages {
    gateway: Arc<Gateway>,
    routes: Arc<Routes>,
    /// The login pages of all processes, if there are others.
    logins: Option<Arc<LoginFleet>>,
}

impl Beside for GatewayPages {
    fn browser_page(&self, request: &Request<RequestBody>) -> Option<BrowserPage> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        match &self.logins {
            Some(fleet) => Some(Box::pin(fleet.answer(method, uri, headers)?)),
            None => Some(Box::pin(ready(self.gateway.pages.as_ref()?.answer(method, uri, headers)?))),
        }
    }

    fn page_access(&self, path: &str) -> Option<PageAccess> {
        match path {
            "/health" => Some(PageAccess::Open),
            "/ready" | "/metrics" => Some(PageAccess::Clients),
            _ => None,
        }
    }

    fn page(&self, path: &str, reader: &PageReader<'_>) -> Option<Page> {
        self.gateway.page(path, &self.routes, reader)
    }

    fn refused(&self, path: &str, status: StatusCode, start: Instant) {
        // The rest of the path of a login is a secret of its principal.
        let path = if path.starts_with(LOGIN_PATH) { LOGIN_PATH } else { path };
        self.gateway.gates.logs.get().access().refused(path, status, start);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpStream,
    };

    use clap::Parser;
    use pintle::{
        Client, Server, Timeouts,
        client::{Mode, http::Http},
        server::tool,
    };
    use tokio::sync::mpsc;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        gateway: GatewayArgs,
    }

    #[tokio::test]
    async fn calls_that_do_not_complete_in_time_are_ended_and_that_is_printed() {
        let (begun, mut begins) = mpsc::channel(1);
        let wait = tool("wait", move || {
            let begun = begun.clone();
            async move {
                begun.send(()).await.unwrap();
                std::future::pending::<String>().await
            }
        });
        let behind = Server::new("slow", "0").tool(wait).serve_http("127.0.0.1:0").await.unwrap();
        let file = format!("[targets.slow]\nurl = \"http://{}/mcp\"\n", behind.address());
        let file = GatewayFile::parse(&file).unwrap();
        let (output, printed) = Output::kept();
        let GatewayArgs { listen, .. } = Typed::parse_from(["gateway", "unused.toml"]).gateway;
        let keys = (GatewayKeys::random().unwrap(), None);
        let serving = GatewayServing::start(&file, "127.0.0.1:0", &listen, keys, &output).await.unwrap();
        let url = format!("http://{}{ENDPOINT}", serving.http.address());
        for mode in [Mode::Modern, Mode::Legacy] {
            let mut timeouts = Timeouts::default();
            timeouts.call = 2 * GRACE;
            let client = Client::new("host", "1.0.0").mode(mode).timeouts(timeouts);
            let client = client.connect(Http::new(&url).unwrap()).await.unwrap();
            tokio::spawn(async move { client.call_tool("slow_wait", ()).await });
            begins.recv().await.unwrap();
        }
        tokio::time::pause();
        let start = Instant::now();
        serving.drain(&output).await;
        assert!(printed().contains("\n2 calls had not completed, and were ended\n"), "{}", printed());
        // A timer is a millisecond early or late.
        let tick = Duration::from_millis(1);
        assert!((GRACE - tick..GRACE + 2 * CLOSE_GRACE).contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    /// A lock of the gateway is held, and a thread of the runtime waits for it; another one waits for the network in its place, and answers
    /// what needs no lock.
    #[test]
    fn health_is_answered_while_the_targets_are_locked() {
        let runtime = crate::runtime(true).unwrap();
        let file = GatewayFile::parse("[targets.demo]\nserver = \"demo\"\n").unwrap();
        let GatewayArgs { listen, .. } = Typed::parse_from(["gateway", "unused.toml"]).gateway;
        let (output, _) = Output::kept();
        let keys = (GatewayKeys::random().unwrap(), None);
        let starting = GatewayServing::start(&file, "127.0.0.1:0", &listen, keys, &output);
        let serving = runtime.block_on(starting).unwrap();
        let address = serving.http.address();
        let get = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(2 * GRACE)).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
            stream
        };
        let read = |mut stream: TcpStream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let targets = serving.gateway.lock_backends();
        let ready = get("/ready");
        let health = read(get("/health"));
        assert!(health.ends_with("\r\n\r\nok\n"), "{health}");
        drop(targets);
        let ready = read(ready);
        assert!(ready.ends_with("\r\n\r\nready\n"), "{ready}");
    }
}
