//! Explains faults of `allOf`, `anyOf`, `oneOf`, `not` and `if`, and collects the members that they define.

use pintle_uri::nearest;
use serde_json::Value;

use super::{
    Fault,
    explain::{Explainer, Findings, InstanceLocation, Members, did_you_mean},
    fault::MAX_FAULTS,
    words::{asked, either, shown},
};

/// The maximum number of references and branches that are followed for names.
const MAX_TURNS: usize = 16;

impl<'a> Explainer<'a> {
    pub(super) fn look_at_alternatives(
        &mut self,
        schema: &'a Members,
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        for each in branches(schema, "allOf") {
            self.look(each, value, position, findings);
        }
        if let Some(when) = schema.get("if") {
            let follows = match self.fits(when, value, position) {
                Some(true) => schema.get("then"),
                Some(false) => schema.get("else"),
                None => None,
            };
            if let Some(follows) = follows {
                self.look(follows, value, position, findings);
            }
        }
        if let Some(not) = schema.get("not")
            && self.fits(not, value, position) == Some(true)
        {
            let other = asked(self.local.meant(not));
            findings.add(|| {
                Fault::wrong(&position.pointer, format!("something other than {other}"), shown(value))
            });
        }
        if schema.contains_key("anyOf") {
            let any = branches(schema, "anyOf");
            if any.iter().all(|branch| self.fits(branch, value, position) == Some(false)) {
                self.look_at_branches(any, value, position, findings);
            }
        }
        if schema.contains_key("oneOf") {
            self.look_at_one_of(branches(schema, "oneOf"), value, position, findings);
        }
    }

    fn look_at_one_of(
        &mut self,
        one: &'a [Value],
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        let verdicts: Vec<_> = one.iter().map(|branch| self.fits(branch, value, position)).collect();
        let fitting: Vec<&Value> = one
            .iter()
            .zip(&verdicts)
            .filter(|(_, fits)| **fits == Some(true))
            .map(|(branch, _)| branch)
            .collect();
        if fitting.len() > 1 {
            let names = fitting.into_iter().map(|branch| asked(self.local.meant(branch)));
            let names = names.collect::<Vec<_>>().join(", ");
            findings.add(|| {
                Fault::wrong(&position.pointer, format!("only one of: {names}"), shown(value))
                    .with_hint(Some("it is more than one of these".to_owned()))
            });
        } else if verdicts.iter().all(|fits| *fits == Some(false)) {
            self.look_at_branches(one, value, position, findings);
        }
    }

    /// Explains a value that matches no branch: adds the faults of the intended branch, or else lists the branches.
    fn look_at_branches(
        &mut self,
        branches: &'a [Value],
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        let schemas: Vec<&'a Value> = branches.iter().map(|branch| self.local.meant(branch)).collect();
        if let Some((name, tags)) = tagged(&schemas, value) {
            let chosen = value.get(name).and_then(|tag| tags.iter().position(|each| *each == tag));
            match (chosen.and_then(|at| branches.get(at)), value.get(name)) {
                (Some(chosen), _) => self.look(chosen, value, position, findings),
                (None, Some(tag)) => findings.add(|| {
                    let known = tags.iter().filter_map(|tag| tag.as_str());
                    let near = tag.as_str().and_then(|tag| nearest(tag, known));
                    let expected = either(tags.iter().map(shown));
                    Fault::wrong(&position.pointer_to(name), expected, shown(tag))
                        .with_hint(near.map(|near| did_you_mean(&near.into())))
                }),
                (None, None) => {
                    findings.add(|| Fault::missing(position.pointer_to(name), either(tags.iter().map(shown))))
                }
            }
            return;
        }
        let mut meant = Vec::new();
        for (branch, schema) in branches.iter().zip(&schemas) {
            if self.is_of_type(schema, value) {
                meant.push(branch);
            }
        }
        if let [only] = meant.as_slice() {
            let mut inner = Findings::up_to(MAX_FAULTS);
            self.look(only, value, position, &mut inner);
            inner.faults.into_iter().for_each(|fault| findings.add(|| fault));
            return;
        }
        findings.add(|| {
            let mut names: Vec<String> = schemas.iter().map(|schema| asked(schema)).collect();
            names.dedup();
            let near = value
                .as_str()
                .and_then(|text| nearest(text, schemas.iter().flat_map(|schema| texts(schema))));
            Fault::wrong(&position.pointer, either(names), shown(value))
                .with_hint(near.map(|near| did_you_mean(&near.into())))
        });
    }

