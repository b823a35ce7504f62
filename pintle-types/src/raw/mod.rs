//! JSON objects whose members are still text.
//!
//! A [`RawObject`] is scanned once when it is read and copied once; from then on its members are found without another scan. A duplicate
//! name is refused, because two readers could see two values. Its text has no line breaks, so that it can be written to a stream of lines
//! as it is.

mod builder;
mod decoded;
mod escape;
mod known;
mod members;
mod reader;
mod scan;
mod writer;

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;

pub use builder::RawObjectBuilder;
use members::{Members, slice};
pub(crate) use reader::Name;
use reader::ObjectSeed;
pub(crate) use scan::{Scan, ScannedObject};
pub(crate) use writer::ObjectWriter;

/// A JSON object whose members are still text.
///
/// Params and results are kept in this form: a member is found without building a tree, and is decoded once, by the code
/// that knows its type. An object in which a name occurs twice is refused when it is read, because two readers could
/// otherwise see two different values.
///
/// The text has no line breaks, so that it can be written to a stream of lines as it is.
///
/// ```
/// use pintle_types::RawObject;
///
/// let params: RawObject = r#"{"name": "add", "arguments": {"a": 1}}"#.parse()?;
/// assert_eq!(params.get("arguments"), Some(r#"{"a": 1}"#));
/// assert_eq!(params.decode_member::<String>("name")?.as_deref(), Some("add"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RawObject {
    text: String,
    members: Members,
}

impl RawObject {
    /// Returns the object without members.
    pub fn empty() -> Self {
        Self { text: "{}".into(), members: Members::new() }
    }

    /// Prints `value`, which must be a struct or a map.
    ///
    /// # Errors
    ///
    /// `value` cannot be printed, is not an object, or has a member twice.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        let text = serde_json::to_string(value)?;
        if !text.starts_with('{') {
            return Err(ser::Error::custom("not a JSON object: params and results are structs or maps"));
        }
        match Scan::new(&text).object(None) {
            Some(object) => Ok(object.cut(text)),
            None => text.parse(),
        }
    }

    /// Returns the object as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the members as text, without the braces around them.
    pub fn inner(&self) -> &str {
        self.text.get(1..self.text.len() - 1).unwrap_or_default()
    }

    /// Converts the object into its text, without a copy.
    pub fn into_string(self) -> String {
        self.text
    }

    /// Whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.inner().trim_ascii().is_empty()
    }

    /// Returns the value of a member, as text.
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.members.is_plain() {
            true => self.members.value(&self.text, name),
            false => self.members.value(&self.text, &printed(name)),
        }
    }

    /// Iterates over the members in their order: the name as it is printed, without quotes, and the value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|member| (slice(&self.text, member.name), slice(&self.text, member.value)))
    }

    /// Decodes the whole object.
    ///
    /// # Errors
    ///
    /// The object is not a `T`.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// Decodes one member. An absent member is `None`, and so is `null` if `T` cannot be null.
    ///
    /// # Errors
    ///
    /// The member is not a `T`.
    pub fn decode_member<'a, T: Deserialize<'a>>(
        &'a self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        let Some(text) = self.get(name).filter(|text| *text != "null") else { return Ok(None) };
        // If that fails, the text says why.
        match self.members.decoded(name).map(|member| member.decode(&self.text)) {
            Some(Ok(value)) => Ok(Some(value)),
            _ => serde_json::from_str(text).map(Some),
        }
    }

    /// Decodes one member that is an object. An absent member is `None`, and so is `null`.
    ///
    /// # Errors
    ///
    /// The member is not an object, or has a member twice.
    ///
    /// ```
    /// use pintle_types::RawObject;
    ///
    /// let params: RawObject = r#"{"name":"add","_meta":{"a":1}}"#.parse()?;
    /// assert_eq!(params.object_member("_meta")?.unwrap().get("a"), Some("1"));
    /// assert!(params.object_member("name").is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn object_member(&self, name: &str) -> Result<Option<Self>, serde_json::Error> {
        let Some(text) = self.get(name).filter(|text| *text != "null") else { return Ok(None) };
        match Scan::new(text).object(None) {
            Some(object) => Ok(Some(object.copy(text))),
            // The error says why.
            None => text.parse().map(Some),
        }
    }

    /// Returns the object with those members that are wanted. `wanted` is given the names as they are printed.
    ///
    /// ```
    /// use pintle_types::RawObject;
    ///
    /// let result: RawObject = r#"{"content":[],"ttlMs":5}"#.parse()?;
    /// assert_eq!(result.filtered(|name| name != "ttlMs").as_str(), r#"{"content":[]}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn filtered(&self, wanted: impl FnMut(&str) -> bool) -> Self {
        let mut writer = ObjectWriter::with_capacity(self.text.len());
        writer.extend(self, wanted);
        writer.finish()
    }

    /// Returns the object with some members left out.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(|name| printed(name)).collect();
        self.filtered(|name| !names.iter().any(|other| other == name))
    }

    /// Returns the object with one more member; one of the same name is replaced.
    ///
    /// `value` must be JSON; it is not checked again.
    #[must_use]
    pub fn with(&self, name: &str, value: &RawValue) -> Self {
        self.with_line(name, &one_line(value.get()))
    }

    /// Returns the object with one more member, which is an object; one of the same name is replaced.
    ///
    /// ```
    /// use pintle_types::RawObject;
    ///
    /// let (params, meta): (RawObject, RawObject) = (r#"{"a":1}"#.parse()?, r#"{"b":2}"#.parse()?);
    /// assert_eq!(params.with_object("_meta", &meta).as_str(), r#"{"a":1,"_meta":{"b":2}}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn with_object(&self, name: &str, value: &Self) -> Self {
        self.with_line(name, &value.text)
    }

    /// Returns the object with one more member, whose value is JSON on one line; one of the same name is replaced.
    fn with_line(&self, name: &str, value: &str) -> Self {
        let capacity = self.text.len() + name.len() + value.len() + 8;
        let mut writer = if self.get(name).is_none() {
            ObjectWriter::after(self, capacity)
        } else {
            let replaced = printed(name);
            let mut others = ObjectWriter::with_capacity(capacity);
            others.extend(self, |other| other != replaced);
            others
        };
        writer.push_line(name, value);
        writer.finish()
    }

    /// Returns the object with those members of another one behind its own that are wanted. None of them may be a member of this one:
    /// `wanted` is given the names as they are printed.
    #[must_use]
    pub fn joined(&self, other: &Self, wanted: impl FnMut(&str) -> bool) -> Self {
        let mut writer = ObjectWriter::after(self, self.text.len() + other.text.len());
        writer.extend(other, wanted);
        writer.finish()
    }
}

