//! Verdicts that the specification of 2020-12 asks for, where implementations are known to differ.

use serde_json::Value;

use crate::schema::Schema;

/// A schema, values that fit it, values that do not.
const TABLE: &[(&str, &str, &str)] = &[
    // Fewer items than prefixes are fine; `items` is about the rest only.
    (
        r#"{"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}"#,
        r#"[[],["a"],["a",1]]"#,
        r#"[["a",1,2],[1]]"#,
    ),
    // A keyword for another type refuses nothing.
    (
        r#"{"minimum":5,"minLength":2,"minItems":1,"required":["a"]}"#,
        r#"[5,"ab",[1],{"a":1},null,true]"#,
        r#"[4,"a",[],{}]"#,
    ),
    (r#"{"type":"integer"}"#, "[1,1.0,-0.0,1e3]", r#"[1.5,"1"]"#),
    (r#"{"const":1}"#, "[1,1.0]", r#"[true,"1",[1]]"#),
    (r#"{"enum":[[false],{"a":0}]}"#, r#"[[false],{"a":0},{"a":0.0}]"#, r#"[[0],{"a":false},false]"#),
    (
        r#"{"uniqueItems":true}"#,
        r#"[[1,true],[0,false],["a"]]"#,
        r#"[[1,1.0],[{"a":1,"b":2},{"b":2,"a":1}]]"#,
    ),
    // Lengths count characters, not bytes.
    (r#"{"maxLength":2}"#, r#"["💩💩"]"#, r#"["aaa"]"#),
    // A pattern may match anywhere.
    (r#"{"pattern":"b"}"#, r#"["abc"]"#, r#"["ac"]"#),
    (
        r#"{"contains":{"type":"integer"},"minContains":2,"maxContains":3}"#,
        r#"[[1,2],[1,"a",2,3]]"#,
        r#"[[1],[1,2,3,4],[]]"#,
    ),
    (r#"{"contains":{"type":"integer"},"minContains":0}"#, r#"[[],["a"]]"#, "[]"),
    // Without `contains` the counts say nothing.
    (r#"{"minContains":1,"maxContains":0}"#, "[[],[1]]", "[]"),
    (r#"{"dependentRequired":{"a":["b"]}}"#, r#"[{},{"a":1,"b":1},{"b":1}]"#, r#"[{"a":1}]"#),
    (r#"{"dependentSchemas":{"a":{"required":["b"]}}}"#, r#"[{},{"a":1,"b":1}]"#, r#"[{"a":1}]"#),
    (r#"{"if":{"type":"integer"},"then":{"minimum":5},"else":{"type":"string"}}"#, r#"[5,"a"]"#, "[4,null]"),
    // Alone, `then` and `else` say nothing.
    (r#"{"then":false,"else":false}"#, "[1,null]", "[]"),
    // What stands beside a reference counts.
    (r##"{"$ref":"#/$defs/a","maximum":3,"$defs":{"a":{"minimum":1}}}"##, "[1,3]", "[0,4]"),
    (r##"{"$ref":"#here","$defs":{"a":{"$anchor":"here","type":"null"}}}"##, "[null]", "[1]"),
    (
        r#"{"$id":"https://e.example/root","$ref":"part","$defs":{"a":{"$id":"part","type":"null"}}}"#,
        "[null]",
        "[1]",
    ),
    // `additionalProperties` sees only its own neighbours, `unevaluatedProperties` what any part has looked at.
    (
        r#"{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"additionalProperties":false}"#,
        r#"[{"b":1}]"#,
        r#"[{"a":1}]"#,
    ),
    (
        r#"{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false}"#,
        r#"[{"a":1,"b":1}]"#,
        r#"[{"c":1}]"#,
    ),
    // Of an alternative that does not fit nothing is taken into account.
    (
        r#"{"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":true}}],"unevaluatedProperties":false}"#,
        r#"[{"a":1},{"b":1}]"#,
        r#"[{"a":2}]"#,
    ),
    (r#"{"prefixItems":[true],"contains":{"const":7},"unevaluatedItems":false}"#, "[[7],[1,7]]", "[[1,7,2]]"),
    // The outermost anchor of a name on the way is meant.
    (
        r##"{"$id":"https://e.example/strings","$ref":"list","$defs":{
            "strings":{"$dynamicAnchor":"item","type":"string"},
            "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#item"},"$defs":{"any":{"$dynamicAnchor":"item"}}}
        }}"##,
        r#"[["a"],[]]"#,
        "[[1],1]",
    ),
    // Formats are remarks.
    (r#"{"format":"email"}"#, r#"["nobody",1]"#, "[]"),
    // What is not known is ignored.
    (r#"{"x-own":{"type":"nonsense"},"minimun":3}"#, "[1]", "[]"),
    ("true", "[1,null]", "[]"),
    ("false", "[]", "[1,null]"),
];

#[test]
fn verdicts_are_those_of_the_specification() {
    for (schema, good, bad) in TABLE {
        let json = |text: &str| -> Value {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        };
        let compiled = Schema::compile(&json(schema)).unwrap_or_else(|error| panic!("{error}: {schema}"));
        for (values, fits) in [(good, true), (bad, false)] {
            for value in json(values).as_array().expect("a list") {
                assert_eq!(compiled.check(value).is_ok(), fits, "{value} by {schema}");
            }
        }
    }
}
