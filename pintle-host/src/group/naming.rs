use std::collections::{BTreeMap, HashMap};

/// The longest name that the APIs of OpenAI, Anthropic and Google all take.
const MAX_NAME: usize = 64;
/// A separator and eight hexadecimal digits.
const SUFFIX: usize = 9;
/// How often names that collide are replaced.
const MAX_ROUNDS: usize = 8;

/// How the tools and prompts of several servers are named, so that every model API accepts the names.
///
/// A name begins with a letter or `_`, has only letters, digits, `_` and `-`, and is at most 64 characters long. It is made from the
/// server's name in the group, `__`, and the tool's own name:
///
/// | rule | server, tool | name |
/// |---|---|---|
/// | joined by `__` | `git`, `status` | `git__status` |
/// | other characters become `_` | `my files`, `fs.read` | `my_files__fs_read` |
/// | a name that would begin otherwise gets a `_` in front | `7zip`, `list` | `_7zip__list` |
/// | a longer name is cut, and gets a hash of both names | `docs`, `search_everything_…` | `docs__search_every…_1f3a9c02` |
/// | names that would be equal get a hash each | `git`, `a.b` and `git`, `a_b` | `git__a_b_44a8bbee`, `git__a_b_4787546b` |
///
/// A name depends on nothing but the two names, unless it collides: it is the same after a restart, and in whatever order servers
/// are added. The way back is a table; names are never parsed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Naming {
    separator: String,
    limit: usize,
    prefixed: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Self { separator: "__".to_owned(), limit: MAX_NAME, prefixed: true }
    }
}

impl Naming {
    /// The names as described above.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names without the server's. Those that two servers use get it after all.
    pub fn unprefixed() -> Self {
        Self { prefixed: false, ..Self::default() }
    }

    /// Sets the text between the server's name and the tool's. Characters that names cannot have become `_`.
    pub fn separator(mut self, separator: impl Into<String>) -> Self {
        self.separator = separator.into();
        self
    }

    /// Sets the length limit, at least 16. Anthropic takes 128 characters, for example.
    pub fn limit(mut self, characters: usize) -> Self {
        self.limit = characters.max(16);
        self
    }

    /// Names pairs of a server's and a tool's name. `None` is a name that cannot be told apart from another, which takes two names
    /// with the same hash.
    ///
    /// ```
    /// use pintle_host::Naming;
    ///
    /// let names = Naming::new().names(&[("git", "status"), ("my files", "fs.read")]);
    /// assert_eq!(names, [Some("git__status".to_owned()), Some("my_files__fs_read".to_owned())]);
    /// ```
    pub fn names(&self, pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        let candidates = |pair: &(&str, &str)| {
            let joined = self.fit(&[pair.0, &self.separator, pair.1].concat(), *pair);
            let plain = if self.prefixed { joined.clone() } else { self.fit(pair.1, *pair) };
            let hashed = self.hashed(&joined, *pair);
            [plain, joined, hashed]
        };
        let candidates: Vec<[String; 3]> = pairs.iter().map(candidates).collect();
        let mut chosen = vec![0; pairs.len()];
        // Names that are made to look like the hashed ones of others are moved away, a few times over. Those that go on are
        // made by the server that has them, and get no name.
        for _ in 0..MAX_ROUNDS {
            let mut used: HashMap<&str, Vec<usize>> = HashMap::new();
            for (at, names) in candidates.iter().enumerate() {
                used.entry(&names[chosen[at]]).or_default().push(at);
            }
            let mut moved = false;
            for at in used.values().filter(|same| same.len() > 1).flatten() {
                moved |= chosen[*at] < 2;
                chosen[*at] = (chosen[*at] + 1).min(2);
            }
            if !moved {
                break;
            }
        }
        let mut used: HashMap<&str, usize> = HashMap::new();
        for (names, at) in candidates.iter().zip(&chosen) {
            *used.entry(&names[*at]).or_default() += 1;
        }
        let unique = |(names, at): (&[String; 3], &usize)| {
            (used[names[*at].as_str()] == 1).then(|| names[*at].clone())
        };
        candidates.iter().zip(&chosen).map(unique).collect()
    }

    /// The name with allowed characters only, cut to the limit.
    fn fit(&self, name: &str, pair: (&str, &str)) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut fitting = String::with_capacity(name.len() + 1);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            fitting.push('_');
        }
        fitting.extend(name.chars().map(|c| if allowed(c) { c } else { '_' }));
        if fitting.len() > self.limit { self.hashed(&fitting, pair) } else { fitting }
    }

    fn hashed(&self, name: &str, (member, tool): (&str, &str)) -> String {
        // What can be anything is ASCII by now.
        let cut = name.get(..name.len().min(self.limit - SUFFIX)).unwrap_or_default();
        format!("{cut}_{:08x}", hash(member, tool))
    }
}

/// FNV-1a, folded to 32 bits: the same on every machine and in every version.
fn hash(member: &str, tool: &str) -> u32 {
    let bytes = member.bytes().chain([0]).chain(tool.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}

/// The names of everything of one kind, both ways.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    /// The names that each member listed last.
    listed: BTreeMap<String, Vec<String>>,
    by_name: HashMap<String, (String, String)>,
    by_pair: HashMap<(String, String), String>,
}

