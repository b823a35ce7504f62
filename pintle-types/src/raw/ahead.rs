//! Long requests. One pass finds out where everything is and decodes the texts among the arguments; the message itself
//! becomes the params, without a copy. (Measured: of 1 MiB with an escape every twenty bytes, finding its end takes 400 µs
//! and decoding it then 650; together they take 650.)

use std::{
    borrow::Cow,
    fmt,
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use serde::{
    Deserialize, Deserializer,
    de::{
        self, DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::MapDeserializer,
    },
};

use super::{
    Index, RawObject,
    members::{Member, place, slice},
};
use crate::{Request, RequestId};

/// The members of `arguments`, and what was decoded of them until somebody takes it.
pub(super) struct Ahead {
    members: Vec<Member>,
    decoded: Mutex<Option<Vec<Decoded>>>,
}

/// What is known of a value besides its text.
enum Decoded {
    /// Nothing.
    No,
    /// It is a string without escapes.
    Plain,
    /// It is this string.
    Text(String),
}

const ARGUMENTS: &str = "arguments";
const MOST_ARGUMENTS: usize = 64;

impl Ahead {
    pub(super) fn take<'a, T: Deserialize<'a>>(&'a self, text: &'a str, name: &str) -> Option<T> {
        if name != ARGUMENTS {
            return None;
        }
        let decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let values = self.members.iter().zip(decoded).map(|(member, decoded)| {
            (slice(text, member.name), Value { text: slice(text, member.value), decoded })
        });
        // Whoever decodes the text says what is wrong with it.
        T::deserialize(MapDeserializer::<_, serde_json::Error>::new(values)).ok()
    }
}

/// Reads a request, or gives back what is none, or one that is put in an unusual way.
pub(crate) fn long_request(text: Cow<'_, str>) -> Result<Request, Cow<'_, str>> {
    let Some(Found { id, method, params, members, ahead }) = find(&text) else { return Err(text) };
    let mut text = text.into_owned();
    text.truncate(params.1 as usize);
    let params = RawObject {
        text,
        start: params.0 as usize,
        index: Index::Here(members.into()),
        one_line: false,
        prose: (0, 0),
        ahead: ahead.map(Box::new),
    };
    Ok(Request::new(id, crate::message::intern(method.into()), Some(params)))
}

struct Found {
    id: RequestId,
    method: String,
    params: (u32, u32),
    members: Vec<Member>,
    ahead: Option<Ahead>,
}

fn find(text: &str) -> Option<Found> {
    u32::try_from(text.len()).ok()?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let Envelope { names, id, method, params } = Envelope::seed().deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    let value = |names: &[&str], members: &[Member], name: &str| {
        members.get(names.iter().position(|other| *other == name)?).map(|member| member.value)
    };
    let outer = members(text, &names, text.trim_ascii_end().len().checked_sub(1)?)?;
    let place = value(&names, &outer, "params")?;
    let Params { names, arguments } = params?;
    let members = self::members(text, &names, place.1.checked_sub(1)? as usize)?;
    let ahead = match arguments {
        None => None,
        Some(Arguments { names: inner, decoded }) => {
            let close = value(&names, &members, ARGUMENTS)?.1.checked_sub(1)? as usize;
            let members = self::members(text, &inner, close)?;
            Some(Ahead { members, decoded: Mutex::new(Some(decoded)) })
        }
    };
    Some(Found { id: id?, method: method?.to_owned(), params: place, members, ahead })
}

/// The members of an object of which the names are known, and where its closing brace is: a value is what lies between
/// a name and the next.
fn members(text: &str, names: &[&str], close: usize) -> Option<Vec<Member>> {
    let mut members = Vec::with_capacity(names.len());
    let mut end = close;
    for name in names.iter().rev() {
        let name = place(text, name)?;
        let behind = text.get(name.1 as usize + 1..end)?;
        let value = behind.trim_ascii_start().strip_prefix(':')?.trim_ascii();
        members.push(Member { name, value: place(text, value)? });
        // The comma before it, or the opening brace.
        end = text.get(..(name.0 as usize).checked_sub(1)?)?.trim_ascii_end().len().checked_sub(1)?;
    }
    members.reverse();
    Some(members)
}

/// Names of members, each of them once, and few: for others there is the usual way.
fn once<'a, E: de::Error>(names: &mut Vec<&'a str>, name: &'a str) -> Result<(), E> {
    if names.len() >= 12 || names.contains(&name) {
        return Err(E::custom("unusual"));
    }
    names.push(name);
    Ok(())
}

/// What is looked at of a message.
#[derive(Default)]
struct Envelope<'a> {
    names: Vec<&'a str>,
    id: Option<RequestId>,
    method: Option<&'a str>,
    params: Option<Params<'a>>,
}

