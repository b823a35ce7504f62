use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Extensions;
use pintle::server::{Cx, Principal, Scope};
use pintle_oauth::{
    client::{BearerTokens, Secret, TokenExchange},
    server::CallerToken,
};
use ring::digest::{SHA256, digest};
use tokio::{sync::OnceCell, time::Instant};

use super::{ConnectedTarget, Offering, OpenTarget};
use crate::{
    failure::Failure,
    verbs::gateway::{
        api::BackendProvider,
        login::{PrincipalLogin, PrincipalLogins, elicitation_id},
    },
};

/// The limit of callers for which a target is connected. Those that were not used for the longest time are disconnected.
const MAX_CALLERS: usize = 1_000;
/// The time after which a connection that nobody has used is closed, when another one is opened.
const IDLE: Duration = Duration::from_secs(900);

/// Opens a target for a caller.
type OpenForCaller =
    dyn Fn(Caller) -> Pin<Box<dyn Future<Output = Result<BackendProvider, Failure>> + Send>> + Send + Sync;

/// A caller that a target is connected for.
#[derive(Clone, Debug)]
pub(in crate::verbs::gateway) enum Caller {
    /// A token of a client, which is exchanged, and whose it is.
    Token { token: Secret, principal: String },
    /// A principal, by its name, which logs in for itself.
    Principal(String),
}

/// Why a target cannot be used by a caller.
#[derive(Debug)]
pub(super) struct CallerError {
    pub(super) message: String,
    /// The link to the page on which the caller has to log in first.
    pub(super) link: Option<String>,
}

/// A target that is connected for each caller, because each has other rights there.
pub(in crate::verbs::gateway) struct CallerTargets {
    offering: Arc<Offering>,
    open: Box<OpenForCaller>,
    /// The logins of principals, if those are the callers; otherwise tokens are.
    logins: Option<Arc<PrincipalLogins>>,
    /// By the hash of the token or the name.
    callers: Mutex<HashMap<[u8; 32], CallerSlot>>,
}

struct CallerSlot {
    target: Arc<OnceCell<OpenTarget>>,
    used: Instant,
}

