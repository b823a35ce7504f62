//! `Mcp-Param-*`: headers that mirror annotated arguments.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use pintle_types::{RawValue, RpcError};
use serde::Deserializer;
use serde_json::Value;

use super::{
    HeaderParam, HeaderParams, Refusal,
    argument::{self, Scalar},
    decode_value, encode_value,
    head::trim,
    mirror::{mismatch, missing},
};
use crate::shown::shown;

impl HeaderParams {
    /// Adds the headers that mirror these arguments to a client's request.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use pintle_proto::http::HeaderParams;
    /// use serde_json::{json, value::to_raw_value};
    ///
    /// let schema = json!({ "properties": { "city": { "type": "string", "x-mcp-header": "City" } } });
    /// let params = HeaderParams::from_schema(&schema).unwrap();
    /// let arguments = to_raw_value(&json!({ "city": "Zürich" })).unwrap();
    ///
    /// let mut headers = HeaderMap::new();
    /// params.mirror(Some(&arguments), &mut headers).unwrap();
    /// assert_eq!(headers["mcp-param-city"], "=?base64?WsO8cmljaA==?=");
    /// assert!(params.check(&headers, Some(&arguments)).is_ok());
    /// ```
    pub fn mirror(&self, arguments: Option<&RawValue>, headers: &mut HeaderMap) -> Result<(), BadArgument> {
        match arguments {
            Some(arguments) => {
                self.mirror_any(&mut serde_json::Deserializer::from_str(arguments.get()), headers)
            }
            None => Ok(()),
        }
    }

    /// Adds the headers that mirror these arguments, given as a [`Value`], to a client's request.
    pub fn mirror_value(&self, arguments: &Value, headers: &mut HeaderMap) -> Result<(), BadArgument> {
        self.mirror_any(arguments, headers)
    }

    /// Refuses with code -32020 unless the headers mirror the arguments. Headers that the tool does not declare are
    /// ignored.
    pub fn check(&self, headers: &HeaderMap, arguments: Option<&RawValue>) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        let arguments = arguments.map_or("null", RawValue::get);
        self.check_any(headers, &mut serde_json::Deserializer::from_str(arguments))
    }

    /// Refuses with code -32020 unless the headers mirror the arguments, given as a [`Value`].
    pub fn check_value(&self, headers: &HeaderMap, arguments: &Value) -> Result<(), Refusal> {
        self.check_any(headers, arguments)
    }

    fn mirror_any<'de, D: Deserializer<'de>>(
        &self,
        arguments: D,
        headers: &mut HeaderMap,
    ) -> Result<(), BadArgument> {
        let values = argument::read(&self.params, arguments).map_err(|_| BadArgument::Unreadable)?;
        for (param, value) in self.params.iter().zip(values) {
            let Some(text) = value.to_text(param)? else { continue };
            let value = HeaderValue::from_str(&encode_value(&text)).map_err(|_| BadArgument::Unreadable)?;
            headers.insert(param.header.clone(), value);
        }
        Ok(())
    }

    fn check_any<'de, D: Deserializer<'de>>(&self, headers: &HeaderMap, arguments: D) -> Result<(), Refusal> {
        let values = argument::read(&self.params, arguments).map_err(|_| {
            Refusal::bad_request(RpcError::invalid_params(
                "`params.arguments` cannot be read; send an object",
            ))
        })?;
        self.params.iter().zip(values).try_for_each(|(param, value)| check_one(headers, param, &value))
    }
}

/// The error for an argument that cannot be mirrored in a header.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BadArgument {
    /// The number is not an integer within ±(2^53 − 1), beyond which JSON parsers disagree.
    Inexact {
        /// The path of the argument.
        argument: String,
    },
    /// The value is an object or an array.
    NotAScalar {
        /// The path of the argument.
        argument: String,
    },
    /// The arguments are not JSON.
    Unreadable,
}

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inexact { argument } => {
                write!(
                    f,
                    "argument `{argument}` is also sent as a header and must be an integer within ±(2^53 - 1)"
                )
            }
            Self::NotAScalar { argument } => {
                write!(
                    f,
                    "argument `{argument}` is also sent as a header and must be a string, integer or boolean"
                )
            }
            Self::Unreadable => f.write_str("the arguments cannot be read"),
        }
    }
}

impl std::error::Error for BadArgument {}

