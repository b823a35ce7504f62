//! Events to a value.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, Span, StrInput};
use serde_json::{Map, Value};

use crate::{
    Limits,
    error::{Position, YamlError},
    scalar::scalar,
};

/// The bytes that a value is counted with besides its texts.
const NODE: usize = 32;

pub(crate) fn read(text: &str, limits: &Limits) -> Result<Value, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > limits.bytes {
        let reason = format!("the text has more than {} bytes; split it up", limits.bytes);
        return Err(YamlError::new(Position { line: 1, column: 1 }, reason));
    }
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        at: Position { line: 1, column: 1 },
        limits,
        anchors: HashMap::new(),
        aliased: 0,
    };
    let mut value = None;
    while let Some(event) = reader.next()? {
        match event {
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            Event::StreamEnd => break,
            _ if value.is_some() => return Err(reader.refuse("there are two documents; keep one")),
            event => value = Some(reader.value(event, 0)?.value),
        }
    }
    Ok(value.unwrap_or(Value::Null))
}

/// A value, and what it adds where it is put in place of an alias.
#[derive(Clone)]
struct Counted {
    value: Value,
    /// The levels below it.
    height: usize,
    bytes: usize,
}

impl Counted {
    fn leaf(value: Value) -> Self {
        let bytes = NODE + value.as_str().map_or(0, str::len);
        Self { value, height: 0, bytes }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    at: Position,
    limits: &'a Limits,
    /// The values that aliases may name, each with its bytes counted once for being kept.
    anchors: HashMap<usize, Counted>,
    aliased: usize,
}

impl<'a> Reader<'a> {
    fn refuse(&self, reason: impl Into<String>) -> YamlError {
        YamlError::new(self.at, reason)
    }