    /// Returns whether a branch allows values of this type.
    fn is_of_type(&mut self, schema: &'a Value, value: &Value) -> bool {
        ["type", "const", "enum"]
            .iter()
            .all(|keyword| schema.get(*keyword).is_none_or(|operand| !self.refuses(keyword, operand, value)))
    }

    /// Whether a schema says something about a member, so that it counts as known.
    pub(super) fn covers(
        &mut self,
        schema: &'a Members,
        value: &Value,
        name: &str,
        position: &mut InstanceLocation,
        turns: usize,
    ) -> bool {
        if turns > MAX_TURNS {
            self.lost = true;
            return true;
        }
        let has = |keyword: &str| {
            schema.get(keyword).and_then(Value::as_object).is_some_and(|names| names.contains_key(name))
        };
        if has("properties") || schema.contains_key("additionalProperties") {
            return true;
        }
        for (pattern, matched) in
            schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
        {
            if self.admits_name(pattern, matched, name) {
                return true;
            }
        }
        let mut parts: Vec<&'a Value> = branches(schema, "allOf").iter().collect();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            parts.extend(self.local.target(reference));
        }
        for (key, part) in schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            parts.extend(value.get(key).is_some().then_some(part));
        }
        for branch in branches(schema, "anyOf").iter().chain(branches(schema, "oneOf")) {
            parts.extend((self.fits(branch, value, position) == Some(true)).then_some(branch));
        }
        if let Some(when) = schema.get("if") {
            let fits = self.fits(when, value, position) == Some(true);
            parts.extend(fits.then_some(when));
            parts.extend(schema.get(if fits { "then" } else { "else" }));
        }
        parts.into_iter().filter_map(Value::as_object).any(|part| {
            part.contains_key("unevaluatedProperties") || self.covers(part, value, name, position, turns + 1)
        })
    }

    /// Collects the names that a schema defines in any branch, for suggestions.
    pub(super) fn known_names(&mut self, schema: &'a Members, names: &mut Vec<&'a str>, turns: usize) {
        if turns > MAX_TURNS || names.len() > 64 {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        names.extend(properties.into_iter().flat_map(Members::keys).map(String::as_str));
        let mut parts: Vec<&'a Value> =
            ["allOf", "anyOf", "oneOf"].iter().flat_map(|keyword| branches(schema, keyword)).collect();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            parts.extend(self.local.target(reference));
        }
        parts.extend(["then", "else"].iter().filter_map(|keyword| schema.get(*keyword)));
        for part in parts.into_iter().filter_map(Value::as_object) {
            self.known_names(part, names, turns + 1);
        }
    }
}

fn branches<'a>(schema: &'a Members, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the strings that a schema lists as its values.
fn texts(schema: &Value) -> impl Iterator<Item = &str> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).filter_map(Value::as_str)
}

/// Returns the member that distinguishes the branches, and its constant value in each.
fn tagged<'a>(schemas: &[&'a Value], value: &Value) -> Option<(&'a str, Vec<&'a Value>)> {
    value.as_object()?;
    let first = schemas.first()?.get("properties")?.as_object()?;
    first.keys().find_map(|name| {
        let tags: Option<Vec<&Value>> = schemas.iter().map(|schema| tag(schema, name)).collect();
        Some((name.as_str(), tags?))
    })
}

fn tag<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let property = schema.get("properties")?.get(name)?;
    property.get("const").or_else(|| match property.get("enum")?.as_array()?.as_slice() {
        [only] => Some(only),
        _ => None,
    })
}
