use std::{sync::Arc, time::Duration};

use pintle::{client::http::Auth, proto::Limits};
use pintle_relay::Relay;
use tokio::sync::{Notify, oneshot};

use super::{
    api::BackendProvider,
    backend::{Backend, Caller, CallerTargets, OpenTarget},
    login::{LoginClientEntry, LoginPages, LoginTarget, PrincipalLogin, PrincipalLogins},
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
    /// Connects to the target, again and again until it succeeds or is replaced. What is offered before stays until then.
    pub(super) async fn connect(self, mut tried: Option<oneshot::Sender<()>>) {
        if let Err(failure) = self.allowed() {
            return self.refuse(failure);
        }
        if self.target.exchange().is_some() {
            return self.connect_tokens();
        }
        if self.target.login_of_each().is_some() {
            return self.connect_principals();
        }
        let (mut delay, mut login, mut reported) = (Duration::from_secs(1), None, None);
        while self.backend.has_target(self.number) {
            match self.open(&mut login).await {
                Ok(relay) => {
                    let kept = relay.clone();
                    self.switch_to(relay).await;
                    drop((tried.take(), login));
                    return self.watch(kept).await;
                }
                Err(failure) if reported.as_ref() == Some(&failure.message) => {}
                Err(failure) => {
                    let (name, mut next) = (self.backend.name(), "");
                    if self.backend.is_up() {
                        next = "; it is served as before until it can be";
                    }
                    self.output.note(format!("`{name}` cannot be connected: {}{next}", failure.message));
                    self.backend.fail(self.number, failure.message.clone());
                    reported = Some(failure.message);
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

    /// Watches whether the connected target answers, until it is replaced. It keeps no program running that nobody uses.
    async fn watch(self, relay: Relay) {
        let Self { backend, number, target, output, .. } = self;
        let probe = || async {
            let answered = match target.has_url() {
                true => relay.probe().await,
                false => relay.probe_open().await,
            };
            answered.map_err(|error| error.message.to_string())
        };
        let is_current = || backend.has_target(number);
        backend.health.watch(backend.name(), is_current, probe, &output).await;
    }

    /// Refuses a target that the users of this gateway must not use, however often it is tried.
    fn allowed(&self) -> Result<(), Failure> {
        if self.users == GatewayUsers::Everybody {
            self.target.not_for_everybody(self.backend.name())?;
        }
        if self.target.has_login() && !matches!(self.users, GatewayUsers::Local | GatewayUsers::Machine) {
            let message = "`login` is for a gateway of one user, on standard streams or on this machine without tokens: clients would \
                           share the rights of whoever logs in";
            return Err(Failure::usage(message, "pintle gateway --help"));
        }
        Ok(())
    }

    /// Offers nothing of the target, nor of the one before: the file says that others are to use it, or in another way.
    fn refuse(&self, failure: Failure) {
        let name = self.backend.name();
        self.output.note(format!("`{name}` cannot be connected: {}", failure.message));
        self.backend.refuse(self.number, failure.message);
    }

    /// Offers what is connected. If something else is offered until then, the lists are read first.
    async fn switch_to(&self, relay: Relay) {
        let target = OpenTarget::new(BackendProvider::Relay(relay), self.backend.offering());
        let (target, replaces) = (Arc::new(target), self.backend.is_up());
        if !replaces {
            self.backend.connect(self.number, target.clone());
        }
        read_lists(target.current()).await;
        if replaces {
            self.backend.connect(self.number, target);
        }
        self.output.note(format!("`{}` is connected", self.backend.name()));
        self.connected.notify_one();
    }

    async fn open(&self, login: &mut Option<BackgroundLogin>) -> Result<Relay, Failure> {
        let Self { target, starts, users, output, .. } = self;
        let endpoint = target.endpoint()?;
        let resolved = endpoint.resolved(output).await?;
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
        Ok(target.limits().limited_connections(&kept, relay))
    }

    /// Has the target connected for each token of a client, when it is used.
    fn connect_tokens(self) {
        let Some((entry, url)) = self.target.exchange() else { return };
        let exchange = match entry.exchange(self.issuer.as_deref(), url) {
            Ok(exchange) => exchange,
            Err(failure) => return self.refuse(failure),
        };
        let (backend, number, opening) = (self.backend.clone(), self.number, Arc::new(self));
        let open = move |tokens, principal| {
            let opening = opening.clone();
            async move { opening.open_for_caller(tokens, principal).await }
        };
        let callers = CallerTargets::with_exchange(backend.offering(), exchange, open);
        backend.connect_callers(number, callers);
    }

    /// Has the target connected for each principal, when it has logged in.
    fn connect_principals(self) {
        let logins = match self.login_target() {
            Ok(target) => Arc::new(PrincipalLogins::new(target)),
            Err(failure) => return self.refuse(failure),
        };
        let (backend, number, opening) = (self.backend.clone(), self.number, Arc::new(self));
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
        backend.connect_callers(number, CallerTargets::new(backend.offering(), Some(of_callers), open));
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
    ) -> Result<BackendProvider, Failure> {
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
    ) -> Result<BackendProvider, Failure> {
        let endpoint = self.target.endpoint()?;
        let resolved = endpoint.resolved(&self.output).await?;
        let client = endpoint.client(&self.output).limits(self.limits.clone());
        let kept = resolved.clone();
        let relay = endpoint.relay(resolved, client, Some(auth), self.starts.clone(), &self.output).await?;
        let relay = self.target.limits().limited_connections(&kept, relay);
        Ok(BackendProvider::Relay(relay.for_principal(principal)))
    }
}

fn wrong_login(message: String) -> Failure {
    Failure::new(Exit::Server, message, "pintle gateway --help")
}
