use std::{convert::Infallible, sync::Arc, time::Duration};

use pintle::server::{RuleDecision, RuleSet, Rules};
use tokio::task::spawn_blocking;

use super::{
    file::{FileSource, GatewayFile, WatchedFiles},
    overlaps::Overlaps,
    running::{Gateway, open_logs},
    virtual_server::VirtualServerEntry,
};
use crate::{
    failure::Failure,
    listen::{ENDPOINT, Routes},
};

/// The time between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(2);
/// The time for which a changed file has to stay as it is.
const SETTLE: Duration = Duration::from_millis(500);

impl Gateway {
    /// Applies changes of the file while the gateway runs. A file that is wrong changes nothing.
    pub(super) async fn reload(
        &self,
        source: &FileSource,
        current: GatewayFile,
        routes: Option<&Routes>,
    ) -> Infallible {
        let mut current = Arc::new(current);
        let (mut reported, mut hangups, mut overlaps) = (None, Hangups::new(), Overlaps::default());
        let mut watched = self.watched_files();
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.connected.notified() => {
                    overlaps.warn(self);
                    continue;
                }
                () = hangups.next() => {
                    self.reopen_logs();
                    self.output.note("the logs are opened again");
                    continue;
                }
            }
            if let Some(watched) = &mut watched {
                watched.notify(&self.gates.own).await;
            }
            if !source.may_change() {
                continue;
            }
            let read = |known: Arc<GatewayFile>| {
                let (source, current) = (source.clone(), current.clone());
                // A document may be large.
                let read = spawn_blocking(move || keeps_rules(&current, source.read(Some(&known))?));
                async { read.await.map_err(|error| Failure::internal(&error))?.map(Arc::new) }
            };
            match settled(current.clone(), read).await {
                Ok(None) => {}
                Ok(Some(next)) => match self.apply(&current, &next, routes).await {
                    Ok(files) => {
                        watched = files.or(watched);
                        if !current.differs_in_secrets_only(&next) {
                            let (shown, changes) = (source.shown(), current.changes(&next));
                            self.output.note(format!("`{shown}` has changed, and is in use now: {changes}"));
                        }
                        (current, reported) = (next, None);
                    }
                    Err(failure) => self.report_fault(failure, &mut reported),
                },
                Err(failure) => self.report_fault(failure, &mut reported),
            }
        }
    }

    /// Prints what is wrong with a file, once.
    fn report_fault(&self, failure: Failure, reported: &mut Option<String>) {
        if reported.as_ref() != Some(&failure.message) {
            let message = &failure.message;
            self.output.note(format!("{message}; the gateway continues with the previous settings"));
            *reported = Some(failure.message);
        }
    }

    /// Applies a changed file. Returns the files that are resources, if they are others.
    ///
    /// # Errors
    ///
    /// The file cannot be used. What is wrong with it is found before anything is changed.
    async fn apply(
        &self,
        current: &GatewayFile,
        next: &GatewayFile,
        routes: Option<&Routes>,
    ) -> Result<Option<WatchedFiles>, Failure> {
        let wrong = |reason: String| Failure::usage(reason, "pintle gateway --help");
        let has_same_entries = current.tools == next.tools
            && current.workers == next.workers
            && current.prompts == next.prompts
            && current.resources == next.resources;
        let logs = open_logs(next, Some(&self.gates.logs.get()), &self.counters.requests, &self.output)?;
        let entries = match has_same_entries {
            true => None,
            false => Some(self.next_entries(next).map_err(wrong)?),
        };
        let auth = next.auth.as_ref().filter(|_| self.has_other_check(next));
        let protection = auth.map(|auth| auth.of_paths(self.gates.fleet.as_ref())).transpose();
        let protection = protection.map_err(|error| wrong(error.to_string()))?;
        Rules::new(next.rule_set()).map_err(|error| wrong(error.to_string()))?;
        if let Some((routes, protection)) = routes.zip(protection) {
            routes.protect(protection)?;
        }
        self.gates.rules.replace(next.rule_set()).map_err(|error| wrong(error.to_string()))?;
        let watched = entries.map(|entries| self.replace_entries(entries)).transpose().map_err(wrong)?;
        self.gates.logs.replace(logs);
        // Nothing is waited for between the rules and the names that they are about.
        for backend in self.backends() {
            if next.backend(backend.name()).is_none() && !backend.is_removed() {
                backend.remove();
            }
        }
        for (name, entry) in next.backends() {
            let before = current.backend(name);
            let secrets = entry.secrets().into_iter();
            let is_known = |value| next.secret_files.is_same(&current.secret_files, value);
            let rotated: Vec<_> = secrets.filter(|(_, value)| !is_known(value)).collect();
            let same = before.filter(|before| *before == entry && rotated.is_empty());
            if same.is_some() {
                continue;
            }
            for (setting, _) in before.iter().flat_map(|_| &rotated) {
                self.output.note(format!(
                    "the secret of `{setting}` of `{name}` has changed, and is used from the next connection on"
                ));
            }
            if let Err(error) = self.apply_backend(name, before, entry, !rotated.is_empty()) {
                self.output.note(format!("`{name}` cannot be added: {error}"));
            }
        }
        self.apply_settings(next, routes).await;
        let later = changed_at_start(current, next, routes.is_some()).into_iter();
        let is_in_use = self.settings().auth == next.auth;
        for option in later.filter(|option| *option != "auth" || !is_in_use) {
            self.output.note(format!(
                "`{option}` has changed, which takes effect when the gateway is started again"
            ));
        }
        if let Some(routes) = routes {
            self.apply_paths(current, next, routes).await;
        }
        self.apply_servers(current, next, routes).await;
        self.rename_servers(next);
        // What rules hide may have changed too.
        self.backends().iter().for_each(|backend| backend.notify());
        Ok(watched)
    }

    /// Adds, changes and removes the paths of targets and virtual servers.
    async fn apply_paths(&self, current: &GatewayFile, next: &GatewayFile, routes: &Routes) {
        let gone = |name: &&String| next.backend(name).is_none() && !next.servers.contains_key(*name);
        for name in current.order.iter().chain(current.servers.keys()).filter(gone) {
            let path = format!("{ENDPOINT}/{name}");
            routes.remove(&path);
            self.fronts().remove(&path);
        }
        for name in current.servers.keys().filter(|name| !next.servers.contains_key(*name)) {
            self.virtual_servers().remove(name);
        }
        for backend in self.backends().iter().filter(|backend| !backend.is_removed()) {
            if current.backend(backend.name()).is_none() {
                let (path, server) = self.target_server(backend);
                self.report(backend.name(), self.serve(routes, &path, &server).await);
            }
        }
    }

    /// Adds and changes virtual servers.
    async fn apply_servers(&self, current: &GatewayFile, next: &GatewayFile, routes: Option<&Routes>) {
        let backends = self.backends();
        for (name, entry) in &next.servers {
            let running = self.virtual_servers().get(name).cloned();
            let has_same_front = current.servers.get(name).is_some_and(|it| it.search == entry.search);
            let applied = match (running, routes) {
                (Some(running), routes) if has_same_front || routes.is_none() => running
                    .replace(entry, &backends)
                    .map_err(|error| Failure::usage(error.to_string(), "pintle gateway --help")),
                // On standard streams there is the one that was chosen.
                (_, None) => continue,
                (_, Some(routes)) => match self.virtual_server(name, entry) {
                    Ok((path, server)) => self.serve(routes, &path, &server).await,
                    Err(failure) => Err(failure),
                },
            };
            self.report(name, applied);
        }
    }

    pub(super) fn report(&self, name: &str, applied: Result<(), Failure>) {
        if let Err(failure) = applied {
            self.output.note(format!("`{name}` stays as it was: {}", failure.message));
        }
    }
}

