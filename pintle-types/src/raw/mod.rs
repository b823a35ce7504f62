mod ahead;
mod builder;
mod escape;
mod members;
mod printing;

use std::{borrow::Cow, fmt, sync::OnceLock};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeSeed, MapAccess},
    ser,
};
use serde_json::value::RawValue;

use ahead::Ahead;
pub(crate) use ahead::long_request;
pub(crate) use builder::Builder;
use members::{Member, Members, place, slice};
pub use printing::Printing;

/// A JSON object whose members are still text.
///
/// Params and results are held like this: a member is found without building a tree, and decoded once, by whoever
/// knows its type. A name that occurs twice is refused when an object is read, because two readers could otherwise
/// see two different values.
///
/// ```
/// use pintle_types::RawObject;
///
/// let params: RawObject = r#"{"name": "add", "arguments": {"a": 1}}"#.parse()?;
/// assert_eq!(params.get("arguments"), Some(r#"{"a": 1}"#));
/// assert_eq!(params.decode_member::<String>("name")?.as_deref(), Some("add"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RawObject {
    /// The whole object, behind what was before it in a long message. Only the white space between its members may differ
    /// from what came in.
    ///
    /// A `String`: giving back the room at its end would copy a large one.
    text: String,
    /// Where it starts in the text.
    start: usize,
    index: Index,
    /// Whether it was printed here, which means without line breaks.
    one_line: bool,
    /// The inside of the longest text that was printed into it: no member's name is in there.
    prose: (u32, u32),
    /// What was decoded while it was read.
    ahead: Option<Box<Ahead>>,
}

/// Where the members are.
#[derive(Clone)]
enum Index {
    /// Found while it was read, or printed member by member.
    Here(Members),
    /// What this side printed as a whole is indexed when somebody asks.
    Later(OnceLock<Found>),
}

#[derive(Clone)]
enum Found {
    Here(Box<Members>),
    /// In the same object, read and printed again: what somebody else printed may have white space between members.
    Elsewhere(Box<RawObject>),
}

impl RawObject {
    /// The object without members.
    pub fn empty() -> Self {
        Self { index: Index::Here(Members::new()), ..Self::printed("{}".into()) }
    }

