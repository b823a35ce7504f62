use std::{
    collections::{BTreeMap, HashMap},
    fmt::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::Instant;

use crate::server::{Cx, Principal, Scope, core::cx::caller_key::CallerKey};

/// The limit of results that are kept, and of those of one caller.
const MAX_RESULTS: usize = 10_000;
const MAX_CALLER_RESULTS: usize = 1_000;
/// The bytes of a kept result besides its content.
const OVERHEAD: usize = 512;
/// The beginning of the URIs of kept results.
const SCHEME: &str = "cut-result://";

/// A limit of the bytes of a tool's result: see [`Transform::max_result`](crate::server::Transform::max_result).
///
/// What exceeds it is kept in memory, and the result has a link to it: a resource that the caller may read for some minutes, and nobody
/// else. Callers that are not authenticated share one owner; the URI cannot be guessed. Nothing is left after a restart.
///
/// Cheap to clone. All clones keep their results together, so that one limit can be given to several providers.
///
/// ```
/// use std::time::Duration;
/// use pintle::server::ResultLimit;
///
/// let limit = ResultLimit::new(32 * 1024).lifetime(Duration::from_secs(300)).max_kept(4 << 20, 256 << 20);
/// ```
#[derive(Clone)]
pub struct ResultLimit {
    pub(super) bytes: usize,
    pub(super) lifetime: Duration,
    pub(super) caller_bytes: usize,
    total_bytes: usize,
    kept: Arc<Mutex<KeptResults>>,
}

#[derive(Default)]
struct KeptResults {
    /// The results by their number: the oldest first.
    results: BTreeMap<u64, KeptResult>,
    numbers: HashMap<Box<str>, u64>,
    accounts: HashMap<Account, KeptOfCaller>,
    bytes: usize,
    next: u64,
}

/// The caller that a result is counted for; `None` is the local user.
type Account = Option<CallerKey>;

/// The number of results of a caller, and their bytes.
#[derive(Clone, Copy, Default)]
struct KeptOfCaller {
    bytes: usize,
    results: usize,
}

struct KeptResult {
    uri: Box<str>,
    owner: ResultOwner,
    account: Account,
    /// The `contents` of the resource, as JSON.
    contents: Arc<str>,
    bytes: usize,
    expires: Instant,
}

/// The principal that may read a kept result.
#[derive(Debug, Eq, PartialEq)]
enum ResultOwner {
    Local,
    Anonymous,
    Named(Box<str>),
}

impl From<Principal<'_>> for ResultOwner {
    fn from(principal: Principal<'_>) -> Self {
        match principal {
            Principal::Local => Self::Local,
            Principal::Anonymous => Self::Anonymous,
            Principal::Named(name) => Self::Named(name.into()),
        }
    }
}

