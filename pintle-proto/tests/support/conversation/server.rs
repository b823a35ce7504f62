//! What the server's handlers do.

use pintle_proto::{
    inputs::{KeyId, Question, Seal, SealError},
    server::{CacheHint, Outcome},
};
use pintle_types::{
    ErrorCode, RawObject, RpcError,
    schema::{ElicitFormParams, ElicitParams, ElicitSchema, ElicitUrlParams},
};
use serde_json::value::RawValue;

use super::course::Course;

/// How a call ends.
pub(super) fn outcome(course: &mut Course<'_>) -> Outcome {
    let body = |course: &mut Course<'_>| -> RawObject { course.of(BODIES).parse().expect("an object") };
    match course.below(8) {
        0 | 1 => Outcome::InputRequired,
        2 => Outcome::Cacheable(body(course).into(), CacheHint::default()),
        3 => Outcome::BadArguments("`x`\nis missing".to_owned()),
        4 => Outcome::NotFound { uri: "a:\n\"b".to_owned() },
        5 => {
            let data = RawValue::from_string("{\"a\":\n[]}".to_owned()).expect("JSON");
            let mut error = RpcError::new(ErrorCode(course.of(&[-32603, -32002, -32042, 7])), "no\n");
            error.data = Some(data);
            Outcome::Failed(error)
        }
        _ => Outcome::Complete(body(course).into()),
    }
}

/// What a handler wants to know.
pub(super) fn question(course: &mut Course<'_>) -> Question {
    let message = course.of(&["who?", "\n", "é"]);
    match course.below(4) {
        0 => Question::Roots,
        1 => {
            Question::Elicit(Box::new(ElicitParams::Url(ElicitUrlParams::new(message, "https://a.example"))))
        }
        _ => Question::Elicit(Box::new(ElicitParams::Form(ElicitFormParams::new(
            message,
            ElicitSchema::new(),
        )))),
    }
}

const BODIES: &[&str] = &[
    "{}",
    r#"{"content":[{"type":"text","text":"hi"}],"structuredContent":null}"#,
    "{\"content\":[\n],\"_meta\":{ \"a\" :\n1 }}",
    r#"{"resultType":"acme","_meta":5,"ttlMs":7}"#,
    r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"cacheScope":"public"}"#,
    r#"{"contents":[{"uri":"file:///a","blob":"AAAA"}],"tools":[{"name":"t","inputSchema":{}}]}"#,
];

/// Hides nothing and detects every change.
#[derive(Debug)]
pub(super) struct Clear;

fn sum(bound: &[u8], plain: &[u8]) -> [u8; 16] {
    let bytes = bound.iter().chain(&[0]).chain(plain);
    bytes
        .fold(0xcbf2_9ce4_8422_2325_u128, |sum, byte| {
            (sum ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
        })
        .to_be_bytes()
}

impl Seal for Clear {
    fn key(&self) -> KeyId {
        KeyId([7; 8])
    }
    fn seal(&self, _: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        Ok([plain, &sum(bound, plain)].concat())
    }
    fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (plain, tag) = sealed.split_at_checked(sealed.len().checked_sub(16)?)?;
        (key == self.key() && tag == sum(bound, plain)).then(|| plain.to_vec())
    }
}
