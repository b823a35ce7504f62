use std::collections::BTreeMap;

use pintle::types::JsonObject;
use pintle_openapi::url::{encode, has_dots, literal};

use crate::{
    CallFault,
    argument::Argument,
    text::{Part, Place, Text},
};

/// A URL with places in its path and in the values of its query.
#[derive(Debug)]
pub(super) struct UrlTemplate {
    /// The scheme, the host and the port.
    pub(super) origin: String,
    path: Vec<Part>,
    query: Vec<Pair>,
}

/// A pair of a query or a form.
#[derive(Debug)]
pub(super) struct Pair {
    /// The name, as it is sent.
    name: String,
    /// The value, whose literals are as they are sent; `None` for a name alone.
    value: Option<Text>,
}

impl UrlTemplate {
    /// Reads a URL.
    pub(super) fn read(url: &str, arguments: &BTreeMap<String, Argument>) -> Result<Self, String> {
        let example = "write one such as `https://api.example.com/v1/cities/{city}`";
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(format!("`url` is no URL: {example}"));
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if [scheme, host].iter().any(|part| part.contains(['{', '}'])) {
            return Err("`url` has a place before its path, which would let a call choose the server: write the scheme, the host and the port".to_owned());
        }
        let rest = &rest[host.len()..];
        if rest.contains('#') {
            return Err("`url` has a fragment, which is not sent: remove it, or write `%23`".to_owned());
        }
        let mut both = Text(Text::parts(rest, arguments)?).split_literals('?').into_iter();
        let (path, query) = (both.next().unwrap_or_default(), both.next().unwrap_or_default());
        if both.next().is_some() {
            return Err("`url` has a second `?`: remove it, or write `%3F`".to_owned());
        }
        let query = query.split_literals('&').into_iter().filter(|pair| !pair.is_empty());
        let query = query.map(Pair::of).collect::<Result<_, _>>()?;
        Ok(Self { origin: format!("{scheme}://{host}"), path: checked_path(path.0)?, query })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let path = self.path.iter().filter_map(|part| match part {
            Part::Place(place) => Some(&*place.name),
            Part::Literal(_) => None,
        });
        path.chain(self.query.iter().flat_map(Pair::names))
    }

    /// Returns the URL of a call. `more` are pairs after those of the URL.
    pub(super) fn fill(&self, arguments: &JsonObject, more: &[Pair]) -> Result<String, CallFault> {
        let mut path = String::new();
        for part in &self.path {
            match part {
                Part::Literal(text) => path += text,
                Part::Place(place) => path += &segment(place, arguments)?,
            }
        }
        // A value may only together with what is around it be one.
        if has_dots(&path) {
            let message = "the values make a path with a segment `.` or `..`: send others";
            return Err(CallFault(message.to_owned()));
        }
        let path = if path.is_empty() { "/" } else { &path };
        let query = pairs(self.query.iter().chain(more), arguments);
        let before = if query.is_empty() { "" } else { "?" };
        Ok(format!("{}{path}{before}{query}", self.origin))
    }
}

/// Returns the path with its literals as they are sent.
fn checked_path(mut path: Vec<Part>) -> Result<Vec<Part>, String> {
    let mut whole = String::new();
    for part in &mut path {
        match part {
            Part::Literal(text) => {
                whole += text;
                *text = sent(text)?;
            }
            Part::Place(place) if place.is_list => {
                let name = &place.name;
                return Err(format!("`{name}` is a list, which a path has no place for: send it in `query`"));
            }
            // Beside a place, a dot is no segment.
            Part::Place(_) => whole.push('x'),
        }
    }
    match has_dots(&whole) {
        true => Err("the path of `url` has a segment `.` or `..`: remove it".to_owned()),
        false => Ok(path),
    }
}

/// Returns a literal of a URL as it is sent. What is encoded in it stays so.
fn sent(text: &str) -> Result<String, String> {
    let text = text.replace('{', "%7B").replace('}', "%7D");
    literal(&text).map_err(|wrong| {
        format!("`url` has `{}`, which cannot be there: remove it, or encode it", wrong.escape_default())
    })
}

/// Returns the value of a place in the path, encoded.
fn segment(place: &Place, arguments: &JsonObject) -> Result<String, CallFault> {
    let name = &place.name;
    let value = place.texts(arguments).pop().unwrap_or_default();
    match () {
        () if value.is_empty() => {
            Err(CallFault(format!("`{name}` is empty, and a part of the path: send a value")))
        }
        () if has_dots(&value) => Err(CallFault(format!(
            "`{name}` has a segment `.` or `..`, which would lead to another path: send a value without it"
        ))),
        () => Ok(encode(&value)),
    }
}

impl Pair {
    /// Reads a pair of a URL.
    fn of(pair: Text) -> Result<Self, String> {
        let mut parts = pair.0;
        let only = parts.len() == 1;
        match parts.first_mut() {
            Some(Part::Literal(name)) if only && !name.contains('=') => {
                Ok(Self { name: sent(name)?, value: None })
            }
            Some(Part::Literal(first)) if first.find('=').is_some_and(|at| at > 0) => {
                let (name, value) = first.split_once('=').unwrap_or_default();
                let name = sent(name)?;
                *first = value.to_owned();
                if first.is_empty() {
                    parts.remove(0);
                }
                Ok(Self { name, value: Some(Text(parts).refuse_lists(true)?.map_literals(sent)?) })
            }
            _ => Err("the query of `url` has a place outside of a value: write `name={place}`".to_owned()),
        }
    }