impl Default for RawObject {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Objects are equal if their texts are, member order and white space included.
impl PartialEq for RawObject {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::str::FromStr for RawObject {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectSeed)
    }
}

/// Replaces the line breaks of a JSON text with spaces. They are between tokens, because a JSON string has none.
pub(crate) fn one_line(json: &str) -> Cow<'_, str> {
    match memchr::memchr2(b'\n', b'\r', json.as_bytes()) {
        Some(_) => Cow::Owned(json.replace(['\n', '\r'], " ")),
        None => Cow::Borrowed(json),
    }
}

/// Returns a member's name as it is printed between quotes.
fn printed(name: &str) -> Cow<'_, str> {
    // All bytes are looked at, without a branch: names are short, and nearly all of them are plain.
    let is_plain =
        name.bytes().fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'));
    if is_plain {
        return Cow::Borrowed(name);
    }
    let quoted = serde_json::Value::from(name).to_string();
    Cow::Owned(quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RawObject {
        text.parse().unwrap()
    }

    #[test]
    fn members_are_found_and_stay_as_they_were() {
        let object = read(" { \"a\" : [1, 2] , \"b\":{\"c\": 1e999} , \"d\":null } ");
        assert_eq!(object.as_str(), r#"{"a":[1, 2],"b":{"c": 1e999},"d":null}"#);
        assert_eq!(object.get("a"), Some("[1, 2]"));
        assert_eq!(object.get("d"), Some("null"));
        assert_eq!(object.get("e"), None);
        assert_eq!(object.decode_member::<Vec<u8>>("a").unwrap(), Some(vec![1, 2]));
    }

    #[test]
    fn an_escaped_name_is_the_name_it_spells() {
        let object = read(r#"{"n\u0061me":"x","\"\n":1}"#);
        assert_eq!(object.get("name"), Some("\"x\""));
        assert_eq!(object.as_str(), r#"{"name":"x","\"\n":1}"#);
        assert_eq!(object.get("\"\n"), Some("1"));
        assert_eq!(object.without(&["\"\n"]).as_str(), r#"{"name":"x"}"#);
        let two = serde_json::value::to_raw_value(&2).unwrap();
        assert_eq!(object.with("\"\n", &two).as_str(), r#"{"name":"x","\"\n":2}"#);
    }

    #[test]
    fn an_escaped_name_is_left_out_and_replaced_as_the_name_it_spells() {
        const ESCAPED: &str = r#"{"a\/b":1,"\u0063":2}"#;
        let two = serde_json::value::to_raw_value(&2).unwrap();
        for object in [read(ESCAPED), Scan::new(ESCAPED).object(None).unwrap().copy(ESCAPED)] {
            assert_eq!(object.without(&["a/b"]).as_str(), r#"{"c":2}"#);
            assert_eq!(object.with("a/b", &two).as_str(), r#"{"c":2,"a/b":2}"#);
            assert_eq!(read(r#"{"c":1}"#).joined(&object, |name| name != "c").as_str(), r#"{"c":1,"a/b":1}"#);
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        for text in [r#"{"name":"a","name":"b"}"#.to_owned(), r#"{"name":1,"n\u0061me":2}"#.to_owned(), {
            let many: Vec<_> = (0..100).map(|n| format!("\"k{}\":0", n % 99)).collect();
            format!("{{{}}}", many.join(","))
        }] {
            let error = text.parse::<RawObject>().unwrap_err().to_string();
            assert!(error.contains("occurs twice"), "{error}");
        }
    }

    #[test]
    fn what_we_print_can_be_searched() {
        let object = RawObject::from_serialize(&serde_json::json!({ "x": 1, "y": { "z": [] } })).unwrap();
        assert_eq!(object.get("y"), Some(r#"{"z":[]}"#));
        let printed_elsewhere = RawValue::from_string("{\n  \"a\": 1,\n  \"b\": [2]\n}".to_owned()).unwrap();
        let object = RawObject::from_serialize(&printed_elsewhere).unwrap();
        assert_eq!((object.get("a"), object.get("b")), (Some("1"), Some("[2]")));
        assert!(!object.as_str().contains('\n'), "{object:?}");
        assert_eq!(object.without(&["a"]).as_str(), r#"{"b":[2]}"#);
        assert!(RawObject::from_serialize(&[1]).is_err());
        assert!(RawObject::empty().is_empty());
    }

    #[test]
    fn members_are_left_out_and_replaced() {
        let object = read(r#"{"a":1,"b":2,"c":3}"#);
        assert_eq!(object.without(&["a", "c"]).as_str(), r#"{"b":2}"#);
        let four = serde_json::value::to_raw_value(&4).unwrap();
        assert_eq!(object.with("a", &four).as_str(), r#"{"b":2,"c":3,"a":4}"#);
        assert_eq!(object.with("a", &four).get("a"), Some("4"));
        assert_eq!(RawObject::empty().with("a", &four).as_str(), r#"{"a":4}"#);
    }

    #[test]
    fn a_new_member_stands_behind_the_others_as_they_are() {
        let four = serde_json::value::to_raw_value(&4).unwrap();
        for text in [r#"{"a":1,"b":"é\n"}"#, "{ \"a\" : 1 ,\n\"b\":2\n}", "{ }"] {
            let object = Scan::new(text).object(None).unwrap().copy(text).with("d", &four);
            assert!(object.iter().eq(read(object.as_str()).iter()), "{object:?}");
            assert_eq!((object.get("d"), object.get("e")), (Some("4"), None), "{text}");
            assert_eq!(object.get("a"), read(text).get("a"), "{text}");
        }
    }

    #[test]
    fn no_object_has_a_line_break() {
        const BROKEN: &str = "{\"a\":[1,\r\n2]}";
        let broken = RawValue::from_string("[1,\r\n2]".to_owned()).unwrap();
        for object in [
            read(BROKEN),
            Scan::new(BROKEN).object(None).unwrap().copy(BROKEN),
            Scan::new(BROKEN).object(None).unwrap().cut(BROKEN.to_owned()),
            RawObject::empty().with("a", &broken),
            RawObject::from_serialize(&std::collections::BTreeMap::from([("a", broken)])).unwrap(),
        ] {
            assert_eq!((object.as_str(), object.get("a")), (r#"{"a":[1,  2]}"#, Some("[1,  2]")));
        }
    }

    #[test]
    fn a_copy_is_the_whole_object() {
        let object = read(r#"{"a":1,"b":{"c":2},"d":3,"e":4,"n\u0061me":5}"#);
        let copy = object.clone();
        assert_eq!(copy, object);
        assert!(copy.iter().eq(object.iter()));
        assert_eq!(copy.get("name"), Some("5"));
    }
}
