//! The provider of a method that neither the protocol nor the server defines.

use pintle_proto::server::Outcome;
use pintle_types::{ErrorCode, RawObject, RpcError};

use super::registry::RegisteredProvider;
use crate::server::{
    Access, Cx, Entry,
    access::required::Required,
    core::gate::admission::{Used, report},
};

/// Returns the provider that a request of a method is for: the first that has a handler of it; or else the only one that answers any
/// method, or the only one of several that declares its extension: a server behind must not take over the methods of another. If the gates
/// hide all that it may be for, they report a request with these arguments.
pub(crate) fn provider_of(
    cx: &Cx,
    arguments: impl FnOnce() -> RawObject,
) -> Result<RegisteredProvider, Outcome> {
    let (method, snapshot) = (cx.method(), cx.snapshot());
    let known = || snapshot.providers.iter().filter(|known| !known.link.is_removed());
    // One that the gates hide from the caller is not there.
    let is_shown = |known: &&RegisteredProvider| {
        snapshot.gates.shows(&cx.scope(), Entry::Method(method), Some(&known.info.name), None)
    };
    if let Some(found) = known().filter(|known| known.has_method(method)).find(is_shown) {
        return Ok(found.clone());
    }
    let candidates: Vec<_> = known().filter(|known| known.info.handles_any_method).filter(is_shown).collect();
    let whole = candidates.iter().find(|known| known.info.is_whole_server);
    if let Some(whole) = whole {
        return Ok(RegisteredProvider::clone(whole));
    }
    let declares = |known: &&&RegisteredProvider| known.extensions().any(|name| is_method_of(name, method));
    let declaring: Vec<_> = candidates.iter().filter(declares).copied().collect();
    match (&*candidates, &*declaring) {
        ([], _) => {
            let hidden = known().find(|known| known.has_method(method) || known.info.handles_any_method);
            if let Some(hidden) = hidden {
                let (required, backend, arguments) = (Required::NOTHING, &*hidden.info.name, arguments());
                let used = Used::own(&required, Entry::Method(method)).arguments(arguments.as_str());
                report(cx, Access::Call, &Used { backend: Some(backend), ..used });
            }
            Err(Outcome::Failed(RpcError::method_not_found(method)))
        }
        ([only], _) | (_, [only]) => Ok(RegisteredProvider::clone(only)),
        (several, []) => {
            let reason = "and none of them declares an extension that it is named after";
            Err(Outcome::Failed(ambiguous(method, several, reason)))
        }
        (_, several) => Err(Outcome::Failed(ambiguous(
            method,
            several,
            "which declare the extension that it is named after",
        ))),
    }
}

/// Returns whether a method is one of an extension, as far as the names tell: `clock/wind` or `com.example/clock/wind` of
/// `com.example/clock`.
fn is_method_of(extension: &str, method: &str) -> bool {
    let begins = |name: &str| method.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let name = extension.rsplit('/').next().unwrap_or(extension);
    begins(extension) || begins(name)
}

fn ambiguous(method: &str, candidates: &[&RegisteredProvider], why: &str) -> RpcError {
    let shown: String = method.chars().take(128).collect();
    let names: Vec<_> = candidates.iter().map(|known| format!("`{}`", known.info.name)).collect();
    let reason = format!(
        "`{shown}` may be a method of any of {}, {why}: connect to one of them directly",
        names.join(", ")
    );
    RpcError::new(ErrorCode::METHOD_NOT_FOUND, reason)
}

#[cfg(test)]
mod tests {
    use super::is_method_of;

    #[test]
    fn a_method_is_named_after_its_extension() {
        for (extension, method, expected) in [
            ("com.example/clock", "clock/wind", true),
            ("com.example/clock", "com.example/clock/wind", true),
            ("io.modelcontextprotocol/tasks", "tasks/steer", true),
            ("io.modelcontextprotocol/auth/dpop", "dpop/prove", true),
            ("com.example/clock", "clockwork/wind", false),
            ("com.example/clock", "clock", false),
            ("com.example/clock", "example/clock/wind", false),
        ] {
            assert_eq!(is_method_of(extension, method), expected, "{extension} {method}");
        }
    }
}