impl NameTable {
    /// Takes over what members have listed, and names everything anew.
    pub(super) fn update(&mut self, naming: &Naming, listed: Vec<(String, Vec<String>)>) {
        self.listed.extend(listed);
        self.rename(naming);
    }

    pub(super) fn remove(&mut self, naming: &Naming, member: &str) {
        if self.listed.remove(member).is_some() {
            self.rename(naming);
        }
    }

    fn rename(&mut self, naming: &Naming) {
        let pairs = self.listed.iter();
        let pairs =
            pairs.flat_map(|(member, names)| names.iter().map(move |name| (member.as_str(), name.as_str())));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        let names = naming.names(&pairs);
        (self.by_name, self.by_pair) = Default::default();
        for ((member, own), name) in pairs.into_iter().zip(names) {
            let pair = (member.to_owned(), own.to_owned());
            match name {
                Some(name) => {
                    self.by_name.insert(name.clone(), pair.clone());
                    self.by_pair.insert(pair, name);
                }
                None => tracing::warn!(
                    member,
                    name = own,
                    "a name cannot be distinguished from another one; it is not offered"
                ),
            }
        }
    }

    /// The member and its own name for something.
    pub(super) fn find(&self, name: &str) -> Option<(String, String)> {
        self.by_name.get(name).cloned()
    }

    pub(super) fn name(&self, member: &str, own: &str) -> Option<String> {
        self.by_pair.get(&(member.to_owned(), own.to_owned())).cloned()
    }

    /// The most similar name.
    pub(super) fn similar(&self, name: &str) -> Option<&str> {
        let distance = |known: &&String| strsim::osa_distance(known, name);
        let nearest = self.by_name.keys().filter(|known| known.len().abs_diff(name.len()) <= 3);
        let nearest = nearest.min_by_key(|known| (distance(known), known.as_str()))?;
        (distance(&nearest) <= 3).then_some(nearest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(naming: &Naming, pairs: &[(&str, &str)]) -> Vec<String> {
        let names = naming.names(pairs);
        names.into_iter().map(|name| name.unwrap_or_else(|| "-".to_owned())).collect()
    }

    #[test]
    fn names_that_every_model_api_takes() {
        let long = "x".repeat(80);
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let table: &[Row<'_>] = &[
            (&[("git", "status")], &["git__status"]),
            (&[("my files", "fs.read")], &["my_files__fs_read"]),
            (&[("7zip", "list"), ("-x", "y")], &["_7zip__list", "_-x__y"]),
            (&[("größe", "x/y")], &["gr__e__x_y"]),
            (&[("a", &long)], &["a__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_4238dde2"]),
            // Both get a hash: neither is the name of the other.
            (
                &[("git", "a.b"), ("git", "a_b"), ("git", "c")],
                &["git__a_b_44a8bbee", "git__a_b_4787546b", "git__c"],
            ),
            (&[("a", "b__c"), ("a__b", "c")], &["a__b__c_bbeb6ab7", "a__b__c_089a7a89"]),
        ];
        for (pairs, expected) in table {
            assert_eq!(named(&Naming::new(), pairs), *expected);
        }
    }

    #[test]
    fn names_do_not_depend_on_the_order() {
        let pairs = [("git", "a.b"), ("git", "a_b"), ("files", "a.b"), ("x", "y")];
        let mut turned = pairs;
        turned.reverse();
        let mut back = named(&Naming::new(), &turned);
        back.reverse();
        assert_eq!(named(&Naming::new(), &pairs), back);
    }

    #[test]
    fn a_name_that_looks_like_the_hashed_one_of_another_does_not_take_its_place() {
        let hashed = named(&Naming::new(), &[("git", "a.b"), ("git", "a_b")])[0].clone();
        let forged = hashed.strip_prefix("git__").unwrap();
        let names = named(&Naming::new(), &[("git", "a.b"), ("git", "a_b"), ("git", forged)]);
        assert_eq!(names[0], hashed, "it is what it was");
        assert_ne!(names[2], hashed);
    }

    #[test]
    fn without_prefix_only_those_that_collide_have_one() {
        let pairs = [("git", "status"), ("files", "status"), ("files", "read")];
        assert_eq!(named(&Naming::unprefixed(), &pairs), ["git__status", "files__status", "read"]);
    }

    #[test]
    fn the_same_twice_has_no_name() {
        assert_eq!(named(&Naming::new(), &[("a", "b"), ("a", "b"), ("a", "c")]), ["-", "-", "a__c"]);
    }

    #[test]
    fn thousands_of_equal_names_take_no_longer_than_they_must() {
        let names: Vec<String> = (0..5000).map(|at| format!("{}{at}", "é".repeat(100))).collect();
        let pairs: Vec<_> = names.iter().map(|name| ("member", name.as_str())).collect();
        let named = Naming::new().names(&pairs);
        assert!(named.iter().filter(|name| name.is_some()).count() > 4990);
        assert!(named.iter().flatten().all(|name| name.len() <= 64));
    }
}
