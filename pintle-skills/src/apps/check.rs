//! Errors of the server's start: what hosts would ignore without a message.

use pintle::types::{
    Meta,
    schema::{Resource, Tool},
};
use serde_json::Value;

use super::{AppPermission, FLAT_META, META, MIME_TYPE, RESOURCE_URI, VISIBILITY};

/// The members that belong to a resource, and that hosts ignore at a tool.
const OF_RESOURCE: [&str; 4] = ["csp", "permissions", "domain", "prefersBorder"];
/// The lists of a policy.
const LISTS: [&str; 4] = ["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"];

/// Returns the faults of all tools and resources.
pub(super) fn faults(tools: &[Tool], resources: &[Resource]) -> Vec<String> {
    let of_tools = tools.iter().flat_map(|tool| {
        let faults = tool_faults(tool.meta.as_ref(), resources);
        faults.into_iter().map(|fault| format!("the tool `{}`: {fault}", tool.name)).collect::<Vec<_>>()
    });
    let of_resources = resources.iter().flat_map(|resource| {
        let faults = resource_faults(resource);
        faults
            .into_iter()
            .map(|fault| format!("the resource `{}`: {fault}", resource.uri))
            .collect::<Vec<_>>()
    });
    of_tools.chain(of_resources).collect()
}

fn tool_faults(meta: Option<&Meta>, resources: &[Resource]) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(meta) = meta else { return faults };
    let flat = meta.get(FLAT_META);
    let Some(fields) = meta.get(META) else {
        if flat.is_some() {
            faults.push(format!(
                "`_meta` has `{FLAT_META}` alone, which new hosts do not read; use `App::tool`"
            ));
        }
        return faults;
    };
    let Some(fields) = fields.as_object() else {
        return vec![format!("`_meta.{META}` is not an object; use `App::tool`")];
    };
    for name in fields.keys() {
        if OF_RESOURCE.contains(&name.as_str()) {
            faults.push(format!("hosts ignore `_meta.{META}.{name}` at a tool; set it at the `App`"));
        } else if name != RESOURCE_URI && name != VISIBILITY {
            faults.push(format!("hosts do not know `_meta.{META}.{name}`; remove it"));
        }
    }
    match fields.get(RESOURCE_URI) {
        Some(Value::String(uri)) => faults.extend(uri_fault(uri, resources)),
        Some(_) => faults.push(format!("`_meta.{META}.{RESOURCE_URI}` is not text")),
        None => {}
    }
    if let Some(flat) = flat.filter(|flat| Some(*flat) != fields.get(RESOURCE_URI)) {
        faults.push(format!(
            "`_meta` names {flat} in `{FLAT_META}`, and another resource in `{META}`; name one"
        ));
    }
    if let Some(visibility) = fields.get(VISIBILITY) {
        faults.extend(visibility_fault(visibility));
    }
    faults
}

fn uri_fault(uri: &str, resources: &[Resource]) -> Option<String> {
    if !uri.starts_with("ui://") {
        return Some(format!("`{uri}` is not the URI of an app; begin it with `ui://`"));
    }
    if uri.contains(['{', '}']) {
        return Some(format!("`{uri}` is a template, and hosts expand none; name a resource"));
    }
    if resources.iter().any(|resource| resource.uri == uri) {
        return None;
    }
    let plain = |uri: &str| uri.trim_end_matches('/').to_lowercase();
    Some(match resources.iter().find(|resource| plain(&resource.uri) == plain(uri)) {
        Some(near) => format!("there is no resource `{uri}`, but `{}`; write it the same", near.uri),
        None => format!("there is no resource `{uri}`; add the app to the server"),
    })
}

fn visibility_fault(visibility: &Value) -> Option<String> {
    let advice = "name `model`, `app` or both";
    let Some(names) = visibility.as_array() else {
        return Some(format!("`{VISIBILITY}` is not a list; {advice}"));
    };
    if names.is_empty() {
        return Some(format!("`{VISIBILITY}` is empty, so the tool cannot be called; {advice}"));
    }
    let known = names.iter().all(|name| matches!(name.as_str(), Some("model" | "app")));
    let unique = names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    (!known || !unique).then(|| format!("`{VISIBILITY}` is {visibility}; {advice}"))
}