#[derive(Default)]
struct Params<'a> {
    names: Vec<&'a str>,
    arguments: Option<Arguments<'a>>,
}

#[derive(Default)]
struct Arguments<'a> {
    names: Vec<&'a str>,
    decoded: Vec<Decoded>,
}

/// An object that is read in this way.
trait Object<'de>: Default {
    fn member<A: MapAccess<'de>>(&mut self, name: &'de str, map: &mut A) -> Result<(), A::Error>;

    fn seed() -> Seed<Self> {
        Seed(PhantomData)
    }
}

struct Seed<T>(PhantomData<T>);

impl<'de, T: Object<'de>> DeserializeSeed<'de> for Seed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Object<'de>> Visitor<'de> for Seed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut object = T::default();
        // A name with escapes cannot be borrowed, which makes it unusual.
        while let Some(name) = map.next_key::<&'de str>()? {
            object.member(name, &mut map)?;
        }
        Ok(object)
    }
}

impl<'de> Object<'de> for Envelope<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &'de str, map: &mut A) -> Result<(), A::Error> {
        once(&mut self.names, name)?;
        match name {
            "jsonrpc" if map.next_value::<&str>()? == "2.0" => {}
            "id" => self.id = Some(map.next_value()?),
            "method" => self.method = Some(map.next_value()?),
            "params" => self.params = Some(map.next_value_seed(Params::seed())?),
            _ => return Err(de::Error::custom("unusual")),
        }
        Ok(())
    }
}

impl<'de> Object<'de> for Params<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &'de str, map: &mut A) -> Result<(), A::Error> {
        once(&mut self.names, name)?;
        if name == ARGUMENTS {
            self.arguments = Some(map.next_value_seed(Arguments::seed())?);
        } else {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'de> Object<'de> for Arguments<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &'de str, map: &mut A) -> Result<(), A::Error> {
        // What is known of a member takes more room than a short one: it is not to be a way to fill the memory.
        if self.names.len() >= MOST_ARGUMENTS {
            return Err(de::Error::custom("unusual"));
        }
        self.names.push(name);
        self.decoded.push(map.next_value()?);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Decoding)
    }
}

struct Decoding;

