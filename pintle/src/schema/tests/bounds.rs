//! What a check may cost, whatever schema and value are.

use serde_json::{Value, json};

use crate::schema::{Schema, SchemaError};

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).expect("a schema")
}

/// As deep as text is read.
fn deep(levels: usize, name: &str) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ name: inner }))
}

#[test]
fn a_list_of_faults_is_short() {
    let schema = compiled(&json!({"items": {"type": "string"}}));
    let faults = schema.check(&Value::from(vec![1; 100_000])).expect_err("no strings");
    assert_eq!(faults.len(), 8);
    assert_eq!(faults[7].pointer, "/7");
    let text = crate::schema::faults_text(&faults);
    assert!(text.ends_with("\nthere may be more; correct these and try again"), "{text}");
}

#[test]
fn one_fault_among_many_items_is_found() {
    let schema = compiled(&json!({"items": {"type": "integer"}}));
    let mut items = vec![json!(1); 60_000];
    items[50_000] = json!("x");
    let faults = schema.check(&Value::Array(items)).expect_err("a string");
    assert_eq!(faults[0].pointer, "/50000");
}

#[test]
fn alternatives_within_alternatives_do_not_multiply() {
    let node = |name: &str| json!({"properties": {"c": {"$ref": "#"}}, "required": [name]});
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = compiled(&json!({ keyword: [node("x"), node("y"), node("z")] }));
        let faults = schema.check(&deep(120, "c")).expect_err("nothing that is required");
        assert!((1..=8).contains(&faults.len()), "{keyword}: {faults:?}");
    }
    let twice = compiled(&json!({
        "properties": {"c": {"$ref": "#"}},
        "patternProperties": {"c": {"$ref": "#"}},
        "unevaluatedProperties": {"$ref": "#"},
        "required": ["x"],
    }));
    assert_eq!(twice.check(&deep(120, "c")).expect_err("no x").len(), 8);
}

#[test]
fn references_in_a_circle_are_refused() {
    for schema in [
        json!({"$ref": "#", "maximum": 1}),
        json!({"anyOf": [{"$ref": "#"}, {"maximum": 1}]}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
    ] {
        assert_eq!(Schema::compile(&schema).expect_err("a circle"), SchemaError::Circular);
    }
    assert_eq!(
        SchemaError::Circular.to_string(),
        "schema: a part of it refers to itself for the same value; refer from within `properties` or `items`"
    );
}

/// `length` definitions, each an alternative of the one before, and then back to the start one level down.
fn row(length: usize, id: Option<&str>) -> Value {
    let mut defs = serde_json::Map::new();
    for at in 1..length {
        defs.insert(format!("d{at}"), json!({"anyOf": [{"$ref": format!("#/$defs/d{}", at + 1)}, false]}));
    }
    defs.insert(format!("d{length}"), json!({"type": "object", "properties": {"c": {"$ref": "#"}}}));
    if let Some(id) = id {
        defs.insert("named".to_owned(), json!({ "$id": id }));
    }
    json!({"$ref": "#/$defs/d1", "$defs": defs})
}

#[test]
fn a_long_row_of_references_is_refused() {
    for long in [row(16, None), row(4_000, None), row(17, Some("https://e.example/part"))] {
        assert_eq!(
            Schema::compile(&long).expect_err("too long").to_string(),
            "schema: it has more than 32 references and alternatives in a row; make it simpler"
        );
    }
}

#[test]
fn the_longest_row_and_the_deepest_value_fit_a_small_stack() {
    let run = || {
        let schema = compiled(&row(15, None));
        assert!(schema.check(&deep(127, "c")).is_ok());
        assert_eq!(schema.check(&json!({"c": {"c": 1}})).expect_err("no object").len(), 1);
        assert_eq!(
            schema
                .check(&(0..127).fold(json!(1), |inner, _| json!({"c": inner})))
                .expect_err("no object")
                .len(),
            1
        );
    };
    let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run).expect("a thread");
    small.join().expect("no overflow");
}

#[test]
fn deep_values_are_explained_on_a_small_stack() {
    let run = || {
        let schema = compiled(&json!({"anyOf": [{"type": "object", "properties": {"c": {"$ref": "#"}},
            "additionalProperties": false}, {"type": "null"}]}));
        let value = (0..120).fold(json!({"d": 1}), |inner, _| json!({"c": inner}));
        let faults = schema.check(&value).expect_err("d is not known");
        assert_eq!(faults.len(), 1);
    };
    let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run).expect("a thread");
    small.join().expect("no overflow");
}

/// Definitions in levels, each an alternative of eight times the one below.
fn wide(levels: usize, keyword: &str, below: impl Fn(Value) -> Value) -> Value {
    let mut defs = serde_json::Map::new();
    for at in 0..levels {
        let next = below(json!({"$ref": format!("#/$defs/d{}", at + 1)}));
        defs.insert(format!("d{at}"), json!({ keyword: vec![next; 8] }));
    }
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn alternatives_that_multiply_are_refused_before_they_are_compiled() {
    let down = |next: Value| json!({"properties": {"c": next}});
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for schema in [wide(12, keyword, |next| next), wide(12, keyword, down), wide(5, keyword, down)] {
            assert_eq!(
                Schema::compile(&schema).expect_err("8^5 checks"),
                SchemaError::TooWide { limit: 10_000 }
            );
        }
        compiled(&wide(3, keyword, down)).check(&json!({"c": {"c": {"c": 1}}})).ok();
    }
}

#[test]
fn alternatives_side_by_side_do_not_multiply() {
    let nullable = |inner: Value| json!({"anyOf": [inner, {"type": "null"}]});
    let leaf = nullable(json!({"type": "string"}));
    let row: serde_json::Map<_, _> = (0..200).map(|at| (format!("p{at}"), leaf.clone())).collect();
    let deep = (0..12).fold(json!({"properties": row}), |inner, _| {
        nullable(json!({"properties": {"a": inner, "b": leaf}, "additionalProperties": leaf}))
    });
    compiled(&deep);
    // A row of definitions as long as a schema may be.
    let defs: serde_json::Map<_, _> = (0..3_000)
        .map(|at| (format!("d{at}"), json!({"items": {"$ref": format!("#/$defs/d{}", (at + 1) % 3_000)}})))
        .collect();
    let _ = Schema::compile(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
}