    /// Prints `value`, which must be a struct or a map.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        let text = serde_json::to_string(value)?;
        if !text.starts_with('{') {
            return Err(ser::Error::custom("not a JSON object: params and results are structs or maps"));
        }
        // Only what somebody else has printed, and is passed on as it came, has line breaks between its tokens.
        if has_breaks(text.as_bytes()) {
            return Ok(Self::printed(text.replace(['\n', '\r'], " ")));
        }
        Ok(Self::printed(text))
    }

    /// Text that was printed without line breaks.
    fn printed(text: String) -> Self {
        let index = Index::Later(OnceLock::new());
        Self { text, start: 0, index, one_line: true, prose: (0, 0), ahead: None }
    }

    /// The object of these members, as it stands in the text that it was read from.
    fn cut(text: &str, members: Members) -> Option<Self> {
        let mut places = members.iter();
        let Some(first) = places.next() else { return Some(Self::empty()) };
        let last = places.last().unwrap_or(first);
        // Between the first quote and the opening brace, as between the last value and the closing one, is white space.
        let before = text.get(..(first.name.0 as usize).checked_sub(1)?)?;
        let start = before.trim_ascii_end().len().checked_sub(1)?;
        let end = text.len() - text.get(last.value.1 as usize..)?.trim_ascii_start().len() + 1;
        let (text, index) = (text.get(start..end)?.to_owned(), Index::Here(members.shifted(start as u32)));
        Some(Self { text, start: 0, index, one_line: false, prose: (0, 0), ahead: None })
    }

    /// The object as text.
    pub fn as_str(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// The members as text, without the braces around them.
    pub fn inner(&self) -> &str {
        self.text.get(self.start + 1..self.text.len() - 1).unwrap_or_default()
    }

    /// The object as text, to be gone on with.
    pub fn into_string(mut self) -> String {
        self.text.drain(..self.start);
        self.text
    }

    /// Whether its text is known to have no line breaks: on a stream of lines one would end the message.
    pub fn is_one_line(&self) -> bool {
        self.one_line
    }

    /// Whether its members are known, so that [`get`](Self::get) does not have to look for them.
    pub fn is_indexed(&self) -> bool {
        match &self.index {
            Index::Here(_) => true,
            Index::Later(found) => found.get().is_some(),
        }
    }

    /// The text without the inside of the longest text in it: what is before that, and what is behind. Where to search
    /// for members of any depth, whose names are in one of the two.
    pub fn outline(&self) -> [&str; 2] {
        let (start, end) = (self.prose.0 as usize, self.prose.1 as usize);
        match (self.text.get(..start), self.text.get(end..)) {
            (Some(before), Some(behind)) if start > 0 => [before, behind],
            _ => [self.as_str(), ""],
        }
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.inner().trim_ascii().is_empty()
    }

    /// The value of a member, as text.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (text, members) = self.parts();
        if members.is_plain() { members.value(text, name) } else { members.value(text, &printed(name)) }
    }

    /// The members in the order they came: name (as printed, without quotes) and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let (text, members) = self.parts();
        members.iter().map(|member| (slice(text, member.name), slice(text, member.value)))
    }

    /// Reads the whole object as a `T`.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// Reads one member as a `T`; an absent member is `None`, and so is `null` if `T` cannot be null.
    pub fn decode_member<'a, T: Deserialize<'a>>(
        &'a self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        self.get(name).map_or(Ok(None), serde_json::from_str)
    }

    /// Reads one member as a `T` from what was decoded while the object was read, which is then gone. `None` says nothing
    /// of it, and comes at once: decode the member.
    ///
    /// Only of the `arguments` of a long request anything is decoded that early, and only by
    /// [`Message::parse_text`](crate::Message::parse_text).
    pub fn take_member<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Option<T> {
        self.ahead.as_ref()?.take(&self.text, name)
    }

    /// The same object with some members left out.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let mut builder = Builder::with_capacity(self.text.len());
        let names: Vec<_> = names.iter().map(|name| printed(name)).collect();
        let others = self.iter().filter(|(name, _)| !names.iter().any(|other| other == name));
        builder.extend(others, self.parts().1.is_plain());
        builder.finish()
    }

    /// The same object with one more member; one of the same name is replaced.
    ///
    /// `value` must be JSON; it is not looked at again.
    #[must_use]
    pub fn with(&self, name: &str, value: &RawValue) -> Self {
        let room = self.text.len() + name.len() + value.get().len() + 8;
        // Nearly always there is none of that name, and the others stay where they are. (Measured: 500 instructions less for a
        // short call that is given its `_meta`.)
        let before = match &self.index {
            Index::Here(members) if self.start == 0 && self.get(name).is_none() => {
                self.text.strip_suffix('}').map(|before| Builder::going_on(before, members, room))
            }
            _ => None,
        };
        let mut builder = before.unwrap_or_else(|| {
            let mut others = Builder::with_capacity(room);
            let replaced = printed(name);
            others.extend(self.iter().filter(|(other, _)| *other != replaced), self.parts().1.is_plain());
            others
        });
        builder.push(name, value.get());
        let one_line = self.one_line && !has_breaks(value.get().as_bytes());
        Self { one_line, ..builder.finish() }
    }

    /// The members, and the text that they are places in.
    fn parts(&self) -> (&str, &Members) {
        match &self.index {
            Index::Here(members) => (&self.text, members),
            Index::Later(found) => match found.get_or_init(|| self.find()) {
                Found::Here(members) => (&self.text, members),
                Found::Elsewhere(object) => object.parts(),
            },
        }
    }

    fn find(&self) -> Found {
        match serde_json::from_str::<Self>(self.as_str()) {
            Ok(Self { text, index: Index::Here(members), .. }) if text == self.text => {
                Found::Here(Box::new(members))
            }
            Ok(read) => Found::Elsewhere(Box::new(read)),
            Err(_) => Found::Here(Box::new(Members::new())),
        }
    }
}

