use std::{any::Any, fmt, sync::Arc};

use crate::server::{ServerKey, core::snapshot::Snapshot};

/// The states of providers in which an entry was found, the outermost first. They handle calls of it in the same ones, so that what was
/// judged is what runs.
#[derive(Clone)]
pub(crate) struct FoundIn {
    state: FoundState,
    inner: Option<Arc<Self>>,
}

#[derive(Clone)]
enum FoundState {
    /// A mounted server.
    Server(ServerKey, Arc<Snapshot>),
    /// That of any other provider.
    Provider(Arc<dyn Any + Send + Sync>),
}

impl FoundIn {
    pub(crate) fn server(key: ServerKey, snapshot: Arc<Snapshot>, inner: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { state: FoundState::Server(key, snapshot), inner })
    }

    pub(crate) fn provider(state: Arc<dyn Any + Send + Sync>, inner: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { state: FoundState::Provider(state), inner })
    }

    fn states(&self) -> impl Iterator<Item = &FoundState> {
        std::iter::successors(Some(self), |found| found.inner.as_deref()).map(|found| &found.state)
    }

    /// Returns the snapshot of a mounted server.
    pub(crate) fn snapshot(&self, of: &ServerKey) -> Option<&Arc<Snapshot>> {
        self.states().find_map(|state| match state {
            FoundState::Server(key, snapshot) => (key == of).then_some(snapshot),
            FoundState::Provider(_) => None,
        })
    }

    /// Returns the state of this type.
    pub(crate) fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.states().find_map(|state| match state {
            FoundState::Server(..) => None,
            FoundState::Provider(state) => state.clone().downcast().ok(),
        })
    }

    /// Returns whether a provider has another state here than there.
    pub(crate) fn differs(&self, there: &Self) -> bool {
        self.states().any(|state| match state {
            FoundState::Server(key, snapshot) => {
                there.snapshot(key).is_some_and(|other| !Arc::ptr_eq(snapshot, other))
            }
            FoundState::Provider(state) => {
                let of_type = there.states().filter_map(|other| match other {
                    FoundState::Provider(other) if (**other).type_id() == (**state).type_id() => Some(other),
                    _ => None,
                });
                let mut of_type = of_type.peekable();
                of_type.peek().is_some() && of_type.all(|other| !Arc::ptr_eq(state, other))
            }
        })
    }
}

impl fmt::Debug for FoundIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundIn").field("count", &self.states().count()).finish_non_exhaustive()
    }
}
