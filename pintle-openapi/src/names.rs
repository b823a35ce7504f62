//! Names that hosts accept: letters, digits, `_`, `-` and `.`, at most 64.

use std::collections::{HashMap, HashSet};

use ring::digest::{SHA256, digest};

/// The limit of a name.
pub(crate) const MAX: usize = 64;
/// The hexadecimal digits of a name that could not be kept.
const DIGITS: usize = 8;

/// Names tools, by the names that they should have and their methods and paths, of which no two are the same. Whose wanted name is a name
/// keeps it, then whose name had to be changed; of several with the same one, the first. The others get a hash of their method and path, so
/// that no name depends on how many others there are.
pub(crate) fn tools(wanted: &[(String, String)]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names: HashMap<usize, String> = HashMap::new();
    for is_exact in [true, false] {
        for (number, (wanted, _)) in wanted.iter().enumerate() {
            let name = accepted(wanted);
            if (name == *wanted) == is_exact && taken.insert(name.clone()) {
                names.insert(number, name);
            }
        }
    }
    let named = wanted.iter().enumerate().map(|(number, (wanted, key))| {
        names.remove(&number).unwrap_or_else(|| {
            let name = clean(wanted);
            // A wanted name may look like a hashed one.
            free(hashed(&name, key), |number| hashed(&name, &format!("{key} {number}")), &mut taken)
        })
    });
    named.collect()
}

/// Returns the name of a tool, an argument or a definition: as it is wanted, as far as that goes.
pub(crate) fn accepted(wanted: &str) -> String {
    let name = clean(wanted);
    if name.len() <= MAX { name } else { hashed(&name, wanted) }
}

/// Takes the first name that is not taken: this one, or one with a number from 2 on.
pub(crate) fn free(first: String, numbered: impl Fn(usize) -> String, taken: &mut HashSet<String>) -> String {
    let mut names = [first].into_iter().chain((2..).map(numbered));
    names.find(|name| taken.insert(name.clone())).unwrap_or_default()
}

fn clean(wanted: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let mut name = String::with_capacity(wanted.len());
    for letter in wanted.chars() {
        match allowed(letter) {
            true => name.push(letter),
            false if name.ends_with('_') => {}
            false => name.push('_'),
        }
    }
    // `filter[name]` is `filter_name`.
    let trimmed = if wanted.ends_with(allowed) { name.as_str() } else { name.trim_end_matches('_') };
    if trimmed.is_empty() { "unnamed".to_owned() } else { trimmed.to_owned() }
}

fn hashed(name: &str, key: &str) -> String {
    let hash = digest(&SHA256, key.as_bytes());
    let hash: String = hash.as_ref().iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    // A name is ASCII.
    let kept = name.get(..MAX - DIGITS - 1).unwrap_or(name);
    format!("{}_{hash}", kept.trim_end_matches('_'))
}

/// Returns the name of an operation without an id: its method, and the parts of its path.
pub(crate) fn of_path(method: &str, path: &str) -> String {
    let parts = path.split(['/', '{', '}']).filter(|part| !part.is_empty());
    parts.fold(method.to_owned(), |name, part| format!("{name}_{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(wanted: &[&str]) -> Vec<String> {
        let wanted = wanted.iter().enumerate();
        let wanted = wanted.map(|(number, wanted)| ((*wanted).to_owned(), format!("GET /{number}")));
        tools(&wanted.collect::<Vec<_>>())
    }

    #[test]
    fn a_name_stays_when_others_come() {
        let long = "x".repeat(80);
        let names = named(&["a/b", "getPet", "a_b", "a.b c", "getPet", &long]);
        assert_eq!(names[1..4], ["getPet", "a_b", "a.b_c"]);
        assert!(names[0].starts_with("a_b_") && names[0].len() == 12, "{names:?}");
        assert!(names[4].starts_with("getPet_"), "{names:?}");
        assert_eq!(names[5].len(), MAX);
        assert_eq!(named(&["a/b", "getPet", "a_b"])[..3], names[..3]);
        assert_eq!(named(&["b/c", "b|c"])[0], "b_c");
    }

    #[test]
    fn any_text_becomes_a_name() {
        for (wanted, name) in [
            ("filter[name]", "filter_name"),
            ("X-Id", "X-Id"),
            ("é", "unnamed"),
            ("", "unnamed"),
            ("$top", "_top"),
            ("_", "_"),
        ] {
            assert_eq!(accepted(wanted), name);
        }
        assert_eq!(of_path("get", "/pets/{id}/photos.json"), "get_pets_id_photos.json");
    }
}