    /// Reads a pair of a table.
    pub(super) fn read(
        name: &str,
        value: &str,
        arguments: &BTreeMap<String, Argument>,
    ) -> Result<Self, String> {
        let value = Text::read(value, arguments, true)?.map_literals(|text| Ok(encode(text)))?;
        Ok(Self { name: encode(name), value: Some(value) })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.value.iter().flat_map(Text::names)
    }
}

/// Returns pairs as a query or a form has them.
pub(super) fn pairs<'a>(pairs: impl Iterator<Item = &'a Pair>, arguments: &JsonObject) -> String {
    let mut written = Vec::new();
    for pair in pairs {
        match &pair.value {
            None => written.push(pair.name.clone()),
            Some(value) => {
                let values = value.texts_with(arguments, encode).into_iter();
                written.extend(values.map(|value| format!("{}={value}", pair.name)));
            }
        }
    }
    written.join("&")
}

#[cfg(test)]
mod tests {
    use ::url::{Position, Url};
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::ArgumentEntry;

    fn template(url: &str) -> Result<UrlTemplate, String> {
        let types =
            [("a", "string?"), ("b", "string?"), ("n", "integer?"), ("l", "string[]?"), ("f", "boolean?")];
        let entry = |kind: &str| ArgumentEntry::Brief(kind.to_owned()).argument().unwrap();
        let arguments = types.map(|(name, kind)| (name.to_owned(), entry(kind))).into();
        UrlTemplate::read(url, &arguments)
    }

    fn fill(url: &str, arguments: &Value) -> Result<String, String> {
        let arguments = arguments.as_object().unwrap();
        template(url).unwrap().fill(arguments, &[]).map_err(|fault| fault.to_string())
    }

    #[test]
    fn values_stand_in_their_places() {
        for (url, arguments, expected) in [
            ("https://h/v1/{a}/x", json!({"a": "New York/ü"}), "https://h/v1/New%20York%2F%C3%BC/x"),
            ("https://h:8/{a}.json", json!({"a": "x?y#z"}), "https://h:8/x%3Fy%23z.json"),
            ("https://h", json!({}), "https://h/"),
            ("https://h?q={a}", json!({"a": "b&c=d"}), "https://h/?q=b%26c%3Dd"),
            ("https://h/?x=1&q={a}-{n}&r={b}", json!({"a": "+", "n": 7}), "https://h/?x=1&q=%2B-7"),
            ("https://h/?q={l}&all", json!({"l": ["1", "a b"]}), "https://h/?q=1&q=a%20b&all"),
            ("https://h/?q=a%20b&r=c+{a}", json!({"a": "x&"}), "https://h/?q=a%20b&r=c+x%26"),
            ("https://h/?deep={f?yes}", json!({"f": true}), "https://h/?deep=yes"),
            ("https://h/?deep={f?yes}", json!({"f": false}), "https://h/"),
            ("https://h/a b/{{x}}/%20", json!({}), "https://h/a%20b/%7Bx%7D/%20"),
        ] {
            assert_eq!(fill(url, &arguments).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn what_would_lead_elsewhere_is_refused() {
        for value in ["", ".", "..", "../x", "x/..", "%2e%2e", "%252e.", "..\\x"] {
            assert!(fill("https://h/v1/{a}/x", &json!({"a": value})).is_err(), "{value}");
        }
        assert!(fill("https://h/{a}", &json!({})).unwrap_err().contains("`a` is empty"));
        assert!(fill("https://h/{a}{b}/x", &json!({"a": ".", "b": "."})).is_err());
        assert!(fill("https://h/.{a}/x", &json!({"a": "%2e"})).is_err());
        for (url, expected) in [
            ("{a}://h/", "choose the server"),
            ("https://{a}.example/", "choose the server"),
            ("https://h:{n}/", "choose the server"),
            ("https://{a}@h/", "choose the server"),
            ("h/x", "is no URL"),
            ("https://h/#{a}", "a fragment"),
            ("https://h/../{a}", "a segment `.` or `..`"),
            ("https://h/%2e%2e/", "a segment `.` or `..`"),
            ("https://h/{l}", "`l` is a list"),
            ("https://h/?q=x{l}", "`l` is a list"),
            ("https://h/?{a}=1", "outside of a value"),
            ("https://h/?{a}", "outside of a value"),
            ("https://h/{c}", "`{c}` is no argument"),
            ("https://h/{a", "a `{` of no place"),
            ("https://h/a\\b", "cannot be there"),
        ] {
            let wrong = template(url).map(|_| ()).unwrap_err();
            assert!(wrong.contains(expected), "{url}: {wrong}");
        }
    }

    proptest! {
        /// Another parser reads the same host, as many segments, and the values that were sent.
        #[test]
        fn another_parser_reads_the_values(a in ".{1,12}", b in ".{0,12}") {
            let url = fill("https://h.example:8443/v1/{a}/end?q={b}&r=2", &json!({"a": a, "b": b}));
            prop_assume!(url.is_ok());
            let url = Url::parse(&url.unwrap()).unwrap();
            prop_assert_eq!(&url[..Position::BeforePath], "https://h.example:8443");
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 3);
            prop_assert_eq!(percent_decode_str(segments[1]).decode_utf8().unwrap(), a);
            let pairs: Vec<_> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(pairs, [("q".to_owned(), b), ("r".to_owned(), "2".to_owned())]);
            prop_assert_eq!(url.fragment(), None);
        }
    }
}
