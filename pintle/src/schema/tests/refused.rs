//! Schemas that are not compiled, and why.

use serde_json::{Value, json};

use crate::schema::{Schema, SchemaError};

fn described(schema: &Value) -> String {
    Schema::compile(schema).expect_err("refused").to_string()
}

#[test]
fn references_stay_inside() {
    for (reference, name) in [
        ("https://e.example/s.json", "https://e.example/s.json"),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("#/$defs/gone", "/$defs/gone"),
        ("#gone", "gone"),
    ] {
        assert_eq!(
            described(&json!({"properties": {"a": {"$ref": reference}}})),
            format!(
                "schema: nothing in it is called `{name}`, and nothing is fetched; put the target into `$defs`"
            )
        );
    }
    assert!(matches!(Schema::compile(&json!({"$ref": "other.json"})), Err(SchemaError::Reference { .. })));
    assert!(matches!(
        Schema::compile(&json!({"$dynamicRef": "https://e.example/s"})),
        Err(SchemaError::Reference { .. })
    ));
}

#[test]
fn an_unknown_dialect_is_named() {
    assert_eq!(
        described(&json!({"$schema": "https://e.example/mine"})),
        "schema: dialect `https://e.example/mine` is not known; leave `$schema` out for 2020-12, or name 2019-09 or \
         draft 7, 6 or 4"
    );
    for known in ["https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema#"] {
        Schema::compile(&json!({"$schema": known})).expect("a known dialect");
    }
}

#[test]
fn arguments_are_an_object() {
    assert!(Schema::for_arguments(&json!({"type": "object"})).is_ok());
    let refused_arguments = |schema: Value| Schema::for_arguments(&schema).expect_err("refused").to_string();
    assert_eq!(
        refused_arguments(json!({"type": "string"})),
        "schema: arguments are an object, and its type is `\"string\"`; make it `\"object\"`"
    );
    assert_eq!(
        refused_arguments(json!({"properties": {}})),
        "schema: arguments are an object, and it has no type; add `\"type\":\"object\"`"
    );
    assert_eq!(refused_arguments(json!(true)), "schema: `true` is not a schema; give a JSON object");
    assert_eq!(described(&json!([1])), "schema: `[1]` is not a schema; give a JSON object");
}

#[test]
fn a_keyword_with_a_wrong_value_is_named() {
    assert_eq!(
        described(&json!({"properties": {"a": {"type": "strnig"}}})),
        "schema: `\"strnig\"` at `/properties/a/type` is not what JSON Schema allows there"
    );
    assert_eq!(
        described(&json!({"minimum": "1"})),
        "schema: `\"1\"` at `/minimum` is not what JSON Schema allows there"
    );
}

#[test]
fn patterns_that_may_not_end_are_refused() {
    for pattern in ["(?=a)b", "(a)\\1", "(", "(a{1000}){1000}"] {
        let error = Schema::compile(&json!({"items": {"pattern": pattern}})).expect_err(pattern);
        assert_eq!(
            error,
            SchemaError::Pattern { pointer: "/items/pattern".to_owned(), pattern: pattern.to_owned() }
        );
    }
    // What would take a backtracking engine years.
    let slow = Schema::compile(&json!({"pattern": "^(a+)+$"})).expect("a plain pattern");
    assert!(slow.check(&json!("a".repeat(50_000) + "b")).is_err());
}

#[test]
fn what_costs_too_much_is_refused() {
    let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({"items": inner}));
    assert!(Schema::compile(&nested(99)).is_ok());
    assert_eq!(
        described(&nested(200)),
        "schema: it is nested more than 100 levels deep; move parts into `$defs`"
    );
    assert_eq!(
        described(&json!({"description": "x".repeat(1024 * 1024)})),
        "schema: it has more than 1048576 bytes; split it up"
    );
    let many = |count: usize, part: Value| json!({"properties": (0..count).map(|at| (format!("p{at}"), part.clone())).collect::<serde_json::Map<_, _>>()});
    assert!(Schema::compile(&many(9_000, json!({}))).is_ok());
    assert_eq!(
        described(&many(10_000, json!({}))),
        "schema: it has more than 10000 subschemas; make it simpler"
    );
    assert_eq!(
        described(&many(129, json!({"pattern": "a"}))),
        "schema: it has more than 128 patterns; make it simpler"
    );
}
