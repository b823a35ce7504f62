use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;
use pintle::{
    Server,
    relay::Relay,
    server::{AuditRecord, Mount, Rules, ToolSearch, around},
};
use tokio::sync::oneshot;

use super::{
    access_log::AccessLog,
    backend::{Backend, ConnectedTarget},
    caller_targets::CallerTargets,
    exchange::ExchangedAuth,
    file::GatewayFile,
    json_log::JsonLog,
    names::HostNames,
    status::Counters,
    target::TargetEntry,
    virtual_server::{VirtualServer, VirtualServerEntry, VirtualServerGates},
};
use crate::{
    auth::BackgroundLogin,
    failure::Failure,
    listen::{ENDPOINT, Page},
    output::Output,
    targets::ProgramStarts,
};

/// The limit of programs that run for one target.
const MAX_PROGRAMS: usize = 64;
/// The longest time between two attempts to connect to a target.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The time that targets have to be connected before the gateway starts without them.
const FIRST_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The users who can connect to a gateway.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GatewayUsers {
    /// The user of this process, on standard streams.
    Local,
    /// Everybody on this machine, who is taken for one user: anonymous clients share connections.
    Machine,
    /// Clients of different principals.
    Many,
}

/// The backends of a file, and its rules.
pub(super) struct Gateway {
    pub(super) name: String,
    instructions: Option<String>,
    backends: Mutex<Vec<Arc<Backend>>>,
    /// The server with all backends.
    server: Server,
    /// Whether tools are searched in place of listed.
    search: bool,
    pub(super) gates: VirtualServerGates,
    virtual_servers: Mutex<BTreeMap<String, Arc<VirtualServer>>>,
    counters: Arc<Counters>,
    pub(super) access_log: Option<AccessLog>,
    users: GatewayUsers,
    /// The issuer of the tokens of clients.
    issuer: Option<String>,
    programs: Mutex<Vec<ProgramStarts>>,
    pub(super) output: Output,
}

impl Gateway {
    pub(super) fn new(file: &GatewayFile, users: GatewayUsers, output: &Output) -> Result<Self, Failure> {
        let counters = Arc::new(Counters::default());
        let log = file.audit.as_deref().map(JsonLog::open).transpose()?;
        let access_log = file.access_log.as_deref().map(JsonLog::open).transpose()?.map(AccessLog::new);
        let counted = counters.clone();
        let audit = Arc::new(move |record: &AuditRecord<'_>| {
            counted.count(record.decision);
            if let Some(log) = &log {
                log.write(record);
            }
        });
        let reported = audit.clone();
        let rules = Rules::audited(file.rule_set(), move |record: &AuditRecord<'_>| reported(record));
        let gates = VirtualServerGates { rules: rules.map_err(|error| wrong(&error))?, audit };
        let backends: Vec<_> = file
            .targets
            .iter()
            .map(|(name, target)| Arc::new(Backend::new(name, target.prefix_text(name))))
            .collect();
        let name = file.name.clone().unwrap_or_else(|| "pintle-gateway".to_owned());
        let server = base(&name, file.instructions.as_deref()).gate(gates.rules.clone());
        let server = backends.iter().fold(server, |server, backend| server.provider(backend.clone()));
        let gateway = Self {
            name,
            instructions: file.instructions.clone(),
            backends: Mutex::new(backends),
            server,
            search: file.search,
            gates,
            virtual_servers: Mutex::default(),
            counters,
            access_log,
            users,
            issuer: file.auth.as_ref().map(|auth| auth.issuer.clone()),
            programs: Mutex::default(),
            output: output.clone(),
        };
        Ok(gateway)
    }

    /// Returns the server with all backends.
    pub(super) fn whole_server(&self) -> Server {
        let server = match self.search {
            // The gate is inside, and judges what is found and called.
            true => base(&self.name, None).provider(ToolSearch::new(self.server.clone())),
            false => self.server.clone(),
        };
        self.logged(ENDPOINT, server)
    }

    /// Returns a server with one backend, whose names are the same as in that with all of them.
    pub(super) fn target_server(&self, backend: &Arc<Backend>) -> (String, Server) {
        let path = format!("{ENDPOINT}/{}", backend.name());
        let server = base(&self.name, self.instructions.as_deref()).gate(self.gates.rules.clone());
        let server = self.logged(&path, server.provider(backend.clone()));
        (path, server)
    }

