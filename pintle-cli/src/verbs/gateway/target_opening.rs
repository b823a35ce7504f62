use std::{sync::Arc, time::Duration};

use pintle::{
    client::http::Auth,
    proto::Limits,
    server::{Mount, Transform},
};
use pintle_relay::Relay;
use tokio::sync::{Notify, oneshot};

use super::{
    api::BackendProvider,
    backend::{Backend, ConnectedTarget},
    caller_targets::{Caller, CallerTargets},
    login::{LoginClientEntry, LoginPages, LoginTarget, PrincipalLogin, PrincipalLogins},
    names::HostNames,
    running::GatewayUsers,
    target::TargetEntry,
    whole_list::read_lists,
};
use crate::{
    auth::BackgroundLogin,
    failure::{Exit, Failure},
    output::Output,
    targets::ProgramStarts,
};

/// The longest time between two attempts to connect to a target.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// A target of a backend that is being connected.
pub(super) struct TargetOpening {
    pub(super) backend: Arc<Backend>,
    pub(super) number: u64,
    pub(super) target: TargetEntry,
    pub(super) limits: Limits,
    pub(super) starts: ProgramStarts,
    pub(super) users: GatewayUsers,
    pub(super) pages: Option<Arc<LoginPages>>,
    /// The issuer of the tokens of clients.
    pub(super) issuer: Option<String>,
    /// Notified when the target is connected.
    pub(super) connected: Arc<Notify>,
    pub(super) output: Output,
}

