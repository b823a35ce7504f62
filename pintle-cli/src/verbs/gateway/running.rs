use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::{pending, ready},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use http::StatusCode;
use pintle::{
    Server,
    proto::Limits,
    server::{AuditRecord, Next, Rules, ToolSearch, around},
};
use pintle_serve::{EntryFault, ServedFolders};
use tokio::sync::{Notify, oneshot};

use super::{
    api::{ApiEntry, BackendProvider, LoadedApi},
    backend::{Backend, CallerTargets, OpenTarget},
    file::{BackendEntry, GatewayFile, OwnEntries, WatchedFiles},
    fleet::{GatewayFleet, GatewayKeys},
    login::{LoginPages, ask_to_log_in},
    logs::{CurrentLogs, LogPaths, OpenLogs, cut, logged},
    metrics::{MetricsForm, RequestMetrics},
    settings::GatewaySettings,
    status::{Counters, Measured, readiness},
    target_opening::TargetOpening,
    virtual_server::{VirtualServer, VirtualServerEntry, VirtualServerGates},
    whole_list::read_lists,
};
use crate::{
    args::message_limits,
    failure::Failure,
    listen::{ENDPOINT, Page, PageReader, Routes},
    output::Output,
    supervisor::Supervisor,
    targets::ProgramStarts,
};

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
    /// Everybody who can connect, from any machine and without a token.
    Everybody,
}

/// The backends of a file, and its rules.
pub(super) struct Gateway {
    pub(super) settings: RwLock<Arc<GatewaySettings>>,
    limits: Limits,
    backends: Mutex<Vec<Arc<Backend>>>,
    /// The targets that the file has chosen for extensions.
    extensions: BTreeMap<String, String>,
    /// Notified when a target was connected: it may offer names that another has.
    pub(super) connected: Arc<Notify>,
    /// The folders of the file, whose files are resources.
    folders: ServedFolders,
    /// The entries of the file itself.
    entries: Mutex<OwnEntries>,
    watched: Mutex<Option<WatchedFiles>>,
    /// The server with all backends.
    pub(super) server: Server,
    /// The server with all backends, for clients who list tools.
    listed: OnceLock<Server>,
    /// The servers that clients are served, by their paths.
    fronts: Mutex<BTreeMap<String, Server>>,
    pub(super) gates: VirtualServerGates,
    virtual_servers: Mutex<BTreeMap<String, Arc<VirtualServer>>>,
    pub(super) counters: Arc<Counters>,
    users: GatewayUsers,
    /// The keys of what clients keep for the servers, if it outlives this process.
    keys: Option<GatewayKeys>,
    /// The pages of logins, if its users can open them.
    pub(super) pages: Option<Arc<LoginPages>>,
    /// The issuer of the tokens of clients.
    issuer: Option<String>,
    programs: Mutex<Vec<ProgramStarts>>,
    supervisor: Supervisor,
    pub(super) output: Output,
}

