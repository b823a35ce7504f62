use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_types::{RawObject, RpcError};

use super::canonical::canonical;

/// Encrypts and authenticates the state that a client carries between two rounds of a call.
///
/// This crate decides what a state is bound to and when it expires; an implementation provides a cipher (an AEAD), its
/// keys and its nonces. Keys form a ring: the first seals, all of them open.
pub trait Seal: fmt::Debug + Send + Sync {
    /// Returns the key that [`seal`](Self::seal) will use.
    fn key(&self) -> KeyId;

    /// Encrypts `plain` under `key`, and authenticates `bound` with it.
    ///
    /// # Errors
    ///
    /// The key is unknown, or no nonce could be generated. The call then ends with an error, and asks nothing.
    fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError>;

    /// Returns whether this key is in the ring. A state under another key is refused before its call is serialized for
    /// authentication, so that a forged one costs little.
    ///
    /// The default implementation returns `true`, and [`open`](Self::open) decides.
    fn knows(&self, key: KeyId) -> bool {
        let _ = key;
        true
    }

    /// Decrypts the output of [`seal`](Self::seal). Returns `None` if the key is unknown, or if the output or `bound`
    /// was modified.
    fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>>;
}

/// The error for a state that could not be sealed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SealError(Box<str>);

impl SealError {
    /// Creates the error, with a reason for the server's log.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into().into())
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the state of the call could not be sealed: {}", self.0)
    }
}

impl std::error::Error for SealError {}

/// The id of the key that sealed a state. It is stored in clear text in the state, and authenticated.
#[expect(clippy::exhaustive_structs, reason = "eight bytes with a name")]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct KeyId(pub [u8; 8]);

/// The context that a state is bound to: a call, a principal and a service.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) service: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: &'a RawObject,
    pub(crate) principal: Option<&'a str>,
}

/// A state that was opened.
#[derive(Debug)]
pub(crate) struct OpenedState {
    pub(crate) plain: Vec<u8>,
    /// The expiry, in milliseconds of the Unix epoch.
    pub(crate) expires: u64,
}

impl Binding<'_> {
    /// Seals `plain` into a `requestState` that can be opened until `expires` (milliseconds of the Unix epoch).
    pub(crate) fn seal(&self, seal: &dyn Seal, plain: &[u8], expires: u64) -> Result<String, SealError> {
        let mut token = Vec::with_capacity(HEAD + plain.len() + 48);
        token.push(VERSION);
        token.extend_from_slice(&seal.key().0);
        token.extend_from_slice(&expires.to_be_bytes());
        let sealed = seal.seal(seal.key(), &self.bound(&token), plain)?;
        token.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens a `requestState`. One error covers all failures but expiry.
    ///
    /// A more specific error would only help to forge states.
    pub(crate) fn open(
        &self,
        seal: &dyn Seal,
        state: &str,
        limit: usize,
        now: u64,
    ) -> Result<OpenedState, RpcError> {
        if state.len() > limit {
            return Err(RpcError::invalid_params(format!(
                "`requestState` has {} bytes, and the limit is {limit}: send back the one you received",
                state.len()
            )));
        }
        let foreign = || {
            RpcError::invalid_params(
                "`requestState` is not one of this server's for this call: start the call again",
            )
        };
        let token = URL_SAFE_NO_PAD.decode(state).map_err(|_| foreign())?;
        let (head, sealed) = token.split_at_checked(HEAD).ok_or_else(foreign)?;
        let (Some((&VERSION, rest)), true) = (head.split_first(), sealed.len() >= TAG) else {
            return Err(foreign());
        };
        let (key, expires) = rest.split_at(8);
        let key = KeyId(key.try_into().map_err(|_| foreign())?);
        let expires = u64::from_be_bytes(expires.try_into().map_err(|_| foreign())?);
        // The cheap checks come first: opening a state serializes all params.
        if !seal.knows(key) {
            return Err(foreign());
        }
        if now >= expires {
            return Err(RpcError::invalid_params("`requestState` has expired: start the call again"));
        }
        let plain = seal.open(key, &self.bound(head), sealed).ok_or_else(foreign)?;
        Ok(OpenedState { plain, expires })
    }

    /// Returns the bytes that are authenticated with a state. Each part is prefixed with its length, so that different
    /// bindings have different bytes.
    fn bound(&self, head: &[u8]) -> Vec<u8> {
        let mut bound = Vec::with_capacity(128);
        let mut part = |bytes: &[u8]| {
            bound.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            bound.extend_from_slice(bytes);
        };
        part(b"pintle state");
        part(head);
        part(self.service.as_bytes());
        part(self.method.as_bytes());
        part(if self.principal.is_some() { b"principal" } else { b"nobody" });
        part(self.principal.unwrap_or_default().as_bytes());
        // The params themselves rather than a digest: the cipher digests them, and this crate has no hash function.
        part(salient(self.params).as_bytes());
        bound
    }
}

