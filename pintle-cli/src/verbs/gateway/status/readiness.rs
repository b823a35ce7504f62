use std::{fmt::Write as _, sync::Arc};

use http::StatusCode;

use crate::verbs::gateway::backend::Backend;

/// Returns whether a gateway can serve requests, and, for those who may see names, what cannot be used. `store` is why the shared store
/// cannot be.
pub(in crate::verbs::gateway) fn readiness(
    backends: &[Arc<Backend>],
    store: Option<&str>,
    sees_names: bool,
) -> (StatusCode, String) {
    let (mut names, mut is_down) = (String::new(), false);
    for backend in backends {
        let Some(outage) = backend.outage() else { continue };
        is_down |= backend.health.is_required();
        let required = if backend.health.is_required() { "" } else { ", and is not required" };
        let (name, seconds) = (backend.name(), outage.time.as_secs());
        // Writing to a string does not fail.
        let _ = writeln!(names, "{name} is down for {seconds} s{required}: {}", outage.reason);
    }
    let mut text = match (is_down, store) {
        (false, None) => "ready\n".to_owned(),
        (true, None) if sees_names => String::new(),
        (true, None) => "a target is down\n".to_owned(),
        (_, Some(reason)) if sees_names => format!("the store is down: {reason}\n"),
        (_, Some(_)) => "the store is down\n".to_owned(),
    };
    if sees_names {
        text += &names;
    }
    let status = match is_down || store.is_some() {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::OK,
    };
    (status, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_see_no_names_reads_that_something_is_down_and_what_is_not_required_is_no_reason() {
        let backend = |name: &str, is_required: bool| {
            let backend = Backend::unconnected(name);
            backend.health.require(is_required);
            backend
        };
        let (a, b) = (backend("a", true), backend("b", false));
        let removed = backend("c", true);
        removed.remove();
        let all = [a, b.clone(), removed.clone()];
        let (a_down, b_down) = (
            "a is down for 0 s: it is being connected\n",
            "b is down for 0 s, and is not required: it is being connected\n",
        );
        let lost = Some("it is cut off");
        for (backends, store, sees_names, status, text) in [
            (&all[..], None, true, 503, format!("{a_down}{b_down}")),
            (&all[..], None, false, 503, "a target is down\n".to_owned()),
            (&all[1..], None, true, 200, format!("ready\n{b_down}")),
            (&all[1..], None, false, 200, "ready\n".to_owned()),
            (&all[2..], lost, true, 503, "the store is down: it is cut off\n".to_owned()),
            (&all[..], lost, false, 503, "the store is down\n".to_owned()),
        ] {
            assert_eq!(readiness(backends, store, sees_names), (StatusCode::from_u16(status).unwrap(), text));
        }
    }
}