/// Refuses a file without rules where there were some, unless everything is refused then: its writer may not be done.
fn keeps_rules(current: &GatewayFile, next: GatewayFile) -> Result<GatewayFile, Failure> {
    let lost = |before: &RuleSet, after: &RuleSet| {
        !before.rules.is_empty() && after.rules.is_empty() && after.default == Some(RuleDecision::Allow)
    };
    let of_server = next.servers.iter().find(|(name, next)| {
        current.servers.get(*name).is_some_and(|current| lost(&current.rule_set(), &next.rule_set()))
    });
    let whose = match of_server {
        _ if lost(&current.rule_set(), &next.rule_set()) => "the file".to_owned(),
        Some((name, _)) => format!("`servers.{name}`"),
        None => return Ok(next),
    };
    let message = format!(
        "{whose} has no rules any more, so that everything would be allowed: write a rule with `decision = \"allow\"` if that is meant"
    );
    Err(Failure::usage(message, "pintle gateway --help"))
}

/// The signals to open logs again: `SIGHUP`.
struct Hangups {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    fn new() -> Self {
        Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals
            && signals.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

/// Returns what is read, given what is known, if it is not the current value and is the same a moment later: whoever writes a file may not be done, and its
/// beginning may have no rules.
async fn settled<T: Clone + PartialEq, E, F: Future<Output = Result<T, E>>>(
    current: T,
    mut read: impl FnMut(T) -> F,
) -> Result<Option<T>, E> {
    let first = read(current.clone()).await?;
    if first == current {
        return Ok(None);
    }
    tokio::time::sleep(SETTLE).await;
    Ok(Some(read(first.clone()).await?).filter(|second| *second == first))
}

/// Returns the options that have changed and are read when the gateway starts.
fn changed_at_start(current: &GatewayFile, next: &GatewayFile, is_http: bool) -> Vec<&'static str> {
    let searches = |(name, entry): (&String, &VirtualServerEntry)| {
        next.servers.get(name).is_some_and(|next| next.search != entry.search)
    };
    let options = [
        ("url", current.url != next.url),
        ("auth", current.auth != next.auth),
        ("search", !is_http && (current.search != next.search || current.servers.iter().any(searches))),
        ("extensions", current.extensions != next.extensions),
        ("the order of targets", {
            let kept = |one: &GatewayFile, other: &GatewayFile| -> Vec<_> {
                one.order.iter().filter(|name| other.backend(name).is_some()).cloned().collect()
            };
            kept(current, next) != kept(next, current)
        }),
        ("max_message", current.max_message != next.max_message),
        ("the first `task` of `tools`", !current.has_tasks() && next.has_tasks()),
        (
            "the first `log` of `tools`, and the logs of the first of `workers`",
            !current.has_logs() && next.has_logs(),
        ),
        ("the first folder of `resources`", !current.has_folders() && next.has_folders()),
    ];
    options.into_iter().filter(|(_, changed)| *changed).map(|(option, _)| option).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, future::ready};

