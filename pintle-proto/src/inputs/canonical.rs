//! Canonical JSON.

/// Writes JSON with sorted members and without white space.
///
/// No tree is built: it would round numbers, and two calls that differ only there would be equal. Each byte is read
/// once whatever the nesting, and nothing recurses. Invalid JSON is copied unchanged.
pub(super) fn canonical(text: &str, out: &mut String) {
    let mut reader = Reader { text, flat: String::with_capacity(text.len()), ..Reader::default() };
    if reader.read().is_none() {
        out.push_str(text);
    } else if reader.unsorted.is_empty() {
        out.push_str(&reader.flat);
    } else {
        reader.print(out);
    }
}

/// Copies JSON without its white space, and records which objects have to be reordered.
#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    at: usize,
    flat: String,
    open: Vec<OpenContainer>,
    /// The members of the open objects, the innermost last.
    members: Vec<Span>,
    /// The members of the objects in `unsorted`, sorted.
    sorted: Vec<Span>,
    unsorted: Vec<Unsorted>,
}

/// A range of `flat`.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

/// An object or array that is not closed yet.
struct OpenContainer {
    is_object: bool,
    /// The index of its first member in `members`.
    first: usize,
    start: usize,
    in_order: bool,
}

/// An object whose members are out of order.
struct Unsorted {
    span: Span,
    /// The range of its members in `sorted`.
    members: Span,
}

impl Reader<'_> {
    /// Reads one value and the surrounding white space. Returns `None` if it is invalid.
    fn read(&mut self) -> Option<()> {
        loop {
            // A value begins here; in an object its name comes first.
            if let Some(OpenContainer { is_object: true, .. }) = self.open.last() {
                self.name()?;
            }
            match self.peek()? {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    let start = self.flat.len();
                    self.flat.push(char::from(open));
                    let is_object = open == b'{';
                    self.open.push(OpenContainer {
                        is_object,
                        first: self.members.len(),
                        start,
                        in_order: true,
                    });
                    if self.peek()? != if is_object { b'}' } else { b']' } {
                        continue;
                    }
                }
                b'"' => {
                    let string = self.string()?;
                    self.flat.push_str(&string);
                }
                _ => {
                    let rest = self.text.get(self.at..)?;
                    let length = rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                    self.flat.push_str(rest.get(..length).filter(|word| !word.is_empty())?);
                    self.at += length;
                }
            }
            // A value ends here, and possibly its container.
            loop {
                let Some(is_object) = self.open.last().map(|open| open.is_object) else {
                    return self.peek().is_none().then_some(());
                };
                match (self.peek()?, is_object) {
                    (b',', _) => {
                        self.at += 1;
                        self.flat.push(',');
                        break;
                    }
                    (b'}', true) | (b']', false) => self.close()?,
                    _ => return None,
                }
            }
        }
    }

    /// Reads a member's name and its colon.
    fn name(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.flat.len();
        let name = self.string()?;
        self.flat.push_str(&name);
        let open = self.open.last_mut()?;
        if self.members.len() > open.first
            && let Some(last) = self.members.last_mut()
        {
            last.end = start - 1;
            let before = self.flat.get(last.start..).map(printed_name);
            open.in_order &= before.is_some_and(|before| before < name.as_str());
        }
        self.members.push(Span { start, end: start });
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        self.flat.push(':');
        Some(())
    }

    /// Closes the innermost object or array.
    fn close(&mut self) -> Option<()> {
        let OpenContainer { is_object, first, start, in_order } = self.open.pop()?;
        self.at += 1;
        if let Some(last) = self.members.get_mut(first..)?.last_mut() {
            last.end = self.flat.len();
        }
        self.flat.push(if is_object { '}' } else { ']' });
        if !in_order {
            let begin = self.sorted.len();
            self.sorted.extend(self.members.drain(first..));
            let flat = &self.flat;
            let name = |span: &Span| flat.get(span.start..span.end).map(printed_name);
            // The sort is stable, so duplicate names, which no reader accepts, keep their order.
            self.sorted.get_mut(begin..)?.sort_by(|one, other| name(one).cmp(&name(other)));
            let members = Span { start: begin, end: self.sorted.len() };
            self.unsorted.push(Unsorted { span: Span { start, end: self.flat.len() }, members });
        }
        self.members.truncate(first);
        Some(())
    }

    /// Reads a string, and returns it in canonical form.
    fn string(&mut self) -> Option<String> {
        let rest = self.text.get(self.at..)?;
        let mut escaped = false;
        let mut length = None;
        let mut bytes = rest.bytes().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    length = Some(at + 1);
                    break;
                }
                b'\\' => {
                    escaped = true;
                    bytes.next();
                }
                _ => {}
            }
        }
        let length = length?;
        let text = rest.get(..length)?;
        self.at += length;
        if !escaped {
            return Some(text.to_owned());
        }
        // A lone surrogate has no other form.
        Some(
            serde_json::from_str::<String>(text)
                .map_or_else(|_| text.to_owned(), |string| serde_json::Value::from(string).to_string()),
        )
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied()
    }

    /// Writes the copy, with the members of each object in order.
    fn print(mut self, out: &mut String) {
        self.unsorted.sort_unstable_by_key(|object| object.span.start);
        // A stack of the ranges still to be written.
        let mut left = vec![("", Span { start: 0, end: self.flat.len() })];
        while let Some((before, Span { start, end })) = left.pop() {
            out.push_str(before);
            let next = self.unsorted.partition_point(|object| object.span.start < start);
            let next = self.unsorted.get(next).filter(|object| object.span.start < end);
            let Some(Unsorted { span, members }) = next else {
                out.push_str(self.flat.get(start..end).unwrap_or_default());
                continue;
            };
            out.push_str(self.flat.get(start..span.start).unwrap_or_default());
            left.push(("}", Span { start: span.end, end }));
            let members = self.sorted.get(members.start..members.end).unwrap_or_default();
            let members = members.iter().enumerate().rev();
            left.extend(members.map(|(at, member)| (if at == 0 { "{" } else { "," }, *member)));
        }
    }
}