impl Clone for RawObject {
    fn clone(&self) -> Self {
        let Self { text, start, index, one_line, prose, ahead: _ } = self;
        // What was decoded is for the first who asks.
        let (text, index) = (text.clone(), index.clone());
        Self { text, start: *start, index, one_line: *one_line, prose: *prose, ahead: None }
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

/// Equal to the letter, member order included.
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
        Roomy { bytes: 240 }.deserialize(deserializer)
    }
}

/// Reads an object of about this many bytes.
pub(crate) struct Roomy {
    pub(crate) bytes: usize,
}

impl<'de> DeserializeSeed<'de> for Roomy {
    type Value = RawObject;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawObject, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> de::Visitor<'de> for Roomy {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
        let mut builder = Builder::with_capacity(self.bytes);
        while let Some(name) = map.next_key_seed(Name)? {
            let value: &RawValue = map.next_value()?;
            match name {
                // What JSON has without escapes is as it is printed.
                Cow::Borrowed(name) => builder.push_printed(name, value.get()),
                Cow::Owned(name) => builder.push(&name, value.get()),
            }
        }
        if let Some(name) = builder.repeated() {
            return Err(de::Error::custom(format_args!("the member `{name}` occurs twice: send it once")));
        }
        if builder.is_too_large() {
            return Err(de::Error::custom("an object of more than 4 GiB"));
        }
        Ok(builder.finish())
    }
}

/// Reads an object that stands in this text. It is copied as a whole, where [`Roomy`] copies member by member; one of
/// which a name has an escape is refused. (Measured: 600 of 43,000 instructions of a small call over HTTP.)
pub(crate) struct Within<'a> {
    pub(crate) text: &'a str,
}

impl<'de> DeserializeSeed<'de> for Within<'de> {
    type Value = RawObject;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawObject, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> de::Visitor<'de> for Within<'de> {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
        // Whoever reads it in the other way finds the words.
        let unusual = || de::Error::custom("unusual");
        let mut members = Members::new();
        while let Some(name) = map.next_key::<&'de str>()? {
            let value: &'de RawValue = map.next_value()?;
            let (name, value) =
                place(self.text, name).zip(place(self.text, value.get())).ok_or_else(unusual)?;
            members.push(Member { name, value });
        }
        if members.repeated(self.text).is_some() {
            return Err(unusual());
        }
        RawObject::cut(self.text, members).ok_or_else(unusual)
    }
}

/// A member's name, borrowed if it has no escapes.
pub(crate) struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> de::Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// Whether JSON has line breaks: between tokens, because a string has none.
pub(crate) fn has_breaks(json: &[u8]) -> bool {
    // All bytes are looked at, and bytes are what is found, so that the compiler makes one wide pass of it.
    json.iter().fold(0, |found, byte| found | u8::from(*byte == b'\n') | u8::from(*byte == b'\r')) != 0
}

/// A member's name as it stands between the quotes.
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
        assert!(object.is_one_line() && !object.as_str().contains('\n'), "{object:?}");
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
            let mut deserializer = serde_json::Deserializer::from_str(text);
            let object = Within { text }.deserialize(&mut deserializer).unwrap().with("d", &four);
            assert!(object.iter().eq(read(object.as_str()).iter()), "{object:?}");
            assert_eq!((object.get("d"), object.get("e")), (Some("4"), None), "{text}");
            assert_eq!(object.get("a"), read(text).get("a"), "{text}");
        }
    }

    #[test]
    fn line_breaks_are_known_of() {
        let broken = RawValue::from_string("[1,\n2]".to_owned()).unwrap();
        let one = serde_json::value::to_raw_value(&1).unwrap();
        assert!(RawObject::empty().with("a", &one).is_one_line());
        assert!(!RawObject::empty().with("a", &broken).is_one_line());
        assert!(!read("{}").with("a", &one).is_one_line());
    }
}