    use tokio::time::sleep;

    use super::*;
    use crate::{output::Output, verbs::gateway::running::GatewayUsers};

    #[tokio::test(start_paused = true)]
    async fn a_mistake_in_the_file_is_printed_once() {
        let path = std::env::temp_dir().join(format!("pintle-reload-{}.toml", std::process::id()));
        let source = FileSource { path: Some(path.clone()), ..FileSource::default() };
        let right = "[targets.a]\nserver = \"demo\"\n";
        let file = GatewayFile::parse(right).unwrap();
        let (output, printed) = Output::kept();
        let gateway = Gateway::new(&file, GatewayUsers::Local, &output).unwrap();
        let times = |text: &str| printed().matches(text).count();
        let edits = async {
            let goes_on = "; the gateway continues with the previous settings";
            fs::write(&path, "first = 1\n").unwrap();
            sleep(5 * INTERVAL).await;
            assert_eq!((times("first"), times(goes_on)), (1, 1), "{}", printed());
            // Another mistake is another line.
            fs::write(&path, "second = 1\n").unwrap();
            sleep(5 * INTERVAL).await;
            assert_eq!((times("second"), times(goes_on)), (1, 2), "{}", printed());
            fs::write(&path, format!("default = \"deny\"\n{right}")).unwrap();
            sleep(5 * INTERVAL).await;
            assert_eq!((times("is in use now"), times(goes_on)), (1, 2), "{}", printed());
            // So is the same one, after the file was right.
            fs::write(&path, "second = 1\n").unwrap();
            sleep(5 * INTERVAL).await;
            assert_eq!((times("second"), times(goes_on)), (2, 3), "{}", printed());
        };
        fs::write(&path, right).unwrap();
        tokio::select! {
            never = gateway.reload(&source, file.clone(), None) => match never {},
            () = edits => {}
        }
        fs::remove_file(path).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_written_is_not_used() {
        let looks = async |texts: &[Result<&'static str, &'static str>]| {
            let mut texts = texts.iter().copied();
            settled("old", |_| ready(texts.next().unwrap())).await
        };
        assert_eq!(looks(&[Ok("old")]).await, Ok(None));
        assert_eq!(looks(&[Ok("new"), Ok("new")]).await, Ok(Some("new")));
        assert_eq!(looks(&[Ok("ne"), Ok("new")]).await, Ok(None));
        assert_eq!(looks(&[Ok("ne"), Err("wrong")]).await, Err("wrong"));
        assert_eq!(looks(&[Err("wrong")]).await, Err("wrong"));
    }

    #[test]
    fn a_file_that_lost_its_rules_is_refused() {
        let file = |top: &str, end: &str| {
            GatewayFile::parse(&format!("{top}\n[targets.a]\nserver = \"demo\"\n{end}")).unwrap()
        };
        let rule = "[[rules]]\ndecision = \"deny\"\n";
        let server = "[servers.b]\n[[servers.b.rules]]\ndecision = \"deny\"\n";
        for (before, after, refused) in [
            (file("", rule), file("", ""), Some("the file has no rules")),
            (file("default = \"allow\"", rule), file("default = \"allow\"", ""), Some("the file")),
            (file("", server), file("", "[servers.b]\n"), Some("`servers.b` has no rules")),
            (file("", rule), file("default = \"hide\"", ""), None),
            (file("", rule), file("", "[[rules]]\ndecision = \"allow\"\n"), None),
            (file("", server), file("", ""), None),
            (file("", ""), file("", ""), None),
        ] {
            let message = keeps_rules(&before, after).err().map(|failure| failure.message);
            assert_eq!(message.is_some(), refused.is_some(), "{message:?}");
            assert!(message.unwrap_or_default().contains(refused.unwrap_or_default()));
        }
    }

    #[test]
    fn options_that_are_read_at_the_start_are_named_when_they_change() {
        let target = "[targets.a]\nserver = \"demo\"\n";
        let old = GatewayFile::parse(target).unwrap();
        assert_eq!(changed_at_start(&old, &old, false), Vec::<&str>::new());
        let top = "name = \"x\"\ninstructions = \"x\"\naudit = \"x\"\naccess_log = \"x\"\n";
        let other =
            GatewayFile::parse(&format!("{top}default = \"deny\"\n{target}hide = [\"x\"]\n")).unwrap();
        assert_eq!(changed_at_start(&old, &other, false), Vec::<&str>::new());
        for (line, option) in [
            ("url = \"https://x.example\"", "url"),
            ("auth = { issuer = \"https://i.example\", url = \"https://x.example\" }", "auth"),
            ("search = true", "search"),
        ] {
            let new = GatewayFile::parse(&format!("{line}\n{target}")).unwrap();
            assert_eq!(changed_at_start(&old, &new, false), [option]);
        }
    }
}