impl CallerTargets {
    /// Creates a target that is offered like this. `open` connects to it for a principal, if there are logins, or for a token.
    pub(in crate::verbs::gateway) fn new<F>(
        offering: Arc<Offering>,
        logins: Option<Arc<PrincipalLogins>>,
        open: impl Fn(Caller) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<BackendProvider, Failure>> + Send + 'static,
    {
        Self {
            offering,
            open: Box::new(move |caller| Box::pin(open(caller))),
            logins,
            callers: Mutex::default(),
        }
    }

    /// Creates a target that `open` connects to with the tokens that the one of a caller is exchanged for, and the name of its principal.
    pub(in crate::verbs::gateway) fn with_exchange<F>(
        offering: Arc<Offering>,
        exchange: TokenExchange,
        open: impl Fn(BearerTokens, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<BackendProvider, Failure>> + Send + 'static,
    {
        Self::new(offering, None, move |caller| {
            let opened = match caller {
                Caller::Token { token, principal } => {
                    Ok(open(BearerTokens::of_caller(exchange.clone(), token), principal))
                }
                Caller::Principal(_) => Err(Failure::internal(&"a token is exchanged")),
            };
            async move { opened?.await }
        })
    }

    /// Returns the target for the caller of a request, and connects to it if that was not done before.
    ///
    /// # Errors
    ///
    /// The request has no token or no principal, its principal has to log in first, or the target cannot be connected.
    pub(super) async fn connected(&self, cx: &Cx) -> Result<Arc<ConnectedTarget>, CallerError> {
        let caller = self.caller(cx.identity(), cx.extensions());
        let caller = caller.map_err(|message| CallerError { message: message.to_owned(), link: None })?;
        self.opened_for(&caller).await.inspect_err(|error| {
            if let (Some(login), Some(link), Some(session)) = (self.login(&caller), &error.link, cx.session())
                && cx.can_elicit_url()
            {
                login.notify_later(session, elicitation_id(link));
            }
        })
    }

    async fn opened_for(&self, caller: &Caller) -> Result<Arc<ConnectedTarget>, CallerError> {
        let (cell, login) = (self.slot(caller.key()), self.login(caller));
        let open = || {
            cell.get_or_try_init(|| async {
                let provider = (self.open)(caller.clone()).await?;
                Ok::<_, Failure>(OpenTarget::new(provider, self.offering.clone()))
            })
        };
        let links = login.as_ref().map(PrincipalLogin::links);
        let link = || links.as_ref().and_then(|links| links.borrow().clone());
        let has_changed = || links.as_ref().is_some_and(|links| links.has_changed().unwrap_or(false));
        let opened = match open().await {
            // The login that it has failed for has ended: what its principal should do is done.
            Err(_) if has_changed() && link().is_none() => open().await,
            opened => opened,
        };
        opened
            .map(OpenTarget::current)
            .map_err(|failure| CallerError { message: failure.message, link: link() })
    }

    /// Returns the target for the caller of a request, if it is connected.
    pub(super) fn known(&self, scope: &Scope<'_>) -> Option<Arc<ConnectedTarget>> {
        let caller = self.caller(scope.identity(), scope.extensions).ok()?;
        let target = self.callers().get(&caller.key())?.target.clone();
        target.get().map(OpenTarget::current)
    }

    /// Returns the link to the page on which the caller of a request has to log in first.
    pub(super) fn link(&self, identity: Principal<'_>, extensions: &Extensions) -> Option<String> {
        self.login(&self.caller(identity, extensions).ok()?)?.link()
    }

    fn login(&self, caller: &Caller) -> Option<PrincipalLogin> {
        let (Some(logins), Caller::Principal(name)) = (&self.logins, caller) else { return None };
        logins.of(name).ok()
    }

    fn caller(&self, identity: Principal<'_>, extensions: &Extensions) -> Result<Caller, &'static str> {
        match (&self.logins, identity) {
            (Some(_), Principal::Named(name)) => Ok(Caller::Principal(name.to_owned())),
            (Some(_), Principal::Local | Principal::Anonymous) => Err(
                "it is for clients with names, which log in with their own accounts: start the gateway with `--bearer-env` or `[auth]`",
            ),
            (None, identity) => match (identity, extensions.get::<CallerToken>()) {
                (Principal::Named(name), Some(token)) => {
                    Ok(Caller::Token { token: token.secret().clone(), principal: name.to_owned() })
                }
                _ => Err("it needs a bearer token of the authorization server of the gateway"),
            },
        }
    }

    /// Returns the targets of all callers.
    pub(super) fn all(&self) -> Vec<Arc<ConnectedTarget>> {
        let targets: Vec<_> = self.callers().values().map(|slot| slot.target.clone()).collect();
        targets.iter().filter_map(|target| target.get().map(OpenTarget::current)).collect()
    }

    fn slot(&self, key: [u8; 32]) -> Arc<OnceCell<OpenTarget>> {
        let mut callers = self.callers();
        if !callers.contains_key(&key) {
            callers.retain(|_, slot| slot.used.elapsed() < IDLE);
            if callers.len() >= MAX_CALLERS {
                let oldest = callers.iter().min_by_key(|(_, slot)| slot.used).map(|(key, _)| *key);
                oldest.map(|oldest| callers.remove(&oldest));
            }
        }
        let slot =
            callers.entry(key).or_insert_with(|| CallerSlot { target: Arc::default(), used: Instant::now() });
        slot.used = Instant::now();
        slot.target.clone()
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<[u8; 32], CallerSlot>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller {
    fn key(&self) -> [u8; 32] {
        let text = match self {
            Self::Token { token, .. } => format!("token {}", token.reveal()),
            Self::Principal(name) => format!("principal {name}"),
        };
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        key
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{
        output::Output,
        verbs::gateway::{backend::TargetOffer, target::TargetEntry},
    };

    fn targets() -> CallerTargets {
        let offer = TargetOffer::of_target("notes", &TargetEntry::default(), &Output::kept().0);
        let offering = Arc::new(Offering::new(offer));
        CallerTargets::new(offering, None, |_| std::future::pending())
    }

    #[tokio::test]
    async fn a_login_that_ends_while_its_principal_is_told_of_it_is_no_reason() {
        let logins = Arc::new(PrincipalLogins::for_test());
        let (ann, begun) = (logins.of("ann").unwrap(), Arc::new(AtomicUsize::new(0)));
        let (of_ann, count) = (ann.clone(), begun.clone());
        let open = move |_| {
            let failed = match count.fetch_add(1, Ordering::SeqCst) {
                0 => {
                    of_ann.set_link(None);
                    "log in"
                }
                _ => "the port is closed",
            };
            std::future::ready(Err(Failure::internal(&failed)))
        };
        let targets = CallerTargets {
            logins: Some(logins),
            open: Box::new(move |caller| Box::pin(open(caller))),
            ..targets()
        };
        for (link, expected) in [(Some("https://login.example"), 2), (None, 3)] {
            ann.set_link(link.map(str::to_owned));
            let error = targets.opened_for(&Caller::Principal("ann".to_owned())).await.err().unwrap();
            assert!(error.message.contains("the port is closed") && error.link.is_none(), "{error:?}");
            assert_eq!(begun.load(Ordering::SeqCst), expected);
        }
    }

    fn key(number: usize) -> [u8; 32] {
        Caller::Principal(number.to_string()).key()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_nobody_has_used_for_a_while_is_closed() {
        let targets = targets();
        targets.slot(key(1));
        tokio::time::advance(IDLE / 2).await;
        targets.slot(key(2));
        tokio::time::advance(IDLE / 2).await;
        targets.slot(key(3));
        let callers = targets.callers();
        assert_eq!([1, 2, 3].map(|number| callers.contains_key(&key(number))), [false, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn for_one_caller_more_the_one_that_was_not_used_for_the_longest_time_is_disconnected() {
        let targets = targets();
        for number in 0..MAX_CALLERS {
            targets.slot(key(number));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        targets.slot(key(0));
        targets.slot(key(MAX_CALLERS));
        let callers = targets.callers();
        assert_eq!(callers.len(), MAX_CALLERS);
        assert!(callers.contains_key(&key(0)) && !callers.contains_key(&key(1)));
    }
}
