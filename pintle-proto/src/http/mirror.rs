//! `Mcp-Method` and `Mcp-Name`: headers that mirror members of the body.

use std::borrow::Cow;

use pintle_types::{RawObject, method};

use super::{Head, Refusal, decode_value, head::Field};
use crate::{shown::shown, text::text};

/// An extension's method whose requests carry `Mcp-Name`, and the member of `params` that it mirrors.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NameSource<'a> {
    /// The method, such as `tasks/get`.
    pub method: &'a str,
    /// The member, such as `taskId`.
    pub member: &'a str,
}

impl<'a> NameSource<'a> {
    /// Declares that requests of `method` mirror `params.{member}`.
    pub const fn new(method: &'a str, member: &'a str) -> Self {
        Self { method, member }
    }
}

impl NameSource<'static> {
    /// Those of the tasks extension.
    pub const TASKS: [Self; 3] = [
        Self::new(method::tasks_extension::TASKS_GET, "taskId"),
        Self::new(method::tasks_extension::TASKS_UPDATE, "taskId"),
        Self::new(method::tasks_extension::TASKS_CANCEL, "taskId"),
    ];
}

/// Returns the member of `params` that `Mcp-Name` mirrors for this method, if there is one.
///
/// ```
/// use pintle_proto::http::{NameSource, name_member};
///
/// let tasks = [NameSource::new("tasks/get", "taskId")];
/// assert_eq!(name_member("tools/call", &tasks), Some("name"));
/// assert_eq!(name_member("tasks/get", &tasks), Some("taskId"));
/// assert_eq!(name_member("tools/list", &tasks), None);
/// ```
pub fn name_member<'a>(method: &str, extensions: &[NameSource<'a>]) -> Option<&'a str> {
    match method::find(method).filter(|row| row.named_in_header).and_then(|row| row.target) {
        Some(target) => target.member(),
        None => extensions.iter().find(|source| source.method == method).map(|source| source.member),
    }
}

/// Returns the string at `member` of `params`, for [`RequestHead::name`](super::RequestHead::name).
pub fn name_in<'a>(params: &'a RawObject, member: &str) -> Option<Cow<'a, str>> {
    text(params.get(member)?).ok()
}

/// Refuses with code -32020 unless `Mcp-Method` equals the method of the body.
pub(super) fn check_method(head: &Head<'_>, method: &str) -> Result<(), Refusal> {
    match head.mcp_method.bytes("Mcp-Method")? {
        Some(value) if value == method.as_bytes() => Ok(()),
        Some(value) => Err(mismatch("Mcp-Method", &String::from_utf8_lossy(value), "method", method)),
        None => Err(missing("Mcp-Method", method)),
    }
}

/// Refuses with code -32020 unless `Mcp-Name` equals the name in the body.
///
/// A request with the name in neither is not refused here: its params are validated later.
pub(super) fn check_name(head: &Head<'_>, member: &str, name: Option<&str>) -> Result<(), Refusal> {
    let header = head.mcp_name;
    let value = match (header, name) {
        // The usual case: a plain value, which decodes to itself.
        (Field::Once(value), Some(name))
            if value == name && value.as_bytes().is_ascii() && !name.starts_with("=?") =>
        {
            return Ok(());
        }
        (Field::Absent, None) => return Ok(()),
        (Field::Absent, Some(name)) => return Err(missing("Mcp-Name", name)),
        (Field::Once(_) | Field::Repeated, _) => header.text("Mcp-Name")?.unwrap_or_default(),
    };
    let value = decode_value(value).map_err(|reason| {
        Refusal::header_mismatch(format!("the `Mcp-Name` header is ill-formed: {reason}"))
    })?;
    match name {
        Some(name) if name == value => Ok(()),
        Some(name) => Err(mismatch("Mcp-Name", &value, &format!("params.{member}"), name)),
        None => Err(Refusal::header_mismatch(format!(
            "the `Mcp-Name` header is `{}` and the body has no `params.{member}`; send the same value in both",
            shown(&value)
        ))),
    }
}

pub(super) fn missing(header: &str, value: &str) -> Refusal {
    Refusal::header_mismatch(format!(
        "the `{header}` header is missing; send `{}`, as in the body",
        shown(value)
    ))
}

