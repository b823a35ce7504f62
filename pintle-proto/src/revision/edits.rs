//! Differences between consecutive revisions, declared as data.

use pintle_types::method::{self, MethodInfo};
use serde_json::{Map, Value};

use super::{Part, Unsayable};

pub(super) type Object = Map<String, Value>;

/// One change to an object of a payload.
///
/// Both its effect and the test whether a text may need it are derived from this value.
pub(super) enum Edit {
    /// Removes a member.
    Drop(&'static str),
    /// Removes a member of the object at a path, and that object too if it becomes empty.
    DropWithin(&'static [&'static str], &'static str),
    /// Renames a member.
    #[cfg_attr(
        not(any(test, feature = "next-revision")),
        expect(dead_code, reason = "no published revision has renamed a member; the next one may")
    )]
    Rename(&'static str, &'static str),
    /// Rewrites the object. An `Err` means that the other revision cannot express it.
    Map(fn(&mut Object) -> Result<(), Unsayable>),
    /// Applies edits to each object at a path. Arrays on the way are entered; [`ANY`] enters every member.
    Within(&'static [&'static str], &'static [Self]),
    /// Applies edits if the `type` of the object is this.
    OfKind(&'static str, &'static [Self]),
    /// Applies edits if the object has this member.
    Having(&'static str, &'static [Self]),
}

/// The path component that matches every member of an object.
pub(super) const ANY: &str = "*";

/// The edits of the payloads that a selector matches.
pub(super) struct Rule(pub(super) On, pub(super) &'static [Edit]);

/// The payloads that a rule applies to.
#[derive(Clone, Copy)]
pub(super) enum On {
    /// The params of every message.
    Params,
    /// Every result.
    Result,
    /// The params of these methods.
    ParamsOf(&'static [&'static str]),
    /// The results of these methods.
    ResultOf(&'static [&'static str]),
    /// The params of the methods whose row in the method table satisfies a predicate.
    ParamsWhere(fn(&MethodInfo) -> bool),
    /// The results of the methods whose row in the method table satisfies a predicate.
    ResultWhere(fn(&MethodInfo) -> bool),
}

/// The conversion between a revision and the next older one.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// To the shapes of the next older revision.
    pub(super) down: &'static [Rule],
    /// From the shapes of the next older revision.
    pub(super) up: &'static [Rule],
}

impl Step {
    /// The step of the oldest revision.
    pub(super) const NONE: Self = Self { down: &[], up: &[] };
}

impl On {
    pub(super) fn selects(self, part: Part<'_>) -> bool {
        let fits = |fits: fn(&MethodInfo) -> bool, method| method::find(method).is_some_and(fits);
        match (self, part) {
            (Self::Params, Part::Params(_)) | (Self::Result, Part::Result(_)) => true,
            (Self::ParamsOf(names), Part::Params(method)) | (Self::ResultOf(names), Part::Result(method)) => {
                names.contains(&method)
            }
            (Self::ParamsWhere(row), Part::Params(method))
            | (Self::ResultWhere(row), Part::Result(method)) => fits(row, method),
            _ => false,
        }
    }

    /// Returns the methods that the selector names.
    pub(super) fn named(self) -> &'static [&'static str] {
        match self {
            Self::ParamsOf(names) | Self::ResultOf(names) => names,
            _ => &[],
        }
    }
}

/// Applies all rules that select `part`.
pub(super) fn apply(rules: &[Rule], part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
    let Value::Object(payload) = value else { return Ok(()) };
    rules.iter().filter(|rule| rule.0.selects(part)).try_for_each(|rule| edit(rule.1, payload))
}

fn edit(edits: &[Edit], object: &mut Object) -> Result<(), Unsayable> {
    edits.iter().try_for_each(|edit| edit.apply(object))
}

impl Edit {
    fn apply(&self, object: &mut Object) -> Result<(), Unsayable> {
        match self {
            Self::Drop(member) => {
                object.shift_remove(*member);
            }
            Self::DropWithin(path, member) => {
                let Some((holder, parents)) = path.split_last() else { return Ok(()) };
                return visit(object, parents, &mut |parent| {
                    drop_within(parent, holder, member);
                    Ok(())
                });
            }
            Self::Rename(from, to) => {
                if let Some(value) = object.shift_remove(*from) {
                    object.insert((*to).to_owned(), value);
                }
            }
            Self::Map(map) => return map(object),
            Self::Within(path, edits) => return visit(object, path, &mut |inner| edit(edits, inner)),
            Self::OfKind(kind, edits) => {
                if object.get("type").and_then(Value::as_str) == Some(*kind) {
                    return edit(edits, object);
                }
            }
            Self::Having(member, edits) => {
                if object.contains_key(*member) {
                    return edit(edits, object);
                }
            }
        }
        Ok(())
    }