    /// Returns a virtual server.
    pub(super) fn virtual_server(
        &self,
        name: &str,
        entry: &VirtualServerEntry,
    ) -> Result<(String, Server), Failure> {
        let path = format!("{ENDPOINT}/{name}");
        let provider = VirtualServer::new(name, entry, self.gates.clone(), &self.backends());
        let provider = Arc::new(provider.map_err(|error| wrong(&error))?);
        lock(&self.virtual_servers).insert(name.to_owned(), provider.clone());
        let instructions = entry.instructions.as_deref().or(self.instructions.as_deref());
        let server = base(&self.name, instructions);
        let server = match entry.search {
            true => server.provider(ToolSearch::new(provider)),
            false => server.provider(provider),
        };
        Ok((path.clone(), self.logged(&path, server)))
    }

    /// Has requests to a server logged, if the file says so.
    fn logged(&self, path: &str, server: Server) -> Server {
        let Some(log) = self.access_log.clone() else { return server };
        let path: Arc<str> = path.into();
        server.layer(&around(move |cx, next| log.clone().around(path.clone(), cx, next)))
    }

    pub(super) fn backends(&self) -> Vec<Arc<Backend>> {
        lock(&self.backends).clone()
    }

    /// Returns the virtual servers that run.
    pub(super) fn virtual_servers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<VirtualServer>>> {
        lock(&self.virtual_servers)
    }