fn resource_faults(resource: &Resource) -> Vec<String> {
    let mut faults = Vec::new();
    let fields = resource.meta.as_ref().and_then(|meta| meta.get(META));
    if resource.uri.starts_with("ui://") && resource.mime_type.as_deref() != Some(MIME_TYPE) {
        faults.push(format!("hosts render the media type `{MIME_TYPE}` only; use `App`"));
    }
    let Some(fields) = fields else { return faults };
    let Some(fields) = fields.as_object() else {
        return vec![format!("`_meta.{META}` is not an object; use `App`")];
    };
    for name in [RESOURCE_URI, VISIBILITY].into_iter().filter(|name| fields.contains_key(*name)) {
        faults.push(format!("`_meta.{META}.{name}` belongs to a tool; use `App::tool`"));
    }
    // Written beside the policy, the lists allow nothing.
    for list in LISTS.into_iter().filter(|list| fields.contains_key(*list)) {
        faults.push(format!("`{list}` belongs in `_meta.{META}.csp`; use `App`"));
    }
    if let Some(permissions) = fields.get("permissions") {
        faults.extend(permissions_fault(permissions));
    }
    let Some(policy) = fields.get("csp") else { return faults };
    let Some(policy) = policy.as_object() else {
        faults.push(format!("`_meta.{META}.csp` is not an object of lists; use `App`"));
        return faults;
    };
    for (list, origins) in policy {
        if !LISTS.contains(&list.as_str()) {
            faults.push(format!("hosts do not know `csp.{list}`; use one of `{}`", LISTS.join("`, `")));
            continue;
        }
        let Some(origins) = origins.as_array() else {
            faults.push(format!("`csp.{list}` is not a list of origins; use `App`"));
            continue;
        };
        for origin in origins {
            let fault = origin.as_str().map_or(Some("it is not text"), origin_fault);
            faults.extend(fault.map(|fault| format!("`csp.{list}` has {origin}: {fault}")));
        }
    }
    faults
}

fn permissions_fault(permissions: &Value) -> Option<String> {
    let known = || AppPermission::ALL.map(AppPermission::as_str).join("`, `");
    let Some(permissions) = permissions.as_object() else {
        return Some(format!("`permissions` is not an object with the members `{}`; use `App`", known()));
    };
    let is_known = |name: &str| AppPermission::ALL.iter().any(|permission| permission.as_str() == name);
    let unknown = permissions.keys().find(|name| !is_known(name))?;
    Some(format!("hosts do not know `permissions.{unknown}`; use one of `{}`", known()))
}

/// Returns why a text is no origin that a policy may name.
pub(super) fn origin_fault(origin: &str) -> Option<&'static str> {
    let Some((scheme, host)) = origin.split_once("://") else {
        return Some("write an origin with its scheme, as in `https://api.example.com`");
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    let (name, port) = match name.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (name, None),
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    if name.is_empty() || !name.bytes().all(fits) {
        return Some("write a host name and nothing after it, as in `https://api.example.com`");
    }
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Some("the port is not a number");
    }
    match scheme {
        "https" | "wss" => None,
        "http" | "ws" if matches!(name, "localhost" | "127.0.0.1") => None,
        _ => Some("use `https` or `wss`; `http` and `ws` are for this machine only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_hosts_with_a_scheme() {
        for origin in
            ["https://a.example", "wss://*.a.example", "https://a.example:8443", "http://localhost:3000"]
        {
            assert_eq!(origin_fault(origin), None, "{origin}");
        }
        for origin in [
            "a.example",
            "http://a.example",
            "https://",
            "https://*",
            "https://a.example/",
            "https://a.example/path",
            "https://u@a.example",
            "https://a.example; script-src *",
            "https://a.example'",
            "https://a.example:x",
            "data:",
            "'self'",
            "*",
        ] {
            assert!(origin_fault(origin).is_some(), "{origin}");
        }
    }
}