/// Returns the quoted name of a member.
fn printed_name(member: &str) -> &str {
    let mut bytes = member.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return member.get(..=at).unwrap_or(member),
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    member
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn printed(text: &str) -> String {
        let mut out = String::new();
        canonical(text, &mut out);
        out
    }

    #[test]
    fn members_are_sorted_at_every_depth() {
        for (text, expected) in [
            ("{}", "{}"),
            (" [ ] ", "[]"),
            (r#"{"b": 1, "a": [ {"d": {}, "c": 1e5} , null]}"#, r#"{"a":[{"c":1e5,"d":{}},null],"b":1}"#),
            (
                r#"{"b":{"z":1,"y":{"k":0,"j":[{"q":1,"p":2}]}},"a":0}"#,
                r#"{"a":0,"b":{"y":{"j":[{"p":2,"q":1}],"k":0},"z":1}}"#,
            ),
            (r#"{"\u0061":"\u0062\n","A":"\ud800"}"#, r#"{"A":"\ud800","a":"b\n"}"#),
            (r#"{"a\"b":1,"a":2}"#, r#"{"a":2,"a\"b":1}"#),
            (r#"{"a\"c":1,"a\"b":2}"#, r#"{"a\"b":2,"a\"c":1}"#),
            (r#"{"a":2,"a":1}"#, r#"{"a":2,"a":1}"#),
            (r#"{"b":0,"a":2,"a":1}"#, r#"{"a":2,"a":1,"b":0}"#),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            assert_eq!(printed(text), expected, "{text}");
            assert_eq!(printed(expected), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_copied() {
        for text in
            ["", " ", "{", "[1", "{\"a\"}", "{\"a\":1]", "[1}", "{1:2}", "1 2", "\"a", "[,]", "{\"a\":1,}"]
        {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn depth_costs_no_more_than_length() {
        // The inner members come first, so every level is printed in another order than it came. One that reads or copies
        // each level again would take 10^10 steps.
        let depth = 100_000;
        let text = format!("{}0{}", "{\"b\":".repeat(depth), ",\"a\":1}".repeat(depth));
        let expected = format!("{}0{}", "{\"a\":1,\"b\":".repeat(depth), "}".repeat(depth));
        assert!(printed(&text) == expected);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c\"\\\\ \n]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\]{0,3}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Prints it with white space, and with its members in some other order.
    fn shuffled(value: &Value, seed: u64, out: &mut String) {
        match value {
            Value::Array(items) => {
                out.push_str("[ ");
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "\n," });
                    shuffled(item, seed.rotate_left(7), out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if !members.is_empty() {
                    let turn = usize::try_from(seed % 7).unwrap() % members.len();
                    members.rotate_left(turn);
                }
                out.push('{');
                for (at, (name, value)) in members.into_iter().enumerate() {
                    out.push_str(if at == 0 { "\t" } else { " , " });
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push_str(" : ");
                    shuffled(value, seed.rotate_left(11), out);
                }
                out.push('}');
            }
            other => out.push_str(&other.to_string()),
        }
    }

    proptest! {
        #[test]
        fn one_value_is_printed_in_one_way(value in json(), seed: u64) {
            let mut text = String::new();
            shuffled(&value, seed, &mut text);
            let once = printed(&text);
            prop_assert_eq!(&once, &printed(&value.to_string()));
            prop_assert_eq!(&once, &printed(&once));
            let again: Value = serde_json::from_str(&once).unwrap();
            prop_assert_eq!(again, value);
        }

        #[test]
        fn other_values_are_printed_in_another(one in json(), other in json()) {
            prop_assert_eq!(printed(&one.to_string()) == printed(&other.to_string()), one == other);
        }

        #[test]
        fn nothing_panics(text in "[{}\\[\\]\":, a1\\\\]{0,40}") {
            let _ = printed(&text);
        }
    }
}
