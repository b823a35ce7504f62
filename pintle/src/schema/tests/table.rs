//! The keywords that tools use: a good value, a bad one, and what is told about it.

use serde_json::Value;

use crate::schema::{
    Schema,
    engine::Engine,
    explain::find,
    local::{Anchors, Local},
};

/// One row of the table.
struct Case {
    text: &'static str,
    schema: Value,
    good: Option<Value>,
    bad: Value,
    messages: Vec<&'static str>,
}

fn cases() -> Vec<Case> {
    let case = |text: &'static str| {
        let all = |word: &str| -> Vec<&'static str> {
            text.lines().filter_map(|line| line.strip_prefix(word)).map(str::trim_start).collect()
        };
        let json = |word: &str| -> Option<Value> {
            Some(serde_json::from_str(all(word).first()?).unwrap_or_else(|error| panic!("{error}:\n{text}")))
        };
        let needed = |word: &str| json(word).unwrap_or_else(|| panic!("no `{word}`:\n{text}"));
        Case {
            text,
            schema: needed("schema"),
            good: json("good"),
            bad: needed("bad"),
            messages: all("error"),
        }
    };
    include_str!("cases.txt").split("\n\n").map(case).collect()
}

#[test]
fn each_keyword_takes_the_good_and_explains_the_bad() {
    let cases = cases();
    assert!(cases.len() > 70, "{} cases", cases.len());
    for Case { text, schema, good, bad, messages } in &cases {
        let schema = Schema::compile(schema).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        if let Some(good) = good {
            assert_eq!(schema.check(good), Ok(()), "{text}");
        }
        let faults = schema.check(bad).expect_err(text);
        assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), *messages, "{text}");
    }
}

/// The walk that finds words and the validator that decides say the same of every schema and value here.
#[test]
fn words_and_verdict_agree() {
    let cases = cases();
    let values: Vec<&Value> =
        cases.iter().flat_map(|case| [Some(&case.bad), case.good.as_ref()]).flatten().collect();
    let (mut pairs, mut lost) = (0, 0);
    for case in &cases {
        let engine = Engine::compile(&case.schema).expect(case.text);
        let anchors = Anchors::of(&case.schema);
        let local = Local::new(&case.schema, &anchors);
        for value in &values {
            let (found, was_lost) = find(&engine, local, value);
            pairs += 1;
            lost += usize::from(was_lost);
            assert!(
                !(found.any && engine.fits(value)),
                "{value} fits, and told: {:?}\n{}",
                found.faults,
                case.text
            );
            assert!(
                found.any || was_lost || engine.fits(value),
                "{value} does not fit, and why?\n{}",
                case.text
            );
        }
    }
    assert!(lost * 10 < pairs, "lost in {lost} of {pairs}");
}

#[test]
fn threads_share_a_schema() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Schema>();
}