    /// Adds the words of which one must occur in a text for this edit to change or refuse anything. The empty word
    /// occurs in every text.
    pub(super) fn add_words(&self, words: &mut Vec<&'static str>) {
        match self {
            Self::Drop(member) | Self::DropWithin(_, member) | Self::Rename(member, _) => {
                words.push(word(member))
            }
            Self::Map(_) => words.push(""),
            Self::Within(path, edits) => {
                let last = path.iter().rev().find(|name| **name != ANY);
                add_scoped(last.copied().unwrap_or_default(), edits, words);
            }
            Self::OfKind(name, edits) | Self::Having(name, edits) => add_scoped(name, edits, words),
        }
    }
}

/// Adds the words of `edits`, which have no effect on a text without `scope`.
fn add_scoped(scope: &'static str, edits: &[Edit], words: &mut Vec<&'static str>) {
    let mut own = Vec::new();
    edits.iter().for_each(|edit| edit.add_words(&mut own));
    words.extend(own.into_iter().map(|own| if own.is_empty() { word(scope) } else { own }));
}

/// Returns the prefix of a name that is serialized the same everywhere: some serializers write `/` as `\/`.
fn word(name: &'static str) -> &'static str {
    name.split('/').next().unwrap_or(name)
}

fn drop_within(parent: &mut Object, holder: &str, member: &str) {
    let Some(Value::Object(inner)) = parent.get_mut(holder) else { return };
    if inner.shift_remove(member).is_some() && inner.is_empty() {
        parent.shift_remove(holder);
    }
}

/// Visits every object at a path below `object`.
fn visit(
    object: &mut Object,
    path: &[&str],
    then: &mut dyn FnMut(&mut Object) -> Result<(), Unsayable>,
) -> Result<(), Unsayable> {
    match path {
        [] => then(object),
        [ANY, rest @ ..] => object.values_mut().try_for_each(|value| enter(value, rest, then)),
        [name, rest @ ..] => object.get_mut(*name).map_or(Ok(()), |value| enter(value, rest, then)),
    }
}

fn enter(
    value: &mut Value,
    path: &[&str],
    then: &mut dyn FnMut(&mut Object) -> Result<(), Unsayable>,
) -> Result<(), Unsayable> {
    match value {
        Value::Object(object) => visit(object, path, then),
        Value::Array(items) => items.iter_mut().try_for_each(|item| enter(item, path, then)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(edits: &'static [Edit], mut value: Value) -> Value {
        let rules = [Rule(On::Params, edits)];
        apply(&rules, Part::Params("any"), &mut value).unwrap();
        value
    }

    fn words(edits: &[Edit]) -> Vec<&'static str> {
        let mut words = Vec::new();
        edits.iter().for_each(|edit| edit.add_words(&mut words));
        words
    }

    #[test]
    fn each_edit_does_what_it_says() {
        assert_eq!(edited(&[Edit::Drop("a")], json!({"a": 1, "b": 2})), json!({"b": 2}));
        assert_eq!(edited(&[Edit::Rename("a", "c")], json!({"a": 1, "b": 2})), json!({"b": 2, "c": 1}));
        let within = &[Edit::DropWithin(&["list", "meta"], "x")];
        assert_eq!(
            edited(
                within,
                json!({"list": [{"meta": {"x": 1}}, {"meta": {"x": 1, "y": 2}}, {"meta": {}}, 7]})
            ),
            json!({"list": [{}, {"meta": {"y": 2}}, {"meta": {}}, 7]}),
        );
        let deep =
            &[Edit::Within(&["fields", ANY], &[Edit::OfKind("s", &[Edit::Having("a", &[Edit::Drop("b")])])])];
        assert_eq!(
            edited(
                deep,
                json!({"fields": {"p": {"type": "s", "a": 1, "b": 1}, "q": {"type": "s", "b": 1}, "r": {"a": 1, "b": 1}}})
            ),
            json!({"fields": {"p": {"type": "s", "a": 1}, "q": {"type": "s", "b": 1}, "r": {"a": 1, "b": 1}}}),
        );
    }

    #[test]
    fn the_words_follow_from_the_edits() {
        const NOTHING: Edit = Edit::Map(|_| Ok(()));
        assert_eq!(words(&[NOTHING]), [""]);
        assert_eq!(words(&[Edit::DropWithin(&["_meta"], "acme/x")]), ["acme"], "some escape the slash");
        assert_eq!(words(&[Edit::Within(&["a", "b", ANY], &[NOTHING, Edit::Drop("c")])]), ["b", "c"]);
        assert_eq!(words(&[Edit::OfKind("link", &[NOTHING]), Edit::Having("x", &[NOTHING])]), ["link", "x"]);
        assert_eq!(words(&[Edit::Rename("old", "new")]), ["old"]);
    }
}
