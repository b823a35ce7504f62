use serde::Serialize;

/// A decision of [`Rules`](super::Rules), for an audit log. It serializes as one JSON object, and contains no arguments.
#[non_exhaustive]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord<'a> {
    /// The milliseconds since 1970.
    pub time_ms: u64,
    /// The name of the principal; `@local` or `@anonymous` for callers without one.
    pub principal: &'a str,
    /// The method of the protocol, or what comes nearest: `complete`, `subscribe`, `read` or `call`.
    pub access: &'static str,
    /// The name or URI.
    pub name: &'a str,
    /// The name of the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<&'a str>,
    /// The name that the backend has for it, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<&'a str>,
    /// The decision: `allow`, `confirm`, `limit`, `deny` or `hide`.
    pub decision: &'static str,
    /// The name of the rule, or its number, that decided. There is none if the default of the rules did, or if the rules allow what something
    /// else refuses: rights that the caller lacks, or another gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether the `requestState` of the call, which the backend claims, was seen before, or nobody knows. Such a call is counted again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}
