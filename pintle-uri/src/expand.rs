use super::{
    error::TemplateError,
    parse::{Expression, Operator, Part, Variable, parse},
    percent::{Set, encode_into},
};

/// Expands any RFC 6570 template, including those that cannot be matched.
///
/// ```
/// use pintle_uri::{Values, expand};
///
/// let values = Values::new().set("title", "to do").set("tag", ["home", "urgent"]);
/// assert_eq!(expand("note://{title}{?tag*}", &values)?, "note://to%20do?tag=home&tag=urgent");
/// # Ok::<(), pintle_uri::TemplateError>(())
/// ```
pub fn expand(template: &str, values: &Values) -> Result<String, TemplateError> {
    Ok(expand_parts(&parse(template)?, values))
}

/// The values of variables for an expansion. A variable without a value expands to nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Values {
    values: Vec<(String, Value)>,
}

impl Values {
    /// Creates an empty set of values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a variable.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let (name, value) = (name.into(), value.into());
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.values.push((name, value)),
        }
        self
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.values.iter().find_map(|(known, value)| (known == name).then_some(value))
    }
}

/// The value of a variable.
#[expect(clippy::exhaustive_enums, reason = "RFC 6570 has these three")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// A list of texts. An empty one counts as no value.
    List(Vec<String>),
    /// Pairs of keys and texts, in order. An empty map counts as no value.
    Map(Vec<(String, String)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<Vec<String>> for Value {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(list: [&str; N]) -> Self {
        Self::List(list.map(str::to_owned).into())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Value {
    fn from(map: [(&str, &str); N]) -> Self {
        Self::Map(map.map(|(key, text)| (key.to_owned(), text.to_owned())).into())
    }
}

pub(super) fn expand_parts(parts: &[Part], values: &Values) -> String {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => encode_into(&mut out, text, Set::ANY, true),
            Part::Expression(Expression { operator, variables }) => {
                let mut first = true;
                for variable in variables {
                    if let Some(value) = values.find(&variable.name).filter(|value| value.is_defined()) {
                        out.push_str(if first { operator.lead() } else { operator.separator() });
                        first = false;
                        expand_one(&mut out, *operator, variable, value);
                    }
                }
            }
        }
    }
    out
}

impl Value {
    fn is_defined(&self) -> bool {
        match self {
            Self::String(_) => true,
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
        }
    }
}

fn expand_one(out: &mut String, operator: Operator, variable: &Variable, value: &Value) {
    let allowed = if operator.keeps_reserved() { Set::ANY } else { Set::UNRESERVED };
    let encode = |out: &mut String, text: &str| encode_into(out, text, allowed, operator.keeps_reserved());
    // A parameter without a value is its bare name; a query's keeps the `=`.
    let equals = |empty| if empty && operator == Operator::Parameter { "" } else { "=" };
    let separate = |out: &mut String, i| {
        if i > 0 {
            out.push_str(if variable.explode { operator.separator() } else { "," });
        }
    };

    if operator.named() && (!variable.explode || matches!(value, Value::String(_))) {
        out.push_str(&variable.name);
        out.push_str(equals(match value {
            Value::String(text) => text.is_empty(),
            Value::List(list) => matches!(list.as_slice(), [only] if only.is_empty()),
            Value::Map(_) => false,
        }));
    }
    match value {
        Value::String(text) => {
            let end = variable.prefix.and_then(|length| text.char_indices().nth(length));
            encode(out, end.map_or(text, |(end, _)| &text[..end]));
        }
        Value::List(list) => {
            for (i, text) in list.iter().enumerate() {
                separate(out, i);
                if operator.named() && variable.explode {
                    out.push_str(&variable.name);
                    out.push_str(equals(text.is_empty()));
                }
                encode(out, text);
            }
        }
        Value::Map(map) => {
            for (i, (key, text)) in map.iter().enumerate() {
                separate(out, i);
                encode(out, key);
                out.push_str(if !variable.explode {
                    ","
                } else if operator.named() {
                    equals(text.is_empty())
                } else {
                    "="
                });
                encode(out, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The variables of RFC 6570 §3.2.
    fn values() -> Values {
        Values::new()
            .set("count", ["one", "two", "three"])
            .set("dom", ["example", "com"])
            .set("dub", "me/too")
            .set("hello", "Hello World!")
            .set("half", "50%")
            .set("var", "value")
            .set("who", "fred")
            .set("base", "http://example.com/home/")
            .set("path", "/foo/bar")
            .set("list", ["red", "green", "blue"])
            .set("keys", [("semi", ";"), ("dot", "."), ("comma", ",")])
            .set("v", "6")
            .set("x", "1024")
            .set("y", "768")
            .set("empty", "")
            .set("empty_keys", Value::Map(vec![]))
            .set("none", Value::List(vec![]))
            .set("blank", [""])
            .set("blanks", ["", ""])
            .set("blank_keys", [("a", ""), ("b", "c")])
    }

    #[test]
    fn every_operator_and_modifier() {
        for (template, uri) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("O{empty}X", "OX"),
            ("O{undef}X", "OX"),
            ("{x,y}", "1024,768"),
            ("{x,hello,y}", "1024,Hello%20World%21,768"),
            ("?{x,undef}", "?1024"),
            ("{var:3}", "val"),
            ("{var:30}", "value"),
            ("{list}", "red,green,blue"),
            ("{list*}", "red,green,blue"),
            ("{keys}", "semi,%3B,dot,.,comma,%2C"),
            ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
            ("{+hello}", "Hello%20World!"),
            ("{+half}", "50%25"),
            ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
            ("{+base}index", "http://example.com/home/index"),
            ("up{+path}{var}/here", "up/foo/barvalue/here"),
            ("{+path:6}/here", "/foo/b/here"),
            ("{+list}", "red,green,blue"),
            ("{+keys}", "semi,;,dot,.,comma,,"),
            ("{+keys*}", "semi=;,dot=.,comma=,"),
            ("{#path,x}/here", "#/foo/bar,1024/here"),
            ("foo{#empty}", "foo#"),
            ("foo{#undef}", "foo"),
            ("{#keys*}", "#semi=;,dot=.,comma=,"),
            ("www{.dom*}", "www.example.com"),
            ("X{.list}", "X.red,green,blue"),
            ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
            ("X{.empty_keys*}", "X"),
            ("X{.empty}", "X."),
            ("{/var,x}/here", "/value/1024/here"),
            ("{/var:1,var}", "/v/value"),
            ("{/list*}", "/red/green/blue"),
            ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
            ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{;v,empty,who}", ";v=6;empty;who=fred"),
            ("{;hello:5}", ";hello=Hello"),
            ("{;list}", ";list=red,green,blue"),
            ("{;list*}", ";list=red;list=green;list=blue"),
            ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
            ("{;blank,blanks}", ";blank;blanks=,"),
            ("{;blanks*}", ";blanks;blanks"),
            ("{;blank_keys*}", ";a;b=c"),
            ("{?blank_keys*}", "?a=&b=c"),
            ("{/blank_keys*}", "/a=/b=c"),
            ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("{?x,y,undef}", "?x=1024&y=768"),
            ("{?var:3}", "?var=val"),
            ("{?list}", "?list=red,green,blue"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
            ("{?none,empty_keys*}", ""),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{&var:3}", "&var=val"),
            ("{&list*}", "&list=red&list=green&list=blue"),
            ("caf\u{e9} %41{x}", "caf%C3%A9%20%411024"),
        ] {
            assert_eq!(expand(template, &values()).unwrap(), uri, "{template}");
        }
    }

    mod against_another_implementation {
        use std::collections::{BTreeMap, HashMap};

        use proptest::prelude::*;
        use stduritemplate::Value as Other;

        use super::*;

        // Where the other one departs from RFC 6570 §3.2.1, our table above says what we do: a `%` that encodes nothing,
        // and empty members of lists and maps after `;`.
        fn value() -> impl Strategy<Value = Value> {
            let text = || "[a-zé/?#&=,;:. ]{1,8}";
            prop_oneof![
                "[a-zé/?#&=,;:. ]{0,8}".prop_map(Value::String),
                prop::collection::vec(text(), 0..3).prop_map(Value::List),
                prop::collection::btree_map("[a-z]{1,3}", text(), 0..3)
                    .prop_map(|map| Value::Map(map.into_iter().collect())),
            ]
        }

        proptest! {
            #[test]
            fn the_same_uri(
                operator in "[+#./;?&]?",
                modifiers in prop::collection::vec("(\\*)?", 1..4),
                literal in "[a-z/:.]{0,6}",
                values in prop::collection::btree_map("[abc]", value(), 0..4),
            ) {
                let names: Vec<_> =
                    modifiers.iter().zip(["a", "b", "c"]).map(|(modifier, name)| format!("{name}{modifier}")).collect();
                let template = format!("{literal}{{{operator}{}}}{literal}", names.join(","));
                let ours = values.iter().fold(Values::new(), |all, (name, value)| all.set(name.as_str(), value.clone()));
                prop_assert_eq!(expand(&template, &ours).unwrap(), theirs(&template, &values), "{}", template);
            }

            #[test]
            fn the_same_prefix(operator in "[+#./;?&]?", length in 1..6, text in "[a-zé ]{0,8}") {
                let template = format!("x{{{operator}a:{length}}}");
                let values = BTreeMap::from([("a".to_owned(), Value::String(text.clone()))]);
                let ours = Values::new().set("a", text);
                prop_assert_eq!(expand(&template, &ours).unwrap(), theirs(&template, &values), "{}", template);
            }
        }

        fn theirs(template: &str, values: &BTreeMap<String, Value>) -> String {
            let mut all = HashMap::new();
            for (name, value) in values {
                let value = match value.clone() {
                    Value::String(text) => Other::String(text),
                    Value::List(list) => Other::List(list.into_iter().map(Other::String).collect()),
                    Value::Map(map) => {
                        Other::Map(map.into_iter().map(|(key, text)| (key, Other::String(text))).collect())
                    }
                };
                all.insert(name.clone(), value);
            }
            stduritemplate::expand(template, &all).unwrap()
        }
    }
}