impl TargetOpening {
    /// Connects to the target, again and again until it succeeds or is replaced.
    pub(super) async fn connect(self, mut tried: Option<oneshot::Sender<()>>) {
        if self.target.exchange().is_some() {
            return self.connect_tokens();
        }
        if self.target.login_of_each().is_some() {
            return self.connect_principals();
        }
        let (mut delay, mut login) = (Duration::from_secs(1), None);
        while self.backend.has_target(self.number) {
            match self.open(&mut login).await {
                Ok(connected) => {
                    self.backend.connect(self.number, connected);
                    read_lists(self.backend.clone()).await;
                    return self.connected.notify_one();
                }
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
        if *users == GatewayUsers::Everybody {
            target.not_for_everybody(self.backend.name())?;
        }
        let endpoint = target.endpoint()?;
        let resolved = endpoint.resolved(output).await?;
        if target.has_login() && !matches!(users, GatewayUsers::Local | GatewayUsers::Machine) {
            let message = "`login` is for a gateway of one user, on standard streams or on this machine without tokens: clients would \
                           share the rights of whoever logs in";
            return Err(Failure::usage(message, "pintle gateway --help"));
        }
        if target.has_login() && login.is_none() {
            *login = endpoint.background_login(&resolved, false, output)?;
        }
        let client = endpoint.client(output).limits(self.limits.clone());
        let (kept, starts) = (resolved.clone(), starts.clone());
        let relay = endpoint.relay(resolved, client, login.clone(), starts, output).await;
        // What the user has to do is the reason.
        let relay = relay.map_err(|failure| match login.as_ref().and_then(BackgroundLogin::waiting) {
            Some(waiting) => Failure { message: waiting, ..failure },
            None => failure,
        })?;
        let relay = if *users == GatewayUsers::Machine { relay.share_anonymous() } else { relay };
        Ok(self.offered(target.limits().limited_connections(&kept, relay)))
    }

    /// Has the target connected for each token of a client, when it is used.
    fn connect_tokens(self) {
        let Some((entry, url)) = self.target.exchange() else { return };
        let exchange = match entry.exchange(self.issuer.as_deref(), url) {
            Ok(exchange) => exchange,
            Err(failure) => return self.backend.fail(self.number, failure.message),
        };
        let (backend, number, opening) = (self.backend.clone(), self.number, Arc::new(self));
        let prefix = opening.target.prefix_text(backend.name()).to_owned();
        let open = move |tokens, principal| {
            let opening = opening.clone();
            async move { opening.open_for_caller(tokens, principal).await }
        };
        backend.connect_callers(number, CallerTargets::with_exchange(&prefix, exchange, open));
    }

    /// Has the target connected for each principal, when it has logged in.
    fn connect_principals(self) {
        let logins = match self.login_target() {
            Ok(target) => Arc::new(PrincipalLogins::new(target)),
            Err(failure) => {
                let name = self.backend.name();
                self.output.note(format!("`{name}` cannot be connected: {}", failure.message));
                return self.backend.fail(self.number, failure.message);
            }
        };
        let (backend, number, opening) = (self.backend.clone(), self.number, Arc::new(self));
        let prefix = opening.target.prefix_text(backend.name()).to_owned();
        let (mut changed, of_callers) = (logins.changed(), logins.clone());
        let open = move |caller| {
            let (opening, logins) = (opening.clone(), logins.clone());
            async move {
                match caller {
                    Caller::Principal(name) => opening.open_for_principal(logins.of(&name)?, name).await,
                    Caller::Token { .. } => Err(Failure::internal(&"a principal logs in")),
                }
            }
        };
        backend.connect_callers(number, CallerTargets::new(&prefix, Some(of_callers), open));
        // It ends with the logins.
        tokio::spawn(async move {
            while changed.changed().await.is_ok() && backend.has_target(number) {
                backend.notify();
            }
        });
    }

    fn login_target(&self) -> Result<LoginTarget, Failure> {
        let wrong = |message: &str| Failure::usage(message, "pintle gateway --help");
        let (url, client) = self.target.login_of_each().ok_or_else(|| wrong("nobody logs in"))?;
        let pages = self.pages.clone().ok_or_else(|| {
            wrong("`login = \"each\"` needs pages that principals can open: use `--http`, and write `url = \"https://…\"`, with which they reach the gateway")
        })?;
        Ok(LoginTarget {
            pages,
            name: self.backend.name().to_owned(),
            server: url.to_owned(),
            reach: self.target.reach(),
            issuer: self.issuer.clone(),
            client: client.map(LoginClientEntry::registered).transpose()?,
        })
    }

    async fn open_for_principal(
        &self,
        login: PrincipalLogin,
        name: String,
    ) -> Result<ConnectedTarget, Failure> {
        let waiting = || login.link().map(|link| wrong_login(login.describe(&link)));
        if let Some(waiting) = waiting() {
            return Err(waiting);
        }
        // What the principal has to do is the reason.
        self.open_for_caller(login.clone(), name).await.map_err(|failure| waiting().unwrap_or(failure))
    }

    /// Connects to the target with what a principal has there, of which no other is notified.
    async fn open_for_caller(
        &self,
        auth: impl Auth + Clone,
        principal: String,
    ) -> Result<ConnectedTarget, Failure> {
        let endpoint = self.target.endpoint()?;
        let resolved = endpoint.resolved(&self.output).await?;
        let client = endpoint.client(&self.output).limits(self.limits.clone());
        let kept = resolved.clone();
        let relay = endpoint.relay(resolved, client, Some(auth), self.starts.clone(), &self.output).await?;
        let relay = self.target.limits().limited_connections(&kept, relay);
        Ok(self.offered(relay.for_principal(principal)))
    }

    /// Returns what clients see of the target.
    fn offered(&self, relay: Relay) -> ConnectedTarget {
        let Self { backend, target, output, .. } = self;
        let relay = target.transform(BackendProvider::Relay(relay));
        host_names(Mount::new(target.prefix(backend.name()), relay), output)
    }
}

/// Gives tools and prompts names that every host accepts, and notes those that have others.
pub(super) fn host_names(mounted: Mount<Transform<BackendProvider>>, output: &Output) -> ConnectedTarget {
    let output = output.clone();
    HostNames::new(mounted, move |name, offered| {
        output
            .note(format!("`{}` is offered as `{offered}`, because some hosts refuse the name", shown(name)));
    })
}

/// Returns the beginning of a name, which may be of any length.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(100).collect()
}

fn wrong_login(message: String) -> Failure {
    Failure::new(Exit::Server, message, "pintle gateway --help")
}