impl Gateway {
    pub(super) fn new(file: &GatewayFile, users: GatewayUsers, output: &Output) -> Result<Self, Failure> {
        let counters = Arc::new(Counters::default());
        let logs = CurrentLogs::new(open_logs(file, None, &counters.requests, output)?);
        let (counted, written) = (counters.clone(), logs.clone());
        let audit = Arc::new(move |record: &AuditRecord<'_>| {
            counted.count(record.decision);
            if let Some(log) = written.get().audit() {
                let (principal, name) = (cut(record.principal), logged(record.name));
                let upstream = record.upstream.map(logged);
                let mut record = record.clone();
                (record.principal, record.name, record.upstream) = (&principal, &name, upstream.as_deref());
                log.write(&record);
            }
        });
        let reported = audit.clone();
        let rules = Rules::audited(file.rule_set(), move |record: &AuditRecord<'_>| reported(record));
        let rules = rules.map_err(|error| wrong(&error))?;
        let settings = GatewaySettings::of(file);
        let folders = ServedFolders::default();
        let wrong_entry = |fault: EntryFault| Failure::usage(fault.to_string(), "pintle gateway --help");
        let supervisor = Supervisor::default();
        let workers = file.served_workers(output).map_err(wrong_entry)?.on_start(supervisor.watcher());
        let entries = file.own_entries(&workers).map_err(wrong_entry)?.supervised_by(&supervisor);
        let own = base(&settings.name, None);
        let own = if file.has_logs() { own.logging() } else { own };
        let own = entries.register(own, &folders);
        let gates = VirtualServerGates { own, rules, audit, logs, fleet: None };
        let backend = |(name, entry): (&String, BackendEntry<'_>)| {
            Arc::new(Backend::new(name, entry.offer(name, output)).extensions(&file.extensions))
        };
        let backends: Vec<_> = file.backends().map(backend).collect();
        let limits = message_limits(file.max_message);
        let server = base(&settings.name, settings.instructions.as_deref()).limits(limits.clone());
        let server = gates.guard(server);
        let server = server.provider(gates.own.clone());
        let server = backends.iter().fold(server, |server, backend| server.provider(backend.clone()));
        let gateway = Self {
            settings: RwLock::new(Arc::new(settings)),
            limits,
            backends: Mutex::new(backends),
            extensions: file.extensions.clone(),
            connected: Arc::default(),
            watched: Mutex::new(Some(WatchedFiles::new(&entries, &folders))),
            server,
            folders,
            entries: Mutex::new(entries),
            listed: OnceLock::new(),
            fronts: Mutex::default(),
            gates,
            virtual_servers: Mutex::default(),
            counters,
            users,
            keys: None,
            pages: None,
            issuer: file.auth.as_ref().map(|auth| auth.issuer.clone()),
            programs: Mutex::default(),
            supervisor,
            output: output.clone(),
        };
        Ok(gateway)
    }

    /// Returns the entries of a changed file. Workers that have not changed go on, and calls that have run once do not run again.
    pub(super) fn next_entries(&self, file: &GatewayFile) -> Result<OwnEntries, String> {
        let workers = file.served_workers(&self.output).map_err(|fault| fault.to_string())?;
        let workers = workers.on_start(self.supervisor.watcher());
        let running = lock(&self.entries);
        let workers = workers.keeping(running.workers());
        let own = file.own_entries(&workers).map_err(|fault| fault.to_string())?.keeping(&running);
        Ok(own.supervised_by(&self.supervisor))
    }

    /// Serves the entries of a changed file, and returns the files that are resources.
    pub(super) fn replace_entries(&self, own: OwnEntries) -> Result<WatchedFiles, String> {
        own.replace(&self.gates.own, &self.folders).map_err(|error| error.to_string())?;
        let watched = WatchedFiles::new(&own, &self.folders);
        *lock(&self.entries) = own;
        Ok(watched)
    }

    /// Takes the files that are resources of the file with which the gateway was started.
    pub(super) fn watched_files(&self) -> Option<WatchedFiles> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has principals log in on these pages.
    pub(super) fn login_pages(mut self, pages: Option<Arc<LoginPages>>) -> Self {
        self.pages = pages;
        self
    }

