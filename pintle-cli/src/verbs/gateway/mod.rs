//! `pintle gateway`: many servers as one.

mod backend;
mod file;
mod reload;
mod status;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use http::StatusCode;
use pintle::{
    Client, Server,
    server::{AuditRecord, Mount, Principal, Rules, ToolSearch},
};
use serde_json::json;
use tokio::sync::oneshot;

use self::{
    backend::Backend,
    file::{GatewayFile, TargetEntry},
    status::Counters,
};
use crate::{
    args::{HELP, examples},
    failure::{Exit, Failure},
    listen::{ENDPOINT, ListenArgs, Page},
    output::Output,
    targets::ProgramStarts,
};

/// Serve many servers as one, with rules about who may use what
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle gateway team.toml --http 127.0.0.1:8000", "all targets of the file, at http://127.0.0.1:8000/mcp"),
        ("pintle gateway team.toml", "the same, on standard input and output"),
        ("pintle gateway team.toml --check", "whether the file is right"),
        ("pintle gateway team.toml --explain ANN git_push '{\"force\": true}'", "which rule decides, and why"),
    ]),
    help_template = HELP,
)]
pub(crate) struct GatewayArgs {
    /// The file with the targets and the rules, in TOML
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Serve HTTP at this address, until Ctrl-C, and print the URL; otherwise standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Check the file, and end
    #[arg(long)]
    check: bool,
    /// Print which rule decides about a call, and end. The principal is a name, `@local` or `@anonymous`
    #[arg(long, num_args = 2..=3, value_names = ["PRINCIPAL", "TOOL", "ARGUMENTS"])]
    explain: Option<Vec<String>>,
    /// Print the JSON Schema of the file, and end
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    listen: ListenArgs,
}

pub(super) async fn run(args: GatewayArgs, output: &Output) -> Result<(), Failure> {
    let GatewayArgs { file: path, http, check, explain, schema, listen } = args;
    let (Some(path), false) = (path, schema) else {
        let schema = schemars::schema_for!(GatewayFile);
        return output.result(&schema, |text| {
            text.line(serde_json::to_string_pretty(&schema).unwrap_or_default());
        });
    };
    if let Some(option) = listen.given().filter(|_| http.is_none()) {
        let message = format!("`{option}` is an option of `--http`");
        return Err(Failure::usage(message, "pintle gateway --help"));
    }
    let file = GatewayFile::read(&path)?;
    for target in file.targets.values() {
        target.endpoint()?;
    }
    if check {
        let (targets, rules) = (file.targets.len(), file.rules.len());
        return output.result(&json!({ "targets": targets, "rules": rules }), |text| {
            text.line(format!("{}: {targets} targets and {rules} rules", path.display()));
        });
    }
    let gateway = Gateway::new(&file, output)?;
    if let Some(explain) = explain {
        return gateway.explain(&file, &explain, output).await;
    }
    match http {
        None => {
            gateway.connect(&file, false).await;
            let server = gateway.server(None);
            tokio::select! {
                served = server.serve_stdio() => served.map_err(|error| {
                    let message = format!("the gateway failed: {error}");
                    Failure::new(Exit::Server, message, format!("pintle gateway {} --check", path.display()))
                }),
                never = gateway.reload(&path, file.clone(), false) => match never {},
            }
        }
        Some(address) => {
            let listening = listen.listen(&address, "gateway").await?;
            // Programs of this machine belong to one user.
            let shares = listening.is_open_to_local();
            gateway.connect(&file, shares).await;
            listening.announce(ENDPOINT, output)?;
            let mut servers = vec![(ENDPOINT.to_owned(), gateway.server(None))];
            for backend in gateway.backends() {
                servers.push((format!("{ENDPOINT}/{}", backend.name()), gateway.server(Some(&backend))));
            }
            tokio::select! {
                served = listening.serve_servers(servers, gateway.pages()) => served,
                never = gateway.reload(&path, file.clone(), shares) => match never {},
            }
        }
    }
}

