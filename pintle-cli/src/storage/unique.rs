use std::hash::{BuildHasher as _, RandomState};

/// The letters of a name: none looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Returns a name that nothing else has: twelve letters and digits. It is not a secret.
pub(crate) fn unique_name() -> String {
    // Its keys are random in each process and differ each time.
    let mut number = RandomState::new().hash_one(std::process::id());
    let mut name = String::with_capacity(12);
    for _ in 0..12 {
        name.push(char::from(LETTERS[(number % 32) as usize]));
        number /= 32;
    }
    name
}

/// Returns whether a text has the form of such a name.
pub(crate) fn is_unique_name(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|letter| LETTERS.contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<_> = (0..1000).map(|_| unique_name()).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| is_unique_name(name)));
    }
}