    /// Connects to all targets, each again until it succeeds. Returns when each was tried once, or after a while.
    pub(super) async fn connect(&self, file: &GatewayFile) {
        let mut first_attempts = Vec::new();
        for backend in self.backends() {
            if let Some(target) = file.targets.get(backend.name()) {
                let (tried, first_attempt) = oneshot::channel();
                self.connect_backend(&backend, 0, target, Some(tried));
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

    /// Connects the backend of this name to a target, in the background. It is added if there is none.
    pub(super) fn connect_later(&self, name: &str, target: &TargetEntry) -> pintle::Result<()> {
        let known = self.backends().into_iter().find(|backend| backend.name() == name);
        let backend = match known {
            Some(backend) => backend,
            None => {
                let backend = Arc::new(Backend::new(name, target.prefix_text(name)));
                self.server.add_provider(backend.clone())?;
                lock(&self.backends).push(backend.clone());
                backend
            }
        };
        let number = backend.replace(target.prefix_text(name));
        self.connect_backend(&backend, number, target, None);
        Ok(())
    }

    fn connect_backend(
        &self,
        backend: &Arc<Backend>,
        number: u64,
        target: &TargetEntry,
        tried: Option<oneshot::Sender<()>>,
    ) {
        let starts = ProgramStarts::new(MAX_PROGRAMS);
        {
            let mut programs = lock(&self.programs);
            programs.retain(ProgramStarts::is_used);
            programs.push(starts.clone());
        }
        let opening = TargetOpening {
            backend: backend.clone(),
            number,
            target: target.clone(),
            starts,
            users: self.users,
            issuer: self.issuer.clone(),
            output: self.output.clone(),
        };
        tokio::spawn(opening.connect(tried));
    }

    /// Disconnects from all targets, and waits until the programs have ended.
    pub(super) async fn close(&self) {
        self.backends().iter().for_each(|backend| backend.remove());
        let programs = std::mem::take(&mut *lock(&self.programs));
        for starts in programs {
            starts.all_gone().await;
        }
    }

    /// Returns the pages beside the servers.
    pub(super) fn page(&self, path: &str, is_draining: bool) -> Option<Page> {
        let text = |status, text: String| Page { status, content_type: "text/plain", text, is_open: false };
        Some(match path {
            "/health" => Page { is_open: true, ..text(StatusCode::OK, "ok\n".to_owned()) },
            "/ready" if is_draining => text(StatusCode::SERVICE_UNAVAILABLE, "it is ending\n".to_owned()),
            "/ready" => {
                let backends = self.backends();
                let down = backends.iter().filter(|backend| !backend.is_up() && !backend.is_removed());
                let names: String = down.map(|backend| format!("{} is down\n", backend.name())).collect();
                match names.is_empty() {
                    true => text(StatusCode::OK, "ready\n".to_owned()),
                    false => text(StatusCode::SERVICE_UNAVAILABLE, names),
                }
            }
            "/metrics" => text(StatusCode::OK, self.counters.metrics(&self.backends())),
            _ => return None,
        })
    }
}

fn base(name: &str, instructions: Option<&str>) -> Server {
    let server = Server::new(name, env!("CARGO_PKG_VERSION"));
    match instructions {
        Some(instructions) => server.instructions(instructions),
        None => server,
    }
}

/// A target of a backend that is being connected.
struct TargetOpening {
    backend: Arc<Backend>,
    number: u64,
    target: TargetEntry,
    starts: ProgramStarts,
    users: GatewayUsers,
    /// The issuer of the tokens of clients.
    issuer: Option<String>,
    output: Output,
}

impl TargetOpening {
    /// Connects to the target, again and again until it succeeds or is replaced.
    async fn connect(self, mut tried: Option<oneshot::Sender<()>>) {
        if self.target.exchange().is_some() {
            return self.connect_callers();
        }
        let (mut delay, mut login) = (Duration::from_secs(1), None);
        while self.backend.has_target(self.number) {
            match self.open(&mut login).await {
                Ok(connected) => return self.backend.connect(self.number, connected),
                Err(failure) => {
                    let name = self.backend.name();
                    self.output.note(format!("`{name}` cannot be connected: {}", failure.message));
                    self.backend.fail(self.number, failure.message);
                }
            }
            drop(tried.take());
            match &login {
                Some(login) => tokio::select! {
                    () = login.ended() => delay = Duration::from_secs(1),
                    () = tokio::time::sleep(delay) => {}
                },
                None => tokio::time::sleep(delay).await,
            }
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    async fn open(&self, login: &mut Option<BackgroundLogin>) -> Result<ConnectedTarget, Failure> {
        let Self { target, starts, users, output, .. } = self;
        let endpoint = target.endpoint()?;
        let resolved = endpoint.resolved(output).await?;
        if target.has_login() && *users == GatewayUsers::Many {
            let message = "`login` is for a gateway of one user, on standard streams or on this machine without tokens: clients would \
                           share the rights of whoever logs in";
            return Err(Failure::usage(message, "pintle gateway --help"));
        }
        if target.has_login() && login.is_none() {
            *login = endpoint.background_login(&resolved, false, output)?;
        }
        let client = endpoint.client(output);
        let relay = endpoint.relay(resolved, client, login.clone(), starts.clone(), output).await;
        // What the user has to do is the reason.
        let relay = relay.map_err(|failure| match login.as_ref().and_then(BackgroundLogin::waiting) {
            Some(waiting) => Failure { message: waiting, ..failure },
            None => failure,
        })?;
        let relay = if *users == GatewayUsers::Machine { relay.share_anonymous() } else { relay };
        Ok(self.offered(relay))
    }

    /// Has the target connected for each token of a client, when it is used.
    fn connect_callers(self) {
        let Some((entry, url)) = self.target.exchange() else { return };
        let exchange = match self.issuer.as_deref().map(|issuer| entry.exchange(issuer, url)) {
            Some(Ok(exchange)) => exchange,
            Some(Err(failure)) => return self.backend.fail(self.number, failure.message),
            None => return self.backend.fail(self.number, "there is no authorization server".to_owned()),
        };
        let (backend, number, opening) = (self.backend.clone(), self.number, Arc::new(self));
        let prefix = opening.target.prefix_text(backend.name()).to_owned();
        backend.connect_callers(
            number,
            CallerTargets::new(&prefix, move |token| {
                let (opening, auth) = (opening.clone(), ExchangedAuth::new(exchange.clone(), token));
                async move { opening.open_for_caller(auth).await }
            }),
        );
    }

    async fn open_for_caller(&self, auth: ExchangedAuth) -> Result<ConnectedTarget, Failure> {
        let endpoint = self.target.endpoint()?;
        let resolved = endpoint.resolved(&self.output).await?;
        let client = endpoint.client(&self.output);
        let relay = endpoint.relay(resolved, client, Some(auth), self.starts.clone(), &self.output).await?;
        Ok(self.offered(relay))
    }

    /// Returns what clients see of the target.
    fn offered(&self, relay: Relay) -> ConnectedTarget {
        let Self { backend, target, output, .. } = self;
        let mounted = Mount::new(target.prefix(backend.name()), target.transform(relay));
        let output = output.clone();
        HostNames::new(mounted, move |name, offered| {
            output.note(format!(
                "`{}` is offered as `{offered}`, because some hosts refuse the name",
                shown(name)
            ));
        })
    }
}

/// Returns the beginning of a name, which may be of any length.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(100).collect()
}

fn wrong(error: &pintle::Error) -> Failure {
    Failure::usage(error.to_string(), "pintle gateway --help")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
