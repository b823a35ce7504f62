use std::{convert::Infallible, path::Path, sync::Arc, sync::PoisonError, time::Duration};

use super::{Backend, Gateway, connect, file::GatewayFile};

/// The time between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(2);

impl Gateway {
    /// Applies changes of the file while the gateway runs. A file that is wrong changes nothing.
    pub(super) async fn reload(&self, path: &Path, mut current: GatewayFile, shares: bool) -> Infallible {
        let mut reported = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            match GatewayFile::read(path) {
                Ok(next) if next == current => {}
                Ok(next) => {
                    self.apply(&current, &next, shares);
                    self.output.note(format!("`{}` has changed, and is in use now", path.display()));
                    (current, reported) = (next, None);
                }
                Err(failure) if reported.as_ref() == Some(&failure.message) => {}
                Err(failure) => {
                    self.output.note(format!("{}; the gateway goes on as before", failure.message));
                    reported = Some(failure.message);
                }
            }
        }
    }

    fn apply(&self, current: &GatewayFile, next: &GatewayFile, shares: bool) {
        if let Err(error) = self.rules.replace(next.rule_set()) {
            self.output.note(format!("the rules stay as they were: {error}"));
            return;
        }
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        backends.retain(|backend| {
            let stays = current.targets.get(backend.name()) == next.targets.get(backend.name());
            if !stays {
                backend.remove();
            }
            stays
        });
        for (name, target) in &next.targets {
            if backends.iter().any(|backend| backend.name() == name) {
                continue;
            }
            let backend = Arc::new(Backend::new(name));
            match self.server.add_provider(backend.clone()) {
                Ok(()) => {
                    let connecting =
                        connect(backend.clone(), target.clone(), shares, self.output.clone(), None);
                    tokio::spawn(connecting);
                    backends.push(backend);
                }
                Err(error) => self.output.note(format!("`{name}` cannot be added: {error}")),
            }
        }
        // What rules hide may have changed too.
        backends.iter().for_each(|backend| backend.notify());
    }
}
