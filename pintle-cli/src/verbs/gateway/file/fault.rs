use std::collections::BTreeMap;

use pintle::{Server, server::Rules};
use pintle_serve::{ServedFolders, ServedWorkers};

use super::{GatewayFile, secrets::written_secret};
use crate::verbs::gateway::{
    names,
    protection::{self, AuthEntry},
    secret::written,
};

/// A mistake in a file that can be read.
pub(super) struct Fault {
    /// The table that has it.
    pub(super) table: String,
    pub(super) message: String,
}

/// Returns whether a text can be the name of a target or server, or a prefix.
fn is_valid(name: &str) -> bool {
    !name.is_empty() && name.len() <= 32 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

impl GatewayFile {
    /// Returns what is wrong with the file.
    pub(super) fn fault(&self) -> Option<Fault> {
        let fault = |table: String, message: String| Some(Fault { table, message });
        if self.order.is_empty()
            && self.tools.is_empty()
            && self.prompts.is_empty()
            && self.resources.is_empty()
        {
            let message = "there are no targets and no tools: add `[targets.NAME]` with `url = \"…\"` or `command = [\"…\"]`, `[tools.NAME]` with `command = [\"…\"]`, or `[apis.NAME]` with `document = \"…\"`";
            return fault(String::new(), message.into());
        }
        if let Some(name) = self.prompts.keys().find(|name| !names::is_kept(name)) {
            let message = "some hosts refuse the name: use letters, digits, `_` and `-`";
            return fault(format!("prompts.{name}"), format!("prompt `{name}`: {message}"));
        }
        for (name, resource) in &self.resources {
            if let Some(message) = written(&resource.env) {
                return fault(format!("resources.{name}"), format!("resource `{name}`: {message}"));
            }
        }
        for (name, worker) in &self.workers {
            if let Some(message) = written(&worker.env) {
                return fault(format!("workers.{name}"), format!("worker `{name}`: {message}"));
            }
        }
        for (name, tool) in &self.tools {
            let wrong = |message: &str| fault(format!("tools.{name}"), format!("tool `{name}`: {message}"));
            if !names::is_kept(name) {
                return wrong("some hosts refuse the name: use letters, digits, `_` and `-`");
            }
            if let Some(message) = written_secret(tool) {
                return wrong(&message);
            }
            // A rule judges the arguments of the call, and not what its user answers.
            let judged = self.rules.iter().flat_map(|rule| rule.arguments.keys());
            let judged = judged.filter_map(|path| path.split('.').next());
            if let Some(asked) =
                judged.into_iter().find(|judged| tool.ask.iter().any(|asked| asked == judged))
            {
                return wrong(&format!(
                    "a rule judges `{asked}`, which it would not see if the user is asked for it: remove it from `ask`"
                ));
            }
        }
        let workers = ServedWorkers::new(&self.workers, &self.folder, |_, _| {});
        let own = match workers.and_then(|workers| self.own_entries(&workers)) {
            Ok(own) => own,
            Err(wrong) => return fault(format!("{}s.{}", wrong.kind, wrong.name), wrong.to_string()),
        };
        // What a server with them refuses.
        if let Err(wrong) = own.register(Server::new("check", "0"), &ServedFolders::default()).check() {
            return fault(String::new(), wrong.to_string());
        }
        let mut prefixes = BTreeMap::new();
        if let Some(name) = self.apis.keys().find(|name| self.targets.contains_key(*name)) {
            let message = format!("`{name}` is the name of a target and of an API; rename one");
            return fault(format!("apis.{name}"), message);
        }
        for (name, entry) in self.backends() {
            let kind = entry.kind();
            let wrong = |message| fault(format!("{kind}s.{name}"), message);
            // A `_` ends a prefix, so that no two of them can be confused.
            if !is_valid(name) {
                return wrong(format!(
                    "`{name}` cannot be the name of {}: use up to 32 letters, digits and `-`",
                    entry.noun()
                ));
            }
            let prefix = entry.prefix_text(name);
            if !prefix.is_empty() && !is_valid(prefix) {
                return wrong(format!(
                    "`{prefix}` cannot be a prefix: use up to 32 letters, digits and `-`, or nothing"
                ));
            }
            if let Some(other) = prefixes.insert(prefix, name).filter(|_| !prefix.is_empty()) {
                return wrong(format!("`{other}` and `{name}` have the same prefix `{prefix}`; change one"));
            }
            if entry.has_exchange() && self.auth.is_none() {
                return wrong(format!(
                    "{kind} `{name}`: `exchange` needs the tokens of an authorization server: add `[auth]`"
                ));
            }
            if let Some(message) = entry.fault(name) {
                return wrong(format!("{kind} `{name}`: {message}"));
            }
        }
        for (name, server) in &self.servers {
            let wrong = |message| fault(format!("servers.{name}"), message);
            if !is_valid(name) {
                return wrong(format!(
                    "`{name}` cannot be the name of a server: use up to 32 letters, digits and `-`"
                ));
            }
            if let Some(entry) = self.backend(name) {
                return wrong(format!(
                    "`{name}` is the name of {} and of a server, which would have the same path; rename one",
                    entry.noun()
                ));
            }
            if let Some(message) = server.fault(&self.order) {
                return wrong(format!("server `{name}`: {message}"));
            }
        }
        if let Some((extension, target)) =
            self.extensions.iter().find(|(_, target)| !self.targets.contains_key(*target))
        {
            let message = format!("`{extension}` is given to `{target}`, which is not a target");
            return fault("extensions".to_owned(), message);
        }
        if let Some(url) = self.url.as_deref().filter(|url| !protection::is_gateway_url(url)) {
            return fault("url".to_owned(), protection::not_a_gateway_url(url));
        }
        if self.audit_required && self.audit.is_none() {
            let message = "`audit_required` needs a log: write `audit = \"PATH\"`";
            return fault("audit_required".to_owned(), message.to_owned());
        }
        if let Some(message) = self.auth.as_ref().and_then(AuthEntry::fault) {
            return fault("auth".to_owned(), format!("auth: {message}"));
        }
        let rules = Rules::new(self.rule_set()).err()?;
        fault("rules".to_owned(), rules.to_string())
    }
}