impl<'de> Visitor<'de> for Decoding {
    type Value = Decoded;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, _: &'de str) -> Result<Decoded, E> {
        Ok(Decoded::Plain)
    }

    fn visit_str<E>(self, text: &str) -> Result<Decoded, E> {
        Ok(Decoded::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Decoded, E> {
        Ok(Decoded::No)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Decoded, E> {
        Ok(Decoded::No)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Decoded, E> {
        Ok(Decoded::No)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Decoded, E> {
        Ok(Decoded::No)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Decoded, E> {
        Ok(Decoded::No)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Decoded, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Decoded::No)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Decoded, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Decoded::No)
    }
}

/// A value to be read: from what was decoded, else from its text.
struct Value<'de> {
    text: &'de str,
    decoded: Decoded,
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for Value<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads the text, whatever it is.
macro_rules! from_text {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Self::Error> {
            serde_json::Deserializer::from_str(self.text).$method($($name,)* visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.decoded {
            Decoded::No => serde_json::Deserializer::from_str(self.text).deserialize_any(visitor),
            Decoded::Plain => visitor.visit_borrowed_str(self.text.trim_matches('"')),
            Decoded::Text(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.decoded {
            Decoded::No => serde_json::Deserializer::from_str(self.text).deserialize_option(visitor),
            Decoded::Plain | Decoded::Text(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.decoded {
            Decoded::No => {
                serde_json::Deserializer::from_str(self.text).deserialize_newtype_struct(name, visitor)
            }
            Decoded::Plain | Decoded::Text(_) => visitor.visit_newtype_struct(self),
        }
    }

    from_text! {
        deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64();
        deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64();
        deserialize_u128(); deserialize_f32(); deserialize_f64(); deserialize_char(); deserialize_bytes();
        deserialize_byte_buf(); deserialize_unit(); deserialize_seq(); deserialize_map();
        deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::Message;

    fn call(arguments: &str) -> String {
        format!(
            " {{ \"jsonrpc\" : \"2.0\",\"params\" :\n{{ \"name\":\"x\" , \"arguments\" : {arguments} , \"_meta\":{{ }} }} ,\"id\":7,\"method\":\"tools/call\"}} "
        )
    }

    fn read(text: &str) -> Option<Request> {
        long_request(Cow::Borrowed(text)).ok()
    }

    #[test]
    fn the_message_becomes_the_params() {
        let every_kind = r#"{"a":"x\ny" , "b":[1, "]"],"c":{"}":"\""},"d":"","e":-1.5e3 }"#;
        for arguments in ["{}", every_kind, r#"{ "a":null}"#] {
            let text = call(arguments);
            let Ok(Message::Request(usual)) = Message::parse(text.as_bytes()) else { panic!("a request") };
            let request = read(&text).unwrap();
            assert_eq!((&request.id, &request.method), (&usual.id, &usual.method));
            let (params, usual) = (request.params.unwrap(), usual.params.unwrap());
            assert!(params.iter().eq(usual.iter()), "{params:?}");
            assert!(
                params.as_str().starts_with("{ \"name\"") && params.as_str().ends_with("{ } }"),
                "{params:?}"
            );
            assert_eq!(params.without(&[]), usual.without(&[]));
            assert_eq!(params.inner().len() + 2, params.as_str().len());
            assert_eq!(params.clone().into_string(), params.as_str());
            let tree = |object: &RawObject| object.decode::<serde_json::Value>().unwrap();
            assert_eq!(tree(&params), tree(&usual));
        }
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Fields {
        plain: String,
        escaped: String,
        #[serde(default)]
        perhaps: Option<String>,
        #[serde(default)]
        wrapped: Option<Wrapped>,
        number: u8,
        #[serde(default)]
        kind: Option<Kind>,
        #[serde(flatten)]
        others: crate::JsonObject,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wrapped(String);

    #[derive(Debug, Deserialize, PartialEq)]
    enum Kind {
        #[serde(rename = "\n")]
        Break,
    }

    #[test]
    fn what_was_decoded_is_taken_once() {
        for arguments in [
            r#"{"plain":"é","escaped":"\u00e9\"","number":1}"#,
            r#"{"plain":"","escaped":"\n","number":2,"perhaps":"\t","wrapped":"\\","others":["\n"],"x":"y\/"}"#,
            r#"{"plain":"","escaped":"\n","number":2,"perhaps":null,"kind":null}"#,
        ] {
            let params = read(&call(arguments)).unwrap().params.unwrap();
            assert!(params.take_member::<Fields>("name").is_none());
            let taken: Fields = params.take_member("arguments").unwrap();
            assert_eq!(taken, serde_json::from_str(arguments).unwrap());
            assert!(params.take_member::<Fields>("arguments").is_none(), "it is gone");
            assert_eq!(params.decode_member::<Fields>("arguments").unwrap(), Some(taken));
        }
    }

    #[test]
    fn what_cannot_be_taken_can_still_be_decoded() {
        let arguments = r#"{"plain":"","escaped":"\n","number":"\n"}"#;
        let params = read(&call(arguments)).unwrap().params.unwrap();
        assert!(params.take_member::<Fields>("arguments").is_none());
        assert!(params.decode_member::<Fields>("arguments").is_err());

        #[derive(Debug, Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            text: &'a RawValue,
            kind: Option<Kind>,
        }
        let params = read(&call(r#"{"text":"\n","kind":"\n"}"#)).unwrap().params.unwrap();
        assert!(params.take_member::<Raw<'_>>("arguments").is_none());
        let raw: Raw<'_> = params.decode_member("arguments").unwrap().unwrap();
        assert_eq!((raw.text.get(), raw.kind), (r#""\n""#, Some(Kind::Break)));
    }

    #[test]
    fn the_unusual_goes_the_usual_way() {
        for text in [
            "",
            "{",
            "5",
            r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"x","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"x","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"x","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{},"novel":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"x","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":null}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"\u0061":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"a":1e999}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{}} x"#,
        ] {
            assert!(read(text).is_none(), "{text}");
            assert_eq!(Message::parse_text(text.to_owned()), Message::parse(text.as_bytes()));
        }
        let many = |count: usize| call(&format!("{{{}}}", vec![r#""a":1"#; count].join(",")));
        assert!(read(&many(MOST_ARGUMENTS)).is_some());
        assert!(read(&many(MOST_ARGUMENTS + 1)).is_none());
    }
}
