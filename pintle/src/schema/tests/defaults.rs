use serde_json::{Value, json};

use crate::schema::Schema;

fn filled(schema: &Value, mut value: Value) -> Value {
    Schema::compile(schema).expect("a schema").fill_defaults(&mut value);
    value
}

#[test]
fn what_is_missing_is_filled_in_at_any_depth() {
    let schema = json!({
        "properties": {
            "count": {"type": "integer", "default": 10},
            "page": {"$ref": "#/$defs/page"},
            "sort": {"$ref": "#/$defs/sort"},
            "other": {"$ref": "#/$defs/sort", "default": "down"},
        },
        "$defs": {
            "page": {"properties": {"size": {"default": 20}, "next": {"$ref": "#/$defs/page"}}},
            "sort": {"enum": ["up", "down"], "default": "up"},
        },
    });
    assert_eq!(filled(&schema, json!({})), json!({"count": 10, "sort": "up", "other": "down"}));
    assert_eq!(
        filled(&schema, json!({"count": null, "page": {"next": {"size": 1}}, "sort": "down"})),
        json!({"count": null, "page": {"size": 20, "next": {"size": 1}}, "sort": "down", "other": "down"})
    );
}

#[test]
fn nothing_is_guessed() {
    let branch = json!({"properties": {"a": {"default": 1}}});
    let combined = json!({"anyOf": [branch], "allOf": [branch], "items": branch, "properties": {"l": {"items": branch}}});
    assert_eq!(filled(&combined, json!({"l": [{}]})), json!({"l": [{}]}));
    assert_eq!(filled(&branch, json!([])), json!([]));
    // Filled in as it is, or it would never end.
    let endless = json!({"properties": {"c": {"$ref": "#", "default": {}}}});
    assert_eq!(filled(&endless, json!({})), json!({"c": {}}));
}

#[test]
fn a_large_default_does_not_multiply_without_end() {
    let schema = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "text": {"default": "x"}}});
    let tree = (0..12).fold(json!({}), |inner, _| json!({"a": inner, "b": inner}));
    assert_eq!(filled(&schema, tree).to_string().matches("text").count(), 1_000);
}

#[test]
fn the_trivial_schema_takes_anything() {
    let schema = Schema::trivial();
    let mut value = json!({"a": [1, null]});
    assert_eq!(schema.check(&value), Ok(()));
    schema.fill_defaults(&mut value);
    assert_eq!(value, json!({"a": [1, null]}));
    assert_eq!(format!("{:?}", schema.clone()), "Schema(Bool(true))");
}
