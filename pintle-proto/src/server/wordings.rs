use std::sync::{Arc, Mutex, PoisonError};

use pintle_types::RawObject;

use crate::Revision;

/// Results that many calls share, in the words of older revisions, so that they are put into these once.
///
/// (Measured: 2,063,000 of 2,120,000 instructions of a `tools/list` with 102 tools in a session over HTTP.)
#[derive(Debug, Default)]
pub(super) struct Wordings(Mutex<Vec<Wording>>);

#[derive(Debug)]
struct Wording {
    revision: Revision,
    method: Box<str>,
    /// Held, so that no other result can come to lie where this one lies.
    canonical: Arc<RawObject>,
    worded: Arc<RawObject>,
}

/// Four lists in the words of four revisions.
const MOST: usize = 16;
/// Bytes of all of them. A list that takes more by itself is worded each time.
const MOST_BYTES: usize = 32 << 20;

impl Wording {
    fn bytes(&self) -> usize {
        let own = if Arc::ptr_eq(&self.canonical, &self.worded) { 0 } else { self.worded.as_str().len() };
        self.canonical.as_str().len() + own
    }
}

impl Wordings {
    /// What was made of a result before. One that was changed since is another one.
    pub(super) fn find(
        &self,
        revision: Revision,
        method: &str,
        canonical: &Arc<RawObject>,
    ) -> Option<Arc<RawObject>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| {
            Arc::ptr_eq(&known.canonical, canonical) && known.revision == revision && *known.method == *method
        });
        found.map(|known| known.worded.clone())
    }

    pub(super) fn add(
        &self,
        revision: Revision,
        method: &str,
        canonical: &Arc<RawObject>,
        worded: &Arc<RawObject>,
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (canonical, worded) = (canonical.clone(), worded.clone());
        let wording = Wording { revision, method: method.into(), canonical, worded };
        let mut bytes = wording.bytes();
        if bytes > MOST_BYTES {
            return;
        }
        bytes += known.iter().map(Wording::bytes).sum::<usize>();
        // The oldest goes: it is most likely one that has been replaced since.
        while !known.is_empty() && (known.len() >= MOST || bytes > MOST_BYTES) {
            bytes -= known.remove(0).bytes();
        }
        known.push(wording);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_result_to_the_same_question_is_found_again() {
        let wordings = Wordings::default();
        let revisions: Vec<_> = Revision::all().collect();
        let [new, old] = [revisions[1], revisions[2]];
        let object = |text: &str| Arc::new(text.parse::<RawObject>().unwrap());
        let (canonical, worded) = (object(r#"{"tools":[]}"#), object(r#"{"tools":[1]}"#));
        wordings.add(new, "tools/list", &canonical, &worded);
        let found = |revision, method, result| wordings.find(revision, method, result).is_some();
        assert!(found(new, "tools/list", &canonical));
        assert!(!found(old, "tools/list", &canonical));
        assert!(!found(new, "prompts/list", &canonical));
        assert!(!found(new, "tools/list", &object(r#"{"tools":[]}"#)), "equal, but another one");
    }

    #[test]
    fn old_ones_make_room() {
        let wordings = Wordings::default();
        let revision = Revision::LATEST;
        let lists: Vec<_> = (0..100).map(|_| Arc::new(RawObject::empty())).collect();
        for list in &lists {
            wordings.add(revision, "tools/list", list, list);
        }
        let found = lists.iter().filter(|list| wordings.find(revision, "tools/list", list).is_some()).count();
        assert_eq!(found, MOST);
    }

    #[test]
    fn large_ones_are_held_within_so_many_bytes() {
        let wordings = Wordings::default();
        let list = |bytes: usize| -> Arc<RawObject> {
            Arc::new(format!(r#"{{"tools":"{}"}}"#, "x".repeat(bytes)).parse().unwrap())
        };
        let lists: Vec<_> = (0..3).map(|_| list(MOST_BYTES / 2 - 100)).collect();
        for list in &lists {
            wordings.add(Revision::LATEST, "tools/list", list, list);
        }
        let found = |list| wordings.find(Revision::LATEST, "tools/list", list).is_some();
        assert_eq!(lists.iter().map(found).collect::<Vec<_>>(), [false, true, true]);
        let all = list(MOST_BYTES);
        wordings.add(Revision::LATEST, "tools/list", &all, &all);
        assert!(!found(&all) && found(&lists[1]));
    }
}