fn check_one(headers: &HeaderMap, param: &HeaderParam, value: &Scalar<'_>) -> Result<(), Refusal> {
    let mut lines = headers.get_all(&param.header).iter();
    let header = lines.next();
    let name = || format!("Mcp-Param-{}", param.label);
    if lines.next().is_some() {
        return Err(Refusal::header_mismatch(format!("the `{}` header is repeated; send it once", name())));
    }
    let header = match (header, value) {
        (None, Scalar::Absent) => return Ok(()),
        (None, value) => return Err(missing(&name(), &value.to_string())),
        (Some(header), _) => header,
    };
    let ill_formed =
        |reason: &str| Refusal::header_mismatch(format!("the `{}` header is ill-formed: {reason}", name()));
    let text = std::str::from_utf8(trim(header.as_bytes()))
        .ok()
        .filter(|text| text.is_ascii())
        .ok_or_else(|| ill_formed("not ASCII; encode it as `=?base64?…?=`"))?;
    let text = decode_value(text).map_err(|reason| ill_formed(&reason.to_string()))?;
    if value.is(&text) {
        return Ok(());
    }
    let member = format!("params.arguments.{}", param.path.join("."));
    Err(match value {
        // A proxy would route by a value that the tool never receives.
        Scalar::Absent => Refusal::header_mismatch(format!(
            "the `{}` header is `{}` and the body has no `{member}`; send the same value in both",
            name(),
            shown(&text)
        )),
        value => mismatch(&name(), &text, &member, &value.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params() -> HeaderParams {
        HeaderParams::from_schema(&json!({"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "priority":{"type":"integer","x-mcp-header":"Priority"},
            "verbose":{"type":"boolean","x-mcp-header":"Verbose"},
            "db":{"type":"object","properties":{
                "name":{"type":"string","x-mcp-header":"Db"},
                "shard":{"type":"object","properties":{"no":{"type":"integer","x-mcp-header":"Shard"}}}}}}}))
        .unwrap()
    }

    /// The headers that mirror these arguments, as `name=value` words.
    fn mirrored(arguments: &str) -> Result<String, String> {
        let raw: Box<RawValue> = serde_json::from_str(arguments).unwrap();
        let (mut headers, mut again) = (HeaderMap::new(), HeaderMap::new());
        let outcome = params().mirror(Some(&raw), &mut headers);
        assert_eq!(params().mirror_value(&serde_json::from_str(arguments).unwrap(), &mut again), outcome);
        outcome.map_err(|bad| bad.to_string())?;
        assert_eq!(headers, again);
        assert_eq!(params().check(&headers, Some(&raw)), Ok(()), "{arguments}");
        let mut words: Vec<_> = headers
            .iter()
            .map(|(name, value)| {
                format!("{}={}", &name.as_str()["mcp-param-".len()..], value.to_str().unwrap())
            })
            .collect();
        words.sort();
        Ok(words.join(" "))
    }

    #[test]
    fn arguments_become_headers() {
        for (arguments, expected) in [
            ("{}", ""),
            ("null", ""),
            ("[]", ""),
            (r#"{"region":"us-west1","query":"SELECT 1"}"#, "region=us-west1"),
            (r#"{"region":"us west 1"}"#, "region=us west 1"),
            (r#"{"region":" padded "}"#, "region==?base64?IHBhZGRlZCA=?="),
            (r#"{"region":"世"}"#, "region==?base64?5LiW?="),
            (r#"{"region":""}"#, "region="),
            (r#"{"region":null,"priority":null,"verbose":null,"db":null}"#, ""),
            (r#"{"priority":42,"verbose":false}"#, "priority=42 verbose=false"),
            (r#"{"priority":-7,"verbose":true}"#, "priority=-7 verbose=true"),
            (r#"{"priority":42.0}"#, "priority=42"),
            (r#"{"priority":1e3}"#, "priority=1000"),
            (r#"{"priority":9007199254740991}"#, "priority=9007199254740991"),
            (r#"{"priority":-9007199254740991}"#, "priority=-9007199254740991"),
            (r#"{"db":{"name":"main","shard":{"no":3,"x":[{}]}},"other":{"name":"no"}}"#, "db=main shard=3"),
            (r#"{"db":{"no":1},"name":"no","no":2}"#, ""),
            (r#"{"r\u0065gion":"esc\"aped"}"#, r#"region=esc"aped"#),
            (r#"{"region":"first","region":"last"}"#, "region=last"),
            (r#"{"db":{"name":"first"},"db":{}}"#, ""),
            // A value of the wrong type is repeated too: it is the tool's schema that refuses it.
            (r#"{"region":7,"priority":"high"}"#, "priority=high region=7"),
        ] {
            assert_eq!(mirrored(arguments).as_deref(), Ok(expected), "{arguments}");
        }
    }

    #[test]
    fn what_no_header_can_say_is_named() {
        for (arguments, expected) in [
            (
                r#"{"priority":9007199254740992}"#,
                "argument `priority` is also sent as a header and must be an integer within ±(2^53 - 1)",
            ),
            (
                r#"{"priority":18446744073709551615}"#,
                "argument `priority` is also sent as a header and must be an integer within ±(2^53 - 1)",
            ),
            (
                r#"{"db":{"shard":{"no":0.5}}}"#,
                "argument `db.shard.no` is also sent as a header and must be an integer within ±(2^53 - 1)",
            ),
            (
                r#"{"region":["a"]}"#,
                "argument `region` is also sent as a header and must be a string, integer or boolean",
            ),
        ] {
            assert_eq!(mirrored(arguments), Err(expected.to_owned()));
        }
    }

    fn checked(lines: &[(&'static str, &'static str)], arguments: &str) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for &(name, value) in lines {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let raw: Box<RawValue> = serde_json::from_str(arguments).unwrap();
        let outcome = params().check(&headers, Some(&raw));
        assert_eq!(params().check_value(&headers, &serde_json::from_str(arguments).unwrap()), outcome);
        outcome.map_err(|refusal| {
            assert_eq!((refusal.status.as_u16(), refusal.error.code.0), (400, -32020));
            refusal.error.message.into_owned()
        })
    }

    #[test]
    fn headers_that_agree() {
        for (header, arguments) in [
            (("mcp-param-region", "=?base64?SGVsbG8=?="), r#"{"region":"Hello"}"#),
            (("MCP-PARAM-REGION", "  Hello\t"), r#"{"region":"Hello"}"#),
            (("mcp-param-region", "SGVsbG8="), r#"{"region":"SGVsbG8="}"#),
            (("mcp-param-region", "=?base64?SGVsbG8="), r#"{"region":"=?base64?SGVsbG8="}"#),
            (("mcp-param-region", ""), r#"{"region":""}"#),
            (("mcp-param-priority", "42.0"), r#"{"priority":42}"#),
            (("mcp-param-priority", "42"), r#"{"priority":42.0}"#),
            (("mcp-param-priority", "4.2e1"), r#"{"priority":42}"#),
            (("mcp-param-priority", "=?base64?NDI=?="), r#"{"priority":42}"#),
            (("mcp-param-priority", "9007199254740993"), r#"{"priority":9007199254740993}"#),
            (("mcp-param-unknown", "=?base64?!?="), "{}"),
        ] {
            assert_eq!(checked(&[header], arguments), Ok(()), "{header:?} {arguments}");
        }
        assert_eq!(params().check(&HeaderMap::new(), None), Ok(()));
    }

    #[test]
    fn headers_that_do_not() {
        let both = "send the same value in both";
        let base64 = "not padded standard Base64 between `=?base64?` and `?=`";
        for (header, arguments, expected) in [
            (
                ("mcp-param-other", ""),
                r#"{"region":"Hello"}"#,
                "the `Mcp-Param-Region` header is missing; send `Hello`, as in the body".to_owned(),
            ),
            (
                ("mcp-param-other", ""),
                r#"{"priority":0}"#,
                "the `Mcp-Param-Priority` header is missing; send `0`, as in the body".to_owned(),
            ),
            (
                ("mcp-param-region", "hello"),
                r#"{"region":"Hello"}"#,
                format!(
                    "the `Mcp-Param-Region` header is `hello` and the body's `params.arguments.region` is `Hello`; {both}"
                ),
            ),
            (
                ("mcp-param-db", "main"),
                r#"{"db":{"name":null}}"#,
                format!(
                    "the `Mcp-Param-Db` header is `main` and the body has no `params.arguments.db.name`; {both}"
                ),
            ),
            (
                ("mcp-param-region", "=?base64?SGVsbG8?="),
                r#"{"region":"Hello"}"#,
                format!("the `Mcp-Param-Region` header is ill-formed: {base64}"),
            ),
            (
                ("mcp-param-region", "=?base64?SGVs!!!bG8=?="),
                r#"{"region":"Hello"}"#,
                format!("the `Mcp-Param-Region` header is ill-formed: {base64}"),
            ),
            (
                ("mcp-param-region", "世"),
                r#"{"region":"世"}"#,
                "the `Mcp-Param-Region` header is ill-formed: not ASCII; encode it as `=?base64?…?=`"
                    .to_owned(),
            ),
        ] {
            assert_eq!(checked(&[header], arguments), Err(expected));
        }
        for (value, arguments) in [
            ("43", r#"{"priority":42}"#),
            ("042", r#"{"priority":42}"#),
            ("+42", r#"{"priority":42}"#),
            ("0x2a", r#"{"priority":42}"#),
            ("", r#"{"priority":0}"#),
            ("9007199254740992", r#"{"priority":9007199254740993}"#),
            ("[1]", r#"{"priority":[1]}"#),
        ] {
            assert!(checked(&[("mcp-param-priority", value)], arguments).is_err(), "{value} {arguments}");
        }
        for (value, arguments) in [("TRUE", r#"{"verbose":true}"#), ("1", r#"{"verbose":true}"#)] {
            assert!(checked(&[("mcp-param-verbose", value)], arguments).is_err(), "{value} {arguments}");
        }
        let twice = [("mcp-param-region", "a"), ("mcp-param-region", "a")];
        assert_eq!(
            checked(&twice, r#"{"region":"a"}"#),
            Err("the `Mcp-Param-Region` header is repeated; send it once".to_owned())
        );
    }
}
