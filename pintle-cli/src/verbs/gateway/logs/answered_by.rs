use std::sync::{Arc, OnceLock};

/// The name of the backend that answered a request, for the log. The first one is kept.
#[derive(Clone, Default)]
pub(in super::super) struct AnsweredBy(Arc<OnceLock<String>>);

impl AnsweredBy {
    pub(in super::super) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(in super::super) fn set(&self, name: &str) {
        let _ = self.0.set(name.to_owned());
    }
}
