use std::{
    collections::{BTreeMap, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle::{
    server::ToolError,
    types::{JsonObject, schema::CallToolResult},
};
use tokio::sync::watch;

use crate::{argument::Argument, text::Text};

/// The most principals whose calls are known.
const MAX_PRINCIPALS: usize = 64;
/// The most calls of a principal that are known.
const MAX_CALLS: usize = 128;
/// The most bytes of a key.
const MAX_KEY: usize = 256;
/// The most bytes of a result that is kept.
const MAX_RESULT: usize = 8 << 10;

/// The calls of a tool, each of which runs once for its key and its principal.
#[derive(Debug)]
pub(crate) struct Once {
    key: Text,
    /// The principal with the latest new call is last.
    known: Arc<Mutex<Known>>,
}

type Known = VecDeque<(Option<String>, VecDeque<KnownCall>)>;

/// A call that has begun.
#[derive(Clone, Debug)]
pub(crate) struct KnownCall {
    key: String,
    arguments: u64,
    /// `None` while the call runs. If the call is dropped, nobody sends its end.
    end: watch::Receiver<CallEnd>,
}

/// A call that has to run. If it is dropped, its outcome is unknown.
#[derive(Debug)]
pub(crate) struct NewCall(watch::Sender<CallEnd>);

/// The result of a call, or why there is none to return again.
type CallEnd = Option<Result<CallToolResult, String>>;

impl Once {
    /// Reads the key of an entry, which no call can leave out.
    pub(crate) fn new(
        key: &str,
        arguments: &BTreeMap<String, Argument>,
        asked: &[String],
    ) -> Result<Self, String> {
        let key = Text::read(key, arguments, false)?;
        let is_given = |name: &str| {
            asked.iter().any(|asked| asked == name) || arguments.get(name).is_some_and(|one| one.is_required)
        };
        if let Some(name) = key.names().find(|name| !is_given(name)) {
            return Err(format!(
                "`once` has `{{{name}}}`, which a call can leave out: make it required, or add it to `ask`"
            ));
        }
        match key.place() {
            Some(_) => Ok(Self { key, known: Arc::default() }),
            None => Err("`once` is the same for all calls: write a place, such as `\"{order}\"`".to_owned()),
        }
    }

    /// Returns the names of the arguments that have a place in the key.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.key.names()
    }

    /// Knows the calls of `running` from now on, if its keys are made as these are.
    pub(crate) fn keep(&mut self, running: &Self) {
        if self.key == running.key {
            self.known.clone_from(&running.known);
        }
    }

    /// Returns the call that has begun with the key of these arguments.
    pub(crate) fn find(
        &self,
        principal: Option<&str>,
        arguments: &JsonObject,
    ) -> Result<Option<KnownCall>, ToolError> {
        find(&self.lock(), principal, &self.key(arguments)?, arguments)
    }

    /// Begins a call, unless one has begun with the key of these arguments: then that is the error.
    pub(crate) fn begin(
        &self,
        principal: Option<&str>,
        arguments: &JsonObject,
    ) -> Result<Result<NewCall, KnownCall>, ToolError> {
        let key = self.key(arguments)?;
        let mut known = self.lock();
        if let Some(call) = find(&known, principal, &key, arguments)? {
            return Ok(Err(call));
        }
        // What still runs is not forgotten: it would run again.
        let full = || ToolError::new("too many calls of the tool run at the same time: call again later");
        let at = known.iter().position(|(name, _)| name.as_deref() == principal);
        match at {
            Some(at) if known[at].1.len() >= MAX_CALLS => {
                let calls = &mut known[at].1;
                calls
                    .iter()
                    .position(KnownCall::is_over)
                    .and_then(|over| calls.remove(over))
                    .ok_or_else(full)?;
            }
            None if known.len() >= MAX_PRINCIPALS => {
                let over = known.iter().position(|(_, calls)| calls.iter().all(KnownCall::is_over));
                over.and_then(|over| known.remove(over)).ok_or_else(full)?;
            }
            _ => {}
        }
        let own = at.and_then(|at| known.remove(at));
        let (name, mut calls) = own.unwrap_or_else(|| (principal.map(str::to_owned), VecDeque::new()));
        let (sender, end) = watch::channel(None);
        calls.push_back(KnownCall { key, arguments: digest(arguments), end });
        known.push_back((name, calls));
        Ok(Ok(NewCall(sender)))
    }

    fn key(&self, arguments: &JsonObject) -> Result<String, ToolError> {
        let key = self.key.print(arguments);
        match key.len() > MAX_KEY {
            true => Err(ToolError::new(format!(
                "`{}` makes a key of more than {MAX_KEY} bytes: send less",
                self.key.names().next().unwrap_or_default()
            ))),
            false => Ok(key),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(
    known: &Known,
    principal: Option<&str>,
    key: &str,
    arguments: &JsonObject,
) -> Result<Option<KnownCall>, ToolError> {
    let calls = known.iter().find(|(name, _)| name.as_deref() == principal);
    match calls.and_then(|(_, calls)| calls.iter().find(|call| call.key == key)) {
        Some(call) if call.arguments != digest(arguments) => Err(ToolError::new(format!(
            "a call with the key `{key}` has begun before, with other arguments: repeat it as it was, or use another key"
        ))),
        call => Ok(call.cloned()),
    }
}

impl NewCall {
    /// Keeps the end of the call, for those with the same key.
    pub(crate) fn end(self, ended: &Result<CallToolResult, ToolError>) {
        self.0.send_replace(Some(match ended {
            Ok(result) if serde_json::to_vec(result).is_ok_and(|text| text.len() <= MAX_RESULT) => {
                Ok(result.clone())
            }
            Ok(_) => Err("; its result is too large to be kept".to_owned()),
            Err(error) => {
                let error: String = error.to_string().chars().take(MAX_RESULT / 4).collect();
                Err(format!(", and failed: {error}; use another key to run it again"))
            }
        }));
    }
}

impl KnownCall {
    /// Returns whether the call does not run any more.
    fn is_over(&self) -> bool {
        self.end.borrow().is_some() || self.end.has_changed().is_err()
    }

    /// Waits until the call has ended, and returns how.
    pub(crate) async fn ended(mut self) -> Result<CallToolResult, ToolError> {
        let key = &self.key;
        let end = self.end.wait_for(Option::is_some).await;
        let message = match end.as_deref() {
            Ok(Some(Ok(result))) => return Ok(result.clone()),
            Ok(Some(Err(how))) => format!("the call with the key `{key}` has run before{how}"),
            Ok(None) | Err(_) => format!(
                "the call with the key `{key}` was cancelled while it ran, so that its outcome is unknown: find out what \
                 came of it before you use another key"
            ),
        };
        Err(ToolError::new(message))
    }
}

/// Returns a number for arguments, whatever the order of their members.
fn digest(arguments: &JsonObject) -> u64 {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use pintle::types::schema::ContentBlock;
    use serde_json::{Value, json};

    use super::*;

    fn arguments(value: Value) -> JsonObject {
        serde_json::from_value(value).unwrap()
    }

    fn once(key: &str) -> Result<Once, String> {
        let argument = |is_required| Argument { schema: json!({"type": "string"}), is_required };
        Once::new(
            key,
            &[("order".to_owned(), argument(true)), ("note".to_owned(), argument(false))].into(),
            &[],
        )
    }

    fn result(text: &str) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::new(vec![ContentBlock::from(text.to_owned())]))
    }

    #[tokio::test]
    async fn a_call_with_a_known_key_gets_the_result_of_the_first() {
        let once = once("{order}").unwrap();
        let call = arguments(json!({"order": "7", "note": "a"}));
        let first = once.begin(Some("ann"), &call).unwrap().unwrap();
        // The second begins while the first runs, and has its members in another order.
        let second =
            once.begin(Some("ann"), &arguments(json!({"note": "a", "order": "7"}))).unwrap().unwrap_err();
        // Others have keys of their own.
        let other = once.begin(Some("bob"), &call).unwrap().unwrap();
        first.end(&result("paid"));
        assert_eq!(second.ended().await.unwrap(), result("paid").unwrap());
        other.end(&Err(ToolError::new("no money")));
        let failed = once.find(Some("bob"), &call).unwrap().unwrap().ended().await.unwrap_err();
        assert!(failed.to_string().contains("failed: no money; use another key"), "{failed}");
        let changed = once.find(Some("ann"), &arguments(json!({"order": "7", "note": "b"}))).unwrap_err();
        assert!(changed.to_string().contains("with other arguments"), "{changed}");
    }

    #[tokio::test]
    async fn the_outcome_of_a_cancelled_call_is_unknown() {
        let once = once("{order}").unwrap();
        let call = arguments(json!({"order": "7"}));
        drop(once.begin(None, &call).unwrap().unwrap());
        let unknown = once.begin(None, &call).unwrap().unwrap_err().ended().await.unwrap_err();
        assert!(unknown.to_string().contains("its outcome is unknown"), "{unknown}");
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let once = once("{order}").unwrap();
        let call = |number: usize| arguments(json!({"order": number.to_string()}));
        for number in 0..=MAX_CALLS {
            once.begin(None, &call(number)).unwrap().unwrap().end(&result(&"x".repeat(MAX_RESULT)));
        }
        assert!(once.find(None, &call(0)).unwrap().is_none());
        let large = once.find(None, &call(1)).unwrap().unwrap().ended().await.unwrap_err();
        assert!(large.to_string().contains("too large to be kept"), "{large}");
        let running: Vec<_> = (0..MAX_PRINCIPALS)
            .map(|number| once.begin(Some(&number.to_string()), &call(0)).unwrap().unwrap())
            .collect();
        assert!(once.find(None, &call(1)).unwrap().is_none());
        // What runs is not forgotten.
        let refused = once.begin(Some("one more"), &call(0)).unwrap_err();
        assert!(refused.to_string().contains("call again later"), "{refused}");
        let many: Vec<_> =
            (1..MAX_CALLS).map(|number| once.begin(Some("0"), &call(number)).unwrap().unwrap()).collect();
        assert!(once.begin(Some("0"), &call(MAX_CALLS)).is_err());
        drop(running);
        assert!(once.begin(Some("0"), &call(MAX_CALLS)).unwrap().is_ok());
        assert!(once.begin(Some("one more"), &call(0)).unwrap().is_ok());
        drop(many);
        let long = once.find(None, &arguments(json!({"order": "x".repeat(MAX_KEY + 1)}))).unwrap_err();
        assert!(long.to_string().contains("more than 256 bytes"), "{long}");
    }

    #[tokio::test]
    async fn the_next_tool_knows_calls_that_still_run() {
        let call = arguments(json!({"order": "7"}));
        let running = once("{order}").unwrap();
        let first = running.begin(None, &call).unwrap().unwrap();
        let (mut next, mut other) = (once("{order}").unwrap(), once("order {order}").unwrap());
        next.keep(&running);
        other.keep(&running);
        first.end(&result("paid"));
        let known = next.begin(None, &call).unwrap().unwrap_err();
        assert_eq!(known.ended().await.unwrap(), result("paid").unwrap());
        assert!(other.find(None, &call).unwrap().is_none(), "its keys are others");
    }

    #[test]
    fn a_key_is_a_part_of_every_call() {
        for (key, expected) in [("{note}", "which a call can leave out"), ("pay", "the same for all calls")] {
            let wrong = once(key).unwrap_err();
            assert!(wrong.contains(expected), "{wrong}");
        }
    }
}
