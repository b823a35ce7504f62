//! The record of a task with its printed form.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use pintle::{
    proto::{Body, Revision, TaskKind},
    types::{RawObject, RpcError},
};

use super::{record::TaskRecord, wire};

/// The longest printed form that is kept, in bytes. Longer ones are printed for each poll, so that a task with large questions is not
/// held twice.
const MAX_KEPT: usize = 2 << 10;

/// The record of a task that this process runs, and how it was last printed.
///
/// A mutable borrow of the record forgets the printed form, so that a poll never shows an older state.
#[derive(Debug)]
pub(super) struct PrintedRecord {
    record: TaskRecord,
    printed: Option<PrintedTask>,
}

#[derive(Debug)]
struct PrintedTask {
    kind: TaskKind,
    text: Arc<RawObject>,
}

impl PrintedRecord {
    /// Returns the task in the shapes of a revision.
    pub(super) fn printed(&mut self, revision: Revision, poll: Duration) -> Result<Body, RpcError> {
        let kind = revision.facts().tasks;
        let kept = self.printed.as_ref().filter(|printed| printed.kind == kind);
        let text = match kept {
            Some(printed) => &printed.text,
            None => {
                let text = wire::printed(&self.record, kind, poll)?;
                if text.as_str().len() > MAX_KEPT {
                    return Ok(text.into());
                }
                &self.printed.insert(PrintedTask { kind, text: Arc::new(text) }).text
            }
        };
        // What is shared is kept in the shapes of other revisions too, in a cache that has no room for every task.
        Ok(match revision == Revision::LATEST {
            true => text.clone().into(),
            false => RawObject::clone(text).into(),
        })
    }
}

impl From<TaskRecord> for PrintedRecord {
    fn from(record: TaskRecord) -> Self {
        Self { record, printed: None }
    }
}

impl Deref for PrintedRecord {
    type Target = TaskRecord;

    fn deref(&self) -> &TaskRecord {
        &self.record
    }
}

impl DerefMut for PrintedRecord {
    fn deref_mut(&mut self) -> &mut TaskRecord {
        self.printed = None;
        &mut self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> PrintedRecord {
        TaskRecord::new("id".into(), "local".into(), "tool".into(), 1_000).into()
    }

    fn printed(record: &mut PrintedRecord, revision: Revision) -> String {
        record.printed(revision, Duration::from_secs(1)).unwrap().as_str().to_owned()
    }

    /// The latest revision, and the one with tasks of its own.
    fn revisions() -> [Revision; 2] {
        let session = Revision::all().find(|revision| revision.facts().keeps_session).unwrap();
        [Revision::LATEST, session]
    }

    #[test]
    fn what_was_printed_is_kept_until_the_record_changes() {
        let mut record = record();
        let poll = Duration::from_secs(1);
        let [latest, session] = revisions();
        let shared = |body: Body| match body {
            Body::Shared(text) => text,
            other => panic!("not shared: {other:?}"),
        };
        let first = shared(record.printed(latest, poll).unwrap());
        assert!(Arc::ptr_eq(&first, &shared(record.printed(latest, poll).unwrap())));
        record.body.message = Some("half way".into());
        assert!(printed(&mut record, latest).contains(r#""statusMessage":"half way""#));
        assert!(printed(&mut record, session).contains(r#""statusMessage":"half way""#));
        *record = TaskRecord::new("id".into(), "local".into(), "tool".into(), 2_000);
        assert!(printed(&mut record, session).contains("1970-01-01T00:00:02"));
    }

    #[test]
    fn each_era_gets_its_shape() {
        let mut record = record();
        let [latest, session] = revisions();
        for _ in 0..2 {
            assert!(printed(&mut record, latest).contains(r#""ttlMs":0"#));
            assert!(printed(&mut record, session).contains(r#""ttl":0"#));
        }
    }

    #[test]
    fn a_long_one_is_not_held_twice() {
        let mut record = record();
        record.body.message = Some("x".repeat(MAX_KEPT));
        assert!(printed(&mut record, Revision::LATEST).len() > MAX_KEPT);
        assert!(record.printed.is_none());
    }
}
