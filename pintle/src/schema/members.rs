//! Explains faults of members and items.

use std::mem;

use pintle_uri::nearest;
use serde_json::Value;

use super::{
    Fault,
    explain::{Explainer, Findings, InstanceLocation, Members},
    words::{ANYTHING, LEFT_OUT, asked, either, quoted, shown},
};

impl<'a> Explainer<'a> {
    pub(super) fn look_at_members(
        &mut self,
        schema: &'a Members,
        members: &Members,
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (name, member) in members {
            if findings.is_full() {
                return;
            }
            let own = properties.and_then(|properties| properties.get(name));
            let mut known = own.is_some();
            if let Some(own) = own {
                position.at(name, |position| self.look(own, member, position, findings));
            }
            for (pattern, matched) in patterns.into_iter().flatten() {
                if self.admits_name(pattern, matched, name) {
                    known = true;
                    position.at(name, |position| self.look(matched, member, position, findings));
                }
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) if !known => findings.add(|| {
                    let names: Vec<&str> =
                        properties.into_iter().flat_map(Members::keys).map(String::as_str).collect();
                    let patterns: Vec<&str> =
                        patterns.into_iter().flat_map(Members::keys).map(String::as_str).collect();
                    unknown(position, name, member, &names, &patterns)
                }),
                Some(other) if !known => {
                    position.at(name, |position| self.look(other, member, position, findings))
                }
                _ => {}
            }
            if let Some(names) = schema.get("propertyNames") {
                self.look_at_name(names, name, position, findings);
            }
        }
        self.look_for_missing(schema, members, position, findings);
        for (name, dependent) in
            schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten()
        {
            if members.contains_key(name) {
                self.look(dependent, value, position, findings);
            }
        }
    }

    fn look_for_missing(
        &mut self,
        schema: &'a Members,
        members: &Members,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let dependent = schema.get("dependentRequired").and_then(Value::as_object).into_iter().flatten();
        let dependent = dependent.filter(|(name, _)| members.contains_key(*name));
        let required = schema.get("required").map(|names| (None, names)).into_iter();
        for (because, names) in required.chain(dependent.map(|(name, names)| (Some(name), names))) {
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            for name in names.filter(|name| !members.contains_key(*name)) {
                let own =
                    properties.and_then(|properties| properties.get(name)).map(|own| self.local.meant(own));
                findings.add(|| {
                    // A name that the schema defines is not a misspelling.
                    let strangers = members.keys().map(String::as_str);
                    let strangers = strangers
                        .filter(|key| properties.is_none_or(|properties| !properties.contains_key(*key)));
                    let near =
                        nearest(name, strangers).map(|near| format!("is {} meant for it?", quoted(near)));
                    let because = because.map(|because| format!("{} needs it", quoted(because)));
                    let expected = own.map_or_else(|| ANYTHING.to_owned(), asked);
                    Fault::missing(position.pointer_to(name), expected).with_hint(near.or(because))
                });
            }
        }
    }

    fn look_at_name(
        &mut self,
        names: &'a Value,
        name: &str,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        // The value made of the name is temporary, so nothing may be cached by its address.
        let verdicts = mem::take(&mut self.verdicts);
        let mut inner = Findings::up_to(1);
        self.look(names, &Value::from(name), position, &mut inner);
        self.verdicts = verdicts;
        if let Some(fault) = inner.faults.pop() {
            findings.add(|| {
                let expected = format!("named by {}", fault.expected);
                Fault::wrong(&position.pointer_to(name), expected, fault.got)
            });
        }
    }

    pub(super) fn look_at_items(
        &mut self,
        schema: &'a Members,
        items: &[Value],
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        // Older dialects have the first items as a list in `items`.
        let first = schema.get("prefixItems").or(schema.get("items")).and_then(Value::as_array);
        let first: &[Value] = first.map_or(&[], Vec::as_slice);
        let rest = schema.get("items").filter(|items| !items.is_array());
        for (index, item) in items.iter().enumerate() {
            if findings.is_full() {
                return;
            }
            if let Some(own) = first.get(index).or(rest) {
                position.at(&index.to_string(), |position| self.look(own, item, position, findings));
            }
        }
        if let Some(contained) = schema.get("contains") {
            let fitting =
                items.iter().filter(|item| self.fits(contained, item, position) == Some(true)).count();
            let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
            let min = limit("minContains").unwrap_or(1);
            let max = limit("maxContains").unwrap_or(u64::MAX);
            let fitting = u64::try_from(fitting).unwrap_or(u64::MAX);
            if !self.lost && !(min..=max).contains(&fitting) {
                let count = if fitting < min { format!("at least {min}") } else { format!("at most {max}") };
                let each = asked(self.local.meant(contained));
                findings.add(|| {
                    let expected = format!("a list, {count} of its items {each}");
                    Fault::wrong(&position.pointer, expected, format!("one with {fitting}"))
                });
            }
        }
    }

    pub(super) fn look_at_unevaluated(
        &mut self,
        schema: &'a Members,
        other: &'a Value,
        members: &Members,
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        let mut names = Vec::new();
        self.known_names(schema, &mut names, 0);
        for (name, member) in members {
            if findings.is_full() || self.covers(schema, value, name, position, 0) {
                continue;
            }
            if *other == Value::Bool(false) {
                findings.add(|| unknown(position, name, member, &names, &[]));
            } else {
                position.at(name, |position| self.look(other, member, position, findings));
            }
        }
    }
}

fn unknown(
    position: &mut InstanceLocation,
    name: &str,
    member: &Value,
    names: &[&str],
    patterns: &[&str],
) -> Fault {
    let hint = nearest(name, names.iter().copied()).map(|near| format!("did you mean {}?", quoted(near)));
    let names = names.iter().map(|name| quoted(name));
    let patterns = patterns.iter().map(|pattern| format!("a name that matches {}", quoted(pattern)));
    let known: Vec<String> = names.chain(patterns).collect();
    let expected = if known.is_empty() { LEFT_OUT.to_owned() } else { either(known) };
    Fault::unknown(position.pointer_to(name), expected, shown(member)).with_hint(hint)
}