impl ResultLimit {
    /// Creates a limit of so many bytes of the content of a result. What exceeds it is kept for ten minutes: at most 16 MiB of one
    /// caller, and 128 MiB in all.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            lifetime: Duration::from_secs(600),
            caller_bytes: 16 << 20,
            total_bytes: 128 << 20,
            kept: Arc::default(),
        }
    }

    /// Sets how long a result is kept.
    #[must_use]
    pub fn lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime, ..self }
    }

    /// Sets how many bytes are kept for one caller, and for all. The oldest results of the caller who has the most are dropped for new
    /// ones.
    #[must_use]
    pub fn max_kept(self, of_caller: usize, of_all: usize) -> Self {
        Self { caller_bytes: of_caller, total_bytes: of_all.max(of_caller), ..self }
    }

    /// Keeps the contents of a result for its caller. `link` returns the contents for the URI that they get. Returns that URI, or
    /// `None` if they are too large.
    pub(super) fn keep(&self, cx: &Cx, contents: impl FnOnce(&str) -> Option<String>) -> Option<String> {
        let mut random = [0; 16];
        SystemRandom::new().fill(&mut random).ok()?;
        let mut uri = SCHEME.to_owned();
        for byte in random {
            let _ = write!(uri, "{byte:02x}");
        }
        let contents: Arc<str> = contents(&uri)?.into();
        let bytes = contents.len() + OVERHEAD;
        if bytes > self.caller_bytes {
            return None;
        }
        let result = KeptResult {
            uri: uri.as_str().into(),
            owner: cx.identity().into(),
            account: CallerKey::of(cx),
            contents,
            bytes,
            expires: Instant::now() + self.lifetime,
        };
        self.lock().insert(result, self.caller_bytes, self.total_bytes);
        Some(uri)
    }

    /// Returns the contents of a kept result, if this caller may read it.
    pub(super) fn get(&self, scope: &Scope<'_>, uri: &str) -> Option<Arc<str>> {
        if !uri.starts_with(SCHEME) {
            return None;
        }
        let mut kept = self.lock();
        kept.expire();
        let number = kept.numbers.get(uri)?;
        let result = kept.results.get(number)?;
        (result.owner == scope.identity().into()).then(|| result.contents.clone())
    }

    fn lock(&self) -> MutexGuard<'_, KeptResults> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptResults {
    fn insert(&mut self, result: KeptResult, caller_bytes: usize, total_bytes: usize) {
        self.expire();
        loop {
            let of_caller = self.accounts.get(&result.account).copied().unwrap_or_default();
            let is_full =
                of_caller.bytes + result.bytes > caller_bytes || of_caller.results >= MAX_CALLER_RESULTS;
            let largest = || {
                let all = self.accounts.iter();
                all.max_by_key(|(_, kept)| kept.bytes).map(|(account, _)| account.clone())
            };
            let dropped = match is_full {
                true => Some(result.account.clone()),
                false if self.bytes + result.bytes > total_bytes || self.results.len() >= MAX_RESULTS => {
                    largest()
                }
                false => break,
            };
            let Some(oldest) = dropped.and_then(|account| self.oldest(&account)) else { break };
            self.remove(oldest);
        }
        self.add(result);
    }

    fn add(&mut self, result: KeptResult) {
        self.next += 1;
        self.bytes += result.bytes;
        let account = self.accounts.entry(result.account.clone()).or_default();
        account.bytes += result.bytes;
        account.results += 1;
        self.numbers.insert(result.uri.clone(), self.next);
        self.results.insert(self.next, result);
    }

    fn oldest(&self, account: &Account) -> Option<u64> {
        self.results.iter().find(|(_, result)| result.account == *account).map(|(number, _)| *number)
    }

    /// Removes what has expired. Clones of a limit may have different lifetimes, so each is looked at.
    fn expire(&mut self) {
        let now = Instant::now();
        let expired: Vec<u64> = self
            .results
            .iter()
            .filter(|(_, result)| result.expires <= now)
            .map(|(number, _)| *number)
            .collect();
        expired.into_iter().for_each(|number| self.remove(number));
    }

    fn remove(&mut self, number: u64) {
        let Some(result) = self.results.remove(&number) else { return };
        self.numbers.remove(&result.uri);
        self.bytes -= result.bytes;
        if let Some(account) = self.accounts.get_mut(&result.account) {
            account.bytes -= result.bytes;
            account.results -= 1;
            if account.results == 0 {
                self.accounts.remove(&result.account);
            }
        }
    }
}

impl fmt::Debug for ResultLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.lock();
        f.debug_struct("ResultLimit")
            .field("bytes", &self.bytes)
            .field("kept", &kept.results.len())
            .field("kept_bytes", &kept.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(caller: &str, number: usize, bytes: usize) -> KeptResult {
        KeptResult {
            uri: format!("{SCHEME}{caller}{number}").into(),
            owner: ResultOwner::Named(caller.into()),
            account: Some(CallerKey::named(caller)),
            contents: "".into(),
            bytes,
            expires: Instant::now() + Duration::from_secs(10),
        }
    }

    fn numbers(kept: &KeptResults) -> Vec<&str> {
        kept.results.values().filter_map(|result| result.uri.strip_prefix(SCHEME)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn callers_pay_for_what_they_keep() {
        let mut kept = KeptResults::default();
        kept.insert(result("ann", 1, 30), 100, 150);
        for number in 1..=4 {
            kept.insert(result("bob", number, 40), 100, 150);
        }
        assert_eq!(numbers(&kept), ["ann1", "bob3", "bob4"], "his own oldest go first");
        kept.insert(result("eve", 1, 30), 100, 150);
        kept.insert(result("eve", 2, 30), 100, 150);
        assert_eq!(numbers(&kept), ["ann1", "bob4", "eve1", "eve2"], "then those of him who has the most");
        assert_eq!((kept.bytes, kept.accounts.len()), (130, 3));
        tokio::time::advance(Duration::from_secs(10)).await;
        kept.expire();
        assert_eq!((kept.bytes, kept.results.len(), kept.numbers.len(), kept.accounts.len()), (0, 0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn results_are_bounded_in_number_too() {
        let mut kept = KeptResults::default();
        for number in 0..MAX_CALLER_RESULTS + 5 {
            kept.insert(result("bob", number, 1), usize::MAX / 4, usize::MAX / 2);
        }
        assert_eq!(kept.results.len(), MAX_CALLER_RESULTS);
        assert_eq!(kept.bytes, MAX_CALLER_RESULTS);
        for number in 0..MAX_RESULTS - MAX_CALLER_RESULTS {
            kept.add(result(&format!("caller{}", number / 500), number, 1));
        }
        kept.insert(result("one more", 0, 1), usize::MAX / 4, usize::MAX / 2);
        assert_eq!((kept.results.len(), kept.numbers.len()), (MAX_RESULTS, MAX_RESULTS));
    }
}