/// The limit of programs that run for one target.
const MAX_PROGRAMS: usize = 64;
/// The longest time between two attempts to connect to a target.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The time that targets have to be connected before the gateway starts without them.
const FIRST_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The backends of a file, and its rules.
struct Gateway {
    name: String,
    instructions: Option<String>,
    backends: Mutex<Vec<Arc<Backend>>>,
    /// The server with all backends.
    server: Server,
    /// Whether tools are searched in place of listed.
    search: bool,
    rules: Rules,
    counters: Arc<Counters>,
    output: Output,
}

impl Gateway {
    fn new(file: &GatewayFile, output: &Output) -> Result<Self, Failure> {
        let counters = Arc::new(Counters::default());
        let wrong = |error: pintle::Error| Failure::usage(error.to_string(), "pintle gateway --help");
        let log = file.audit.as_deref().map(status::AuditLog::open).transpose()?;
        let counted = counters.clone();
        let rules = Rules::audited(file.rule_set(), move |record: &AuditRecord<'_>| {
            counted.count(record.decision);
            if let Some(log) = &log {
                log.write(record);
            }
        })
        .map_err(wrong)?;
        let backends: Vec<_> = file.targets.keys().map(|name| Arc::new(Backend::new(name))).collect();
        let name = file.name.clone().unwrap_or_else(|| "pintle-gateway".to_owned());
        let server = base(&name, file.instructions.as_deref(), &rules);
        let server = backends.iter().fold(server, |server, backend| server.provider(backend.clone()));
        Ok(Self {
            name,
            instructions: file.instructions.clone(),
            backends: Mutex::new(backends),
            server,
            search: file.search,
            rules,
            counters,
            output: output.clone(),
        })
    }

    /// Returns the server with all backends, or one with a single one, whose names are the same.
    fn server(&self, backend: Option<&Arc<Backend>>) -> Server {
        match backend {
            // The gate is inside, and judges what is found and called.
            None if self.search => Server::new(&*self.name, env!("CARGO_PKG_VERSION"))
                .provider(ToolSearch::new(self.server.clone())),
            None => self.server.clone(),
            Some(backend) => {
                base(&self.name, self.instructions.as_deref(), &self.rules).provider(backend.clone())
            }
        }
    }

    fn backends(&self) -> Vec<Arc<Backend>> {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to all targets, each again until it succeeds. Returns when each was tried once, or after a while.
    async fn connect(&self, file: &GatewayFile, shares: bool) {
        let mut first_attempts = Vec::new();
        for backend in self.backends() {
            if let Some(target) = file.targets.get(backend.name()) {
                let (tried, first_attempt) = oneshot::channel();
                tokio::spawn(connect(backend, target.clone(), shares, self.output.clone(), Some(tried)));
                first_attempts.push(first_attempt);
            }
        }
        let all = async {
            for first_attempt in first_attempts {
                let _ = first_attempt.await;
            }
        };
        let _ = tokio::time::timeout(FIRST_ATTEMPT_TIMEOUT, all).await;
    }

    async fn explain(&self, file: &GatewayFile, words: &[String], output: &Output) -> Result<(), Failure> {
        let (principal, name) =
            (words.first().map_or("", String::as_str), words.get(1).map_or("", String::as_str));
        let next = "pintle gateway FILE --explain @local TOOL '{}'";
        let arguments = match words.get(2) {
            None => pintle::types::JsonObject::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Failure::usage(format!("`{text}` is not a JSON object: {error}"), next))?,
        };
        let caller = match principal {
            "@local" => Principal::Local,
            "@anonymous" => Principal::Anonymous,
            name => Principal::Named(name),
        };
        self.connect(file, false).await;
        let failed = |error: pintle::Error| Failure::new(Exit::Server, error.to_string(), next);
        for backend in self.backends() {
            let server = Server::new(&*self.name, env!("CARGO_PKG_VERSION")).provider(backend.clone());
            let transport = server.in_process().map_err(failed)?;
            let client =
                Client::new("pintle", env!("CARGO_PKG_VERSION")).connect(transport).await.map_err(failed)?;
            let tools = client.tools().await.map_err(failed)?;
            let Some(tool) = tools.iter().find(|tool| tool.name == name) else { continue };
            let explained = self.rules.explain(caller, |_| true, Some(backend.name()), tool, &arguments);
            let decision = format!("{:?}", explained.decision);
            let rule = explained.rule.unwrap_or_else(|| "the default".to_owned());
            let passed: Vec<_> = explained.passed;
            let json = json!({
                "decision": decision,
                "rule": rule,
                "passed": passed.iter().map(|(rule, why)| json!({"rule": rule, "why": why})).collect::<Vec<_>>(),
            });
            return output.result(&json, |text| {
                for (rule, why) in &passed {
                    text.line(format!("{rule}: does not decide, because of {why}"));
                }
                text.line(format!("{rule}: {decision}"));
            });
        }
        let message = format!("no target that could be connected has a tool `{name}`");
        Err(Failure::new(Exit::Server, message, next))
    }

    /// Returns the pages beside the servers.
    fn pages(&self) -> impl Fn(&str) -> Option<Page> + Send + Sync + 'static {
        let (counters, backends) = (self.counters.clone(), self.backends());
        move |path| {
            let text =
                |status, text: String| Page { status, content_type: "text/plain", text, is_open: false };
            Some(match path {
                "/health" => Page { is_open: true, ..text(StatusCode::OK, "ok\n".to_owned()) },
                "/ready" => {
                    let down: Vec<_> =
                        backends.iter().filter(|backend| !backend.is_up() && !backend.is_removed()).collect();
                    let names: String =
                        down.iter().map(|backend| format!("{} is down\n", backend.name())).collect();
                    match down.is_empty() {
                        true => text(StatusCode::OK, "ready\n".to_owned()),
                        false => text(StatusCode::SERVICE_UNAVAILABLE, names),
                    }
                }
                "/metrics" => text(StatusCode::OK, counters.metrics(&backends)),
                _ => return None,
            })
        }
    }
}