    /// Has what clients keep for the servers sealed with these keys.
    pub(super) fn sealed_with(mut self, keys: GatewayKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Shares sessions, and the rates of the rules, with other processes, if there are any.
    pub(super) fn shared_with(mut self, fleet: Option<GatewayFleet>) -> Self {
        if let Some(fleet) = &fleet {
            drop(fleet.share_rates(self.gates.rules.clone()));
        }
        self.gates.fleet = fleet;
        self
    }

    /// Watches the store that the processes share, if there are several.
    pub(super) async fn watch_store(&self) -> Infallible {
        match &self.gates.fleet {
            Some(fleet) => fleet.watch(&self.output).await,
            None => pending().await,
        }
    }

    /// Serves a server at a path.
    pub(super) async fn serve(&self, routes: &Routes, path: &str, server: &Server) -> Result<(), Failure> {
        let keys = self.keys.as_ref().map(|keys| keys.of_path(path));
        let server = keys.into_iter().fold(server.clone(), Server::state_keys);
        match &self.gates.fleet {
            Some(fleet) => fleet.serve(routes, path, &server).await,
            None => routes.insert(path, &server, |http| http),
        }
    }

    /// Returns the server with all backends.
    pub(super) fn whole_server(&self) -> Server {
        let settings = self.settings();
        if !settings.search {
            let listed = self.listed.get_or_init(|| self.logged(ENDPOINT, self.server.clone())).clone();
            lock(&self.fronts).insert(ENDPOINT.to_owned(), listed.clone());
            return listed;
        }
        // The gate is inside, and judges what is found and called.
        let search = ToolSearch::new(self.server.clone());
        let server = base(&settings.name, None).limits(self.limits.clone());
        self.logged(ENDPOINT, server.provider(search))
    }

    /// Returns a server with one backend, whose names are the same as in that with all of them.
    pub(super) fn target_server(&self, backend: &Arc<Backend>) -> (String, Server) {
        let path = format!("{ENDPOINT}/{}", backend.name());
        let settings = self.settings();
        let server = base(&settings.name, settings.instructions.as_deref()).limits(self.limits.clone());
        let server = self.gates.guard(server);
        let server = self.logged(&path, server.provider(backend.clone()));
        (path, server)
    }

    /// Returns a virtual server, with the choice, the rates and the clients that it has if it runs.
    pub(super) fn virtual_server(
        &self,
        name: &str,
        entry: &VirtualServerEntry,
    ) -> Result<(String, Server), Failure> {
        let path = format!("{ENDPOINT}/{name}");
        let (backends, running) = (self.backends(), lock(&self.virtual_servers).get(name).cloned());
        let provider = match running {
            Some(running) => running.replace(entry, &backends).map(|()| running),
            None => VirtualServer::new(name, entry, self.gates.clone(), &backends).map(Arc::new),
        };
        let provider = provider.map_err(|error| wrong(&error))?;
        lock(&self.virtual_servers).insert(name.to_owned(), provider.clone());
        let settings = self.settings();
        let instructions = entry.instructions.as_deref().or(settings.instructions.as_deref());
        let server = base(&settings.name, instructions).limits(self.limits.clone());
        let server = match entry.search {
            true => server.provider(ToolSearch::new(provider)),
            false => server.provider(provider),
        };
        Ok((path.clone(), self.logged(&path, server)))
    }

    /// Has users of the server at a path asked to log in where a call needs it, and requests to it counted, and logged if the file says so.
    fn logged(&self, path: &str, server: Server) -> Server {
        let server = match self.pages.clone() {
            Some(pages) => server.layer(&around(move |cx, next| ask_to_log_in(pages.clone(), cx, next))),
            None => server,
        };
        let (logs, logged): (_, Arc<str>) = (self.gates.logs.clone(), path.into());
        let server = server.layer(&around(move |cx, next: Next| {
            logs.get().access().clone().around(logged.clone(), cx, next)
        }));
        lock(&self.fronts).insert(path.to_owned(), server.clone());
        server
    }

    /// Returns the servers that clients are served, by their paths.
    pub(super) fn fronts(&self) -> MutexGuard<'_, BTreeMap<String, Server>> {
        lock(&self.fronts)
    }

    pub(super) fn backends(&self) -> Vec<Arc<Backend>> {
        lock(&self.backends).clone()
    }