    fn next(&mut self) -> Result<Option<Event<'a>>, YamlError> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok((event, Span { start, .. }))) => {
                self.at = Position::of(&start);
                Ok(Some(event))
            }
            Some(Err(error)) => {
                let at = Position::of(error.marker());
                Err(YamlError::new(at, format!("it is not valid YAML: {}", error.info())))
            }
        }
    }

    fn expect(&mut self) -> Result<Event<'a>, YamlError> {
        self.next()?.ok_or_else(|| self.refuse("the text ends too early"))
    }

    /// Returns the value that begins with this event.
    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Counted, YamlError> {
        if depth > self.limits.depth {
            return Err(self.refuse(format!("it is nested more than {} deep; flatten it", self.limits.depth)));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, None) => {
                (anchor, Counted::leaf(scalar(&text, style).map_err(|reason| self.refuse(reason))?))
            }
            Event::SequenceStart(anchor, None) => (anchor, self.sequence(depth)?),
            Event::MappingStart(anchor, None) => (anchor, self.mapping(depth)?),
            Event::Alias(anchor) => return self.alias(anchor, depth),
            _ => return Err(self.refuse("there is a tag; write the value without it")),
        };
        if anchor > 0 && self.limits.aliased > 0 {
            self.count(value.bytes)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn sequence(&mut self, depth: usize) -> Result<Counted, YamlError> {
        let (mut items, mut height, mut bytes) = (Vec::new(), 0, NODE);
        loop {
            match self.expect()? {
                Event::SequenceEnd => return Ok(Counted { value: Value::Array(items), height, bytes }),
                event => {
                    let item = self.value(event, depth + 1)?;
                    (height, bytes) = (height.max(item.height + 1), bytes + item.bytes);
                    items.push(item.value);
                }
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Counted, YamlError> {
        let (mut members, mut height, mut bytes) = (Map::new(), 0, NODE);
        loop {
            let key = match self.expect()? {
                Event::MappingEnd => return Ok(Counted { value: Value::Object(members), height, bytes }),
                Event::Scalar(key, _, _, None) => key.into_owned(),
                _ => return Err(self.refuse("a key is not plain text; write a name")),
            };
            if key == "<<" {
                return Err(self.refuse("`<<` is not in YAML 1.2; write the members out"));
            }
            if members.contains_key(&key) {
                return Err(self.refuse(format!("`{key}` is there twice; remove one")));
            }
            let event = self.expect()?;
            let value = self.value(event, depth + 1)?;
            (height, bytes) = (height.max(value.height + 1), bytes + key.len() + value.bytes);
            members.insert(key, value.value);
        }
    }

    fn alias(&mut self, anchor: usize, depth: usize) -> Result<Counted, YamlError> {
        if self.limits.aliased == 0 {
            return Err(self.refuse("there is an alias; write the value out"));
        }
        let Some(known) = self.anchors.get(&anchor) else {
            return Err(self.refuse("an alias is within the value that it names; write the value out"));
        };
        if depth + known.height > self.limits.depth {
            return Err(self.refuse(format!("it is nested more than {} deep; flatten it", self.limits.depth)));
        }
        let bytes = known.bytes;
        self.count(bytes)?;
        Ok(self.anchors[&anchor].clone())
    }

    fn count(&mut self, bytes: usize) -> Result<(), YamlError> {
        self.aliased = self.aliased.saturating_add(bytes);
        if self.aliased > self.limits.aliased {
            let limit = self.limits.aliased;
            return Err(
                self.refuse(format!("its aliases stand for more than {limit} bytes; write less of it"))
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Result<Value, String> {
        read(text, &Limits::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        let yaml = "a: 1\nb: 1.0\nc: '1'\nd: yes\ne: true\nf: ~\ng: 2026-11-16\nh: 0x1F\ni: [x, {y: z}]\nj: |\n  one\n  two\nk: -007\nl: 1.2.3\nm:\n200: ok\n";
        let wanted = json!({
            "a": 1, "b": 1.0, "c": "1", "d": "yes", "e": true, "f": null, "g": "2026-11-16", "h": 31,
            "i": ["x", {"y": "z"}], "j": "one\ntwo\n", "k": -7, "l": "1.2.3", "m": null, "200": "ok",
        });
        assert_eq!(parsed(yaml).unwrap(), wanted);
        assert_eq!(parsed("").unwrap(), Value::Null);
        assert_eq!(parsed("\u{feff}a: 1").unwrap(), json!({"a": 1}));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused_with_its_place() {
        for (yaml, reason) in [
            ("a: 1\na: 2", "line 2, column 1: `a` is there twice"),
            ("a: !!binary aGk=", "column 4: there is a tag"),
            ("? [a]\n: b", "key"),
            ("a: .nan", "number"),
            ("a: [", "valid YAML"),
            ("a: 1\n---\nb: 2", "two documents"),
            ("x: &x {a: 1}\ny:\n  <<: *x", "line 3, column 3: `<<`"),
            ("a: &x [*x]", "within the value"),
            (&format!("a: {}{}", "[".repeat(200), "]".repeat(200)), "deep"),
        ] {
            let refused = parsed(yaml).unwrap_err();
            assert!(refused.contains(reason), "{yaml}: {refused}");
        }
        let limits = Limits { bytes: 10, ..Limits::default() };
        assert!(read("a: 123456789", &limits).unwrap_err().to_string().contains("bytes"));
    }

    #[test]
    fn aliases_are_counted_by_what_they_stand_for() {
        assert_eq!(parsed("a: &x {b: [1]}\nc: *x\nd: *x").unwrap()["d"]["b"][0], 1);
        let none = Limits { aliased: 0, ..Limits::default() };
        assert!(read("a: &x 1\nb: *x", &none).unwrap_err().to_string().contains("alias"));
        let mut bomb = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let below = vec![format!("*l{}", level - 1); 10].join(", ");
            bomb += &format!("l{level}: &l{level} [{below}]\n");
        }
        assert!(parsed(&bomb).unwrap_err().contains("stand for more"));
        let mut tower = String::from("l0: &l0 [x]\n");
        for level in 1..200 {
            tower += &format!("l{level}: &l{level} [*l{}]\n", level - 1);
        }
        assert!(parsed(&tower).unwrap_err().contains("deep"));
        let long = format!("a: &x {}\nb: [{}]", "y".repeat(100_000), vec!["*x"; 20].join(", "));
        assert!(parsed(&long).unwrap_err().contains("stand for more"));
    }
}
