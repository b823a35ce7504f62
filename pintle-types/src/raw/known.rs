use std::cell::RefCell;

/// The name of the member whose value peers repeat: with every request, a stateless client describes itself in the same bytes.
pub(super) const REPEATED: &str = "_meta";

/// The number of texts that a thread keeps, and the lengths of those that are worth it, in bytes.
const MAX_TEXTS: usize = 4;
const LENGTHS: std::ops::RangeInclusive<usize> = 64..=2048;

thread_local! {
    static KNOWN: RefCell<KnownObjects> = const { RefCell::new(KnownObjects::new()) };
}

/// The texts of the objects that were read last, which are valid JSON (see `bench/LEDGER.md`).
struct KnownObjects {
    texts: [String; MAX_TEXTS],
    oldest: usize,
}

impl KnownObjects {
    const fn new() -> Self {
        Self { texts: [const { String::new() }; MAX_TEXTS], oldest: 0 }
    }

    fn length(&self, rest: &[u8]) -> Option<usize> {
        self.texts.iter().find(|text| !text.is_empty() && rest.starts_with(text.as_bytes())).map(String::len)
    }

    fn add(&mut self, text: &str) {
        if let Some(slot) = self.texts.get_mut(self.oldest) {
            slot.clear();
            slot.push_str(text);
        }
        self.oldest = (self.oldest + 1) % MAX_TEXTS;
    }
}

/// Returns the length of the object that a text begins with, if this thread has read it before. An object ends with its last
/// brace, whatever follows.
pub(super) fn length(rest: &[u8]) -> Option<usize> {
    KNOWN.try_with(|known| known.try_borrow().ok()?.length(rest)).ok().flatten()
}

/// Keeps the text of an object that was read.
pub(super) fn add(text: &str) {
    if LENGTHS.contains(&text.len()) {
        // Nothing is kept while the thread ends.
        let _ = KNOWN.try_with(|known| known.try_borrow_mut().map(|mut known| known.add(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(at: usize, length: usize) -> String {
        let start = format!(r#"{{"at":{at},"x":""#);
        format!(r#"{start}{}"}}"#, "x".repeat(length - start.len() - 2))
    }

    #[test]
    fn the_newest_objects_are_known_by_what_a_text_begins_with() {
        let mut known = KnownObjects::new();
        assert_eq!(known.length(b""), None);
        for at in 0..3 * MAX_TEXTS {
            known.add(&object(at, 100));
            for earlier in 0..=at {
                let text = object(earlier, 100) + ",\"more\":{}}";
                let kept = earlier + MAX_TEXTS > at;
                assert_eq!(known.length(text.as_bytes()), kept.then_some(100), "{earlier} of {at}");
            }
        }
    }

    #[test]
    fn short_and_long_objects_are_not_kept() {
        for (at, length) in
            [LENGTHS.start() - 1, *LENGTHS.start(), *LENGTHS.end(), LENGTHS.end() + 1].into_iter().enumerate()
        {
            let text = object(at, length);
            add(&text);
            assert_eq!(super::length(text.as_bytes()), LENGTHS.contains(&length).then_some(length));
        }
    }
}