fn base(name: &str, instructions: Option<&str>, rules: &Rules) -> Server {
    let server = Server::new(name, env!("CARGO_PKG_VERSION")).gate(rules.clone());
    match instructions {
        Some(instructions) => server.instructions(instructions),
        None => server,
    }
}

/// Connects to a target, again and again until it succeeds.
async fn connect(
    backend: Arc<Backend>,
    target: TargetEntry,
    shares: bool,
    output: Output,
    mut tried: Option<oneshot::Sender<()>>,
) {
    let starts = ProgramStarts::new(MAX_PROGRAMS);
    let mut delay = Duration::from_secs(1);
    while !backend.is_removed() {
        let opened = open(&backend, &target, &starts, shares, &output).await;
        match opened {
            Ok(connected) => return backend.connect(connected),
            Err(failure) => {
                output.note(format!("`{}` cannot be connected: {}", backend.name(), failure.message));
                backend.fail(failure.message);
            }
        }
        drop(tried.take());
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(MAX_DELAY);
    }
}

async fn open(
    backend: &Backend,
    target: &TargetEntry,
    starts: &ProgramStarts,
    shares: bool,
    output: &Output,
) -> Result<Mount<pintle::server::Transform<pintle::relay::Relay>>, Failure> {
    let endpoint = target.endpoint()?;
    let resolved = endpoint.resolved(output).await?;
    let relay = endpoint.relay(resolved, endpoint.client(output), None, starts.clone(), output).await?;
    let relay = if shares { relay.share_anonymous() } else { relay };
    Ok(Mount::new(target.prefix(backend.name()), target.transform(relay)))
}