pub(super) fn mismatch(header: &str, sent: &str, member: &str, value: &str) -> Refusal {
    Refusal::header_mismatch(format!(
        "the `{header}` header is `{}` and the body's `{member}` is `{}`; send the same value in both",
        shown(sent),
        shown(value)
    ))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, Uri};
    use pintle_types::ErrorCode;

    use super::*;
    use crate::{Revision, revision::Part};

    /// The header is compared, and the rights of a session's request are looked up, before params are raised. That is right as
    /// long as no revision renames the member that names the target.
    #[test]
    fn no_revision_renames_the_member_that_names_a_target() {
        for row in method::REQUESTS {
            let Some(member) = row.target.and_then(method::Target::member) else { continue };
            let params: RawObject = format!(r#"{{"{member}":"x"}}"#).parse().unwrap();
            for revision in Revision::all() {
                let part = Part::Params(row.name);
                let raised = revision.raised(part, params.clone()).unwrap();
                let lowered = revision.lowered(part, params.clone()).unwrap();
                assert_eq!(raised.get(member), Some("\"x\""), "{} {revision}", row.name);
                assert_eq!(lowered.get(member), Some("\"x\""), "{} {revision}", row.name);
            }
        }
    }

    fn check(lines: &[(&'static str, &[u8])], member: &str, name: Option<&str>) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for &(header, value) in lines {
            headers.append(header, HeaderValue::from_bytes(value).unwrap());
        }
        let uri = Uri::from_static("/mcp");
        let head = Head::new(&Method::POST, &uri, &headers);
        check_method(&head, "tools/call").and_then(|()| check_name(&head, member, name)).map_err(|refusal| {
            assert_eq!((refusal.status.as_u16(), refusal.error.code), (400, ErrorCode::HEADER_MISMATCH));
            refusal.error.message.into_owned()
        })
    }

    #[test]
    fn the_head_repeats_the_body() {
        for (value, name) in [
            ("add", "add"),
            ("  add\t", "add"),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
            ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
            ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
            ("", ""),
        ] {
            let lines = [("Mcp-Method", b"tools/call".as_slice()), ("MCP-NAME", value.as_bytes())];
            assert_eq!(check(&lines, "name", Some(name)), Ok(()), "{value}");
        }
        assert_eq!(check(&[("mcp-method", b" tools/call ")], "name", None), Ok(()));
    }

    #[test]
    fn what_is_missing_or_different_is_named() {
        let method = ("mcp-method", b"tools/call".as_slice());
        let both = "send the same value in both";
        for (lines, name, expected) in [
            (vec![], Some("add"), "the `Mcp-Method` header is missing; send `tools/call`, as in the body".into()),
            (
                vec![("mcp-method", b"TOOLS/CALL".as_slice())],
                Some("add"),
                format!("the `Mcp-Method` header is `TOOLS/CALL` and the body's `method` is `tools/call`; {both}"),
            ),
            (vec![method], Some("add"), "the `Mcp-Name` header is missing; send `add`, as in the body".into()),
            (
                vec![method, ("mcp-name", b"Add")],
                Some("add"),
                format!("the `Mcp-Name` header is `Add` and the body's `params.name` is `add`; {both}"),
            ),
            (
                vec![method, ("mcp-name", b"add")],
                None,
                format!("the `Mcp-Name` header is `add` and the body has no `params.name`; {both}"),
            ),
            (
                vec![method, ("mcp-name", b"add"), ("mcp-name", b"add")],
                Some("add"),
                "the `Mcp-Name` header is repeated; send it once".into(),
            ),
            (
                // The value that it stands for is `Hello`.
                vec![method, ("mcp-name", b"=?base64?SGVsbG8=?=")],
                Some("=?base64?SGVsbG8=?="),
                format!(
                    "the `Mcp-Name` header is `Hello` and the body's `params.name` is `=?base64?SGVsbG8=?=`; {both}"
                ),
            ),
            (
                vec![method, ("mcp-name", b"=?base64?SGVsbG8?=")],
                Some("Hello"),
                "the `Mcp-Name` header is ill-formed: not padded standard Base64 between `=?base64?` and `?=`".into(),
            ),
            (
                vec![method, ("mcp-name", "世".as_bytes())],
                Some("世"),
                "the `Mcp-Name` header is not plain text; send visible ASCII".into(),
            ),
        ] {
            assert_eq!(check(&lines, "name", name), Err(expected));
        }
    }

    #[test]
    fn a_name_is_found_in_params() {
        for (params, name) in [
            (r#"{"name":"add","arguments":{"name":"no"}}"#, Some("add")),
            (r#"{"arguments":{"name":["no"]},"name":"a\u0064d"}"#, Some("add")),
            (r#"{"n\u0061me":"add"}"#, Some("add")),
            (r#"{"name":7}"#, None),
            (r#"{"_meta":{}}"#, None),
        ] {
            assert_eq!(name_in(&params.parse().unwrap(), "name").as_deref(), name, "{params}");
        }
    }
}