    /// Holds the list of the targets, as one that changes it does.
    #[cfg(test)]
    pub(super) fn lock_backends(&self) -> MutexGuard<'_, Vec<Arc<Backend>>> {
        lock(&self.backends)
    }

    /// Returns the virtual servers that run.
    pub(super) fn virtual_servers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<VirtualServer>>> {
        lock(&self.virtual_servers)
    }

    /// Connects to all targets, each again until it succeeds. Returns when each was tried once, or after a while.
    pub(super) async fn connect(&self, file: &GatewayFile) {
        let mut first_attempts = Vec::new();
        for backend in self.backends() {
            if let Some(entry) = file.backend(backend.name()) {
                let (tried, first_attempt) = oneshot::channel();
                self.connect_backend(&backend, 0, entry, Some(tried));
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

    /// Has the backend of this name offered like an entry at once, and connected like it in the background, unless it is, with the same
    /// secrets. What is connected before stays until then, if it may. A backend is added if there is none.
    pub(super) fn apply_backend(
        &self,
        name: &str,
        before: Option<BackendEntry<'_>>,
        entry: BackendEntry<'_>,
        has_new_secrets: bool,
    ) -> pintle::Result<()> {
        let offer = entry.offer(name, &self.output);
        let known = self.backends().into_iter().find(|backend| backend.name() == name);
        let backend = match known {
            Some(backend) => {
                backend.offer(offer);
                backend
            }
            None => {
                let backend = Arc::new(Backend::new(name, offer).extensions(&self.extensions));
                self.server.add_provider(backend.clone())?;
                lock(&self.backends).push(backend.clone());
                backend
            }
        };
        if !has_new_secrets && before.is_some_and(|before| before.is_connected_like(entry)) {
            self.read_later(&backend);
            return Ok(());
        }
        let number = backend.replace();
        if !before.is_some_and(|before| before.may_stay_for(entry)) {
            backend.wait(number);
        }
        self.connect_backend(&backend, number, entry, None);
        Ok(())
    }

    /// Reads the lists of a backend in the background: it may offer names that another has.
    fn read_later(&self, backend: &Arc<Backend>) {
        let (backend, connected) = (backend.clone(), self.connected.clone());
        tokio::spawn(async move {
            read_lists(backend).await;
            connected.notify_one();
        });
    }

    fn connect_backend(
        &self,
        backend: &Arc<Backend>,
        number: u64,
        entry: BackendEntry<'_>,
        tried: Option<oneshot::Sender<()>>,
    ) {
        let target = match entry {
            BackendEntry::Target(target) => target,
            BackendEntry::Api(api, loaded) => return self.connect_api(backend, number, api, loaded),
        };
        backend.health.require(target.is_required());
        let starts = target.limits().starts("`max_programs` of the target").supervised_by(&self.supervisor);
        {
            let mut programs = lock(&self.programs);
            programs.retain(ProgramStarts::is_used);
            programs.push(starts.clone());
        }
        let opening = TargetOpening {
            backend: backend.clone(),
            number,
            target: target.clone(),
            limits: self.limits.clone(),
            starts,
            users: self.users,
            pages: self.pages.clone(),
            issuer: self.issuer.clone(),
            connected: self.connected.clone(),
            output: self.output.clone(),
        };
        tokio::spawn(opening.connect(tried));
    }

    /// Offers the tools of an API, whose document was read with the file.
    fn connect_api(&self, backend: &Arc<Backend>, number: u64, api: &ApiEntry, loaded: Option<&LoadedApi>) {
        let name = backend.name();
        let refuse = |reason: String| {
            self.output.note(format!("`{name}` cannot be used: {reason}"));
            backend.refuse(number, reason);
        };
        if self.users == GatewayUsers::Everybody
            && let Err(failure) = api.not_for_everybody(name)
        {
            return refuse(failure.message);
        }
        let Some(loaded) = loaded else { return refuse("its document is not read".to_owned()) };
        for note in loaded.notes() {
            self.output.note(format!("`{name}`: {note}"));
        }
        if let Some((entry, url)) = api.exchange() {
            let exchange = match entry.exchange(self.issuer.as_deref(), url) {
                Ok(exchange) => exchange,
                Err(failure) => return refuse(failure.message),
            };
            let tools = loaded.tools.clone();
            let open = move |tokens, _| ready(Ok(BackendProvider::Api(tools.for_caller(tokens))));
            let callers = CallerTargets::with_exchange(backend.offering(), exchange, open);
            return backend.connect_callers(number, callers);
        }
        let tools = BackendProvider::Api(loaded.tools.clone());
        backend.connect(number, Arc::new(OpenTarget::new(tools, backend.offering())));
        self.read_later(backend);
    }

    /// Disconnects from all targets, and waits until the programs have ended.
    pub(super) async fn close(&self) {
        self.backends().iter().for_each(|backend| backend.remove());
        let programs = std::mem::take(&mut *lock(&self.programs));
        ProgramStarts::none_left(programs).await;
        for (_, log) in self.gates.logs.get().all() {
            log.flush().await;
        }
    }

    /// Opens the files that are written again: they may have been renamed.
    pub(super) fn reopen_logs(&self) {
        self.gates.logs.get().all().for_each(|(_, log)| log.reopen());
    }

    /// Returns the pages beside the servers. Only administrators, and this machine, read the names of targets.
    pub(super) fn page(&self, path: &str, routes: &Routes, reader: &PageReader<'_>) -> Option<Page> {
        let sees_names =
            reader.is_local || reader.principal.is_some_and(|name| self.settings().admin.has(name));
        let text = |status, text: String| Page { status, content_type: "text/plain", text };
        Some(match path {
            "/health" => text(StatusCode::OK, "ok\n".to_owned()),
            "/ready" => {
                let (status, shown) = self.readiness(routes, sees_names);
                text(status, shown)
            }
            "/metrics" => {
                let form = MetricsForm::accepted(reader.accept);
                let page = text(StatusCode::OK, self.metrics(form, routes, sees_names));
                Page { content_type: form.content_type(), ..page }
            }
            _ => return None,
        })
    }

    fn readiness(&self, routes: &Routes, sees_names: bool) -> (StatusCode, String) {
        if routes.is_draining() {
            return (StatusCode::SERVICE_UNAVAILABLE, "it is ending\n".to_owned());
        }
        let store = self.gates.fleet.as_ref().and_then(GatewayFleet::outage);
        readiness(&self.backends(), store.as_deref(), sees_names)
    }

    fn metrics(&self, form: MetricsForm, routes: &Routes, sees_names: bool) -> String {
        let mut backends = self.backends();
        backends.retain(|backend| !backend.is_removed());
        let logs = self.gates.logs.get();
        let logs: Vec<_> = logs.all().collect();
        self.counters.metrics(
            form,
            &Measured {
                is_ready: self.readiness(routes, false).0 == StatusCode::OK,
                has_store: self.gates.fleet.as_ref().map(|fleet| fleet.outage().is_none()),
                sessions: routes.sessions(),
                programs: lock(&self.programs).iter().map(ProgramStarts::running).sum(),
                backends: &backends,
                sees_names,
                logs: &logs,
                lost_log_lines: self.output.lost_log_lines(),
            },
        )
    }
}

/// Opens the logs of a file, but for those that are open already.
pub(super) fn open_logs(
    file: &GatewayFile,
    known: Option<&OpenLogs>,
    metrics: &Arc<RequestMetrics>,
    output: &Output,
) -> Result<OpenLogs, Failure> {
    let (audit, access) = (file.audit.as_deref(), file.access_log.as_deref());
    let logs = OpenLogs::open(&LogPaths { audit, access }, known, metrics, output)?;
    Ok(if file.audit_required { logs.required() } else { logs })
}

fn base(name: &str, instructions: Option<&str>) -> Server {
    let server = Server::new(name, env!("CARGO_PKG_VERSION"));
    match instructions {
        Some(instructions) => server.instructions(instructions),
        None => server,
    }
}

fn wrong(error: &pintle::Error) -> Failure {
    Failure::usage(error.to_string(), "pintle gateway --help")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