/// Returns the params that identify a call, in canonical JSON.
fn salient(params: &RawObject) -> String {
    let mut out = String::new();
    canonical(params.without(&["_meta", "inputResponses", "requestState"]).as_str(), &mut out);
    out
}

const VERSION: u8 = 1;
/// The length of version, key id and expiry.
const HEAD: usize = 1 + 8 + 8;
/// The length of the tag: no sealed text is shorter.
const TAG: usize = 16;

/// A cipher for tests: it hides nothing and detects every change. It lives here so that other tests can use it.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[derive(Clone, Debug)]
    pub(crate) struct Clear(pub(crate) u8);

    fn sum(key: KeyId, bound: &[u8], plain: &[u8]) -> [u8; 16] {
        let mut sum = 0xcbf2_9ce4_8422_2325_u128;
        for byte in key.0.iter().chain(bound).chain(&[0]).chain(plain) {
            sum = (sum ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
        sum.to_be_bytes()
    }

    impl Seal for Clear {
        fn key(&self) -> KeyId {
            KeyId([self.0; 8])
        }
        fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
            Ok([plain, &sum(key, bound, plain)].concat())
        }
        fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
            let (plain, tag) = sealed.split_at_checked(sealed.len().checked_sub(16)?)?;
            (key == self.key() && tag == sum(key, bound, plain)).then(|| plain.to_vec())
        }
    }

    fn params(text: &str) -> RawObject {
        text.parse().unwrap()
    }

    #[test]
    fn a_state_opens_for_its_own_call_however_it_is_printed() {
        let (first, again) = (
            params(r#"{"name":"book","arguments":{"a":1,"b":2},"_meta":{"x":1}}"#),
            params(
                r#"{ "inputResponses":{}, "arguments": { "b": 2, "a": 1 }, "name":"book", "requestState":"…"}"#,
            ),
        );
        let bind = |params| Binding { service: "s", method: "tools/call", params, principal: Some("ann") };
        let state = bind(&first).seal(&Clear(1), b"secret", 1000).unwrap();
        assert_eq!(bind(&again).open(&Clear(1), &state, 4096, 999).unwrap().plain, b"secret");
    }

    /// A ring with the key of `Clear(1)` that counts what it is given to open.
    #[derive(Debug, Default)]
    struct Counting(std::sync::atomic::AtomicUsize);

    impl Seal for Counting {
        fn key(&self) -> KeyId {
            Clear(1).key()
        }
        fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
            Clear(1).seal(key, bound, plain)
        }
        fn knows(&self, key: KeyId) -> bool {
            key == self.key()
        }
        fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Clear(1).open(key, bound, sealed)
        }
    }

    #[test]
    fn a_state_of_another_key_or_time_is_refused_before_its_call_is_printed() {
        let call = params(r#"{"name":"book","arguments":{"a":1}}"#);
        let binding = Binding { service: "s", method: "tools/call", params: &call, principal: None };
        let (ring, opened) =
            (Counting::default(), |ring: &Counting| ring.0.load(std::sync::atomic::Ordering::Relaxed));
        let ours = binding.seal(&ring, b"secret", 1000).unwrap();
        let made_up = binding.seal(&Clear(2), b"secret", 1000).unwrap();
        binding.open(&ring, &made_up, 4096, 0).unwrap_err();
        binding.open(&ring, &ours, 4096, 1000).unwrap_err();
        assert_eq!(opened(&ring), 0);
        assert_eq!(binding.open(&ring, &ours, 4096, 0).unwrap().plain, b"secret");
        assert_eq!(opened(&ring), 1);
    }

    #[test]
    fn calls_that_differ_bind_differently_however_little() {
        let printed = |arguments: &str| salient(&params(&format!(r#"{{"arguments":{arguments}}}"#)));
        for (one, other) in [
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("0.1", "0.10000000000000001"),
            (r#"{"$serde_json::private::RawValue":"[1,2]"}"#, "[1,2]"),
            ("[1,[2]]", "[[1],2]"),
            ("{}", "[]"),
            (r#""1""#, "1"),
        ] {
            assert_ne!(printed(one), printed(other), "{one}");
        }
        for (one, other) in [
            (r#"{"b":[ 1 , {"y":0,"x":"\u0061"} ],"a":null}"#, r#"{"a":null,"b":[1,{"x":"a","y":0}]}"#),
            ("{ }", "{}"),
        ] {
            assert_eq!(printed(one), printed(other));
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(printed(&deep).len() > 200_000);
    }

    #[test]
    fn a_state_is_good_for_nothing_else() {
        let call = params(r#"{"name":"book","arguments":{"a":1}}"#);
        let other = params(r#"{"name":"book","arguments":{"a":2}}"#);
        let binding =
            || Binding { service: "s", method: "tools/call", params: &call, principal: Some("ann") };
        let state = binding().seal(&Clear(1), b"secret", 1000).unwrap();
        let refusal = |binding: Binding<'_>, seal: &dyn Seal, state: &str, now| {
            let error = binding.open(seal, state, 4096, now).unwrap_err();
            assert_eq!(error.code.0, -32602);
            error.message.into_owned()
        };
        let foreign = "`requestState` is not one of this server's for this call: start the call again";
        assert_eq!(refusal(Binding { service: "t", ..binding() }, &Clear(1), &state, 0), foreign);
        assert_eq!(refusal(Binding { method: "prompts/get", ..binding() }, &Clear(1), &state, 0), foreign);
        assert_eq!(refusal(Binding { params: &other, ..binding() }, &Clear(1), &state, 0), foreign);
        assert_eq!(refusal(Binding { principal: Some("bob"), ..binding() }, &Clear(1), &state, 0), foreign);
        assert_eq!(refusal(Binding { principal: None, ..binding() }, &Clear(1), &state, 0), foreign);
        assert_eq!(refusal(binding(), &Clear(2), &state, 0), foreign);
        assert_eq!(refusal(binding(), &Clear(1), "", 0), foreign);
        assert_eq!(refusal(binding(), &Clear(1), "not base64!", 0), foreign);
        for at in 0..state.len() {
            let mut forged: Vec<char> = state.chars().collect();
            forged[at] = if forged[at] == 'A' { 'B' } else { 'A' };
            assert_eq!(refusal(binding(), &Clear(1), &String::from_iter(forged), 0), foreign, "byte {at}");
        }
        assert_eq!(binding().open(&Clear(1), &state, state.len(), 0).unwrap().plain, b"secret");
        let expired = "`requestState` has expired: start the call again";
        assert_eq!(refusal(binding(), &Clear(1), &state, 1000), expired);
        let long = "x".repeat(5000);
        assert!(
            refusal(binding(), &Clear(1), &long, 0)
                .starts_with("`requestState` has 5000 bytes, and the limit is 4096")
        );
    }
}
