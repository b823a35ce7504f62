//! Redaction of JSON without building a tree: members stay in their order, also those that are repeated.

use std::fmt;

use serde::{
    Deserialize as _, Deserializer, Serialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::redactor::{REDACTED, Redactor, is_secret_member};

/// Copies JSON without insignificant white space, and replaces what is to be redacted.
pub(super) struct Rewriter<'a> {
    redactor: &'a Redactor,
    by_client: bool,
    out: Vec<u8>,
}

/// A part of a message.
#[derive(Clone, Copy, Eq, PartialEq)]
enum MessagePart {
    /// A message, or an array of messages.
    Frame,
    Message,
    /// The params of a request.
    Params,
    /// The answers to input requests, by key.
    Answers,
    /// The answer to an input request.
    Answer,
    Other,
}

/// The treatment of a value.
#[derive(Clone, Copy)]
enum MemberRule {
    Copy(MessagePart),
    /// Replaced.
    Redact,
    /// Replaced by the tag of its text.
    Tag,
    /// Replaced, unless it is an object, whose members are looked at.
    RedactValue,
    /// Copied without a look at its text: a URI template.
    Verbatim,
}

/// The members of an answer that are not secret.
const ANSWER_MEMBERS: [&str; 5] = ["action", "model", "resultType", "role", "stopReason"];

impl<'a> Rewriter<'a> {
    /// Returns `None` if the text is not JSON, or nested too deeply.
    pub(super) fn rewrite(redactor: &'a Redactor, text: &str, by_client: bool) -> Option<String> {
        let mut rewriter = Rewriter { redactor, by_client, out: Vec::with_capacity(text.len()) };
        let mut reader = serde_json::Deserializer::from_str(text);
        rewriter.value(MemberRule::Copy(MessagePart::Frame)).deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        String::from_utf8(rewriter.out).ok()
    }

    fn value(&mut self, rule: MemberRule) -> RuledValue<'_, 'a> {
        RuledValue { rewriter: self, rule }
    }

    fn rule(&self, part: MessagePart, name: &str) -> MemberRule {
        if !self.redactor.is_enabled() {
            return MemberRule::Copy(MessagePart::Other);
        }
        if self.redactor.has_member(name) {
            return MemberRule::Redact;
        }
        match (part, name) {
            (_, "requestState") => MemberRule::Tag,
            (_, "inputResponses") => MemberRule::Copy(MessagePart::Answers),
            (MessagePart::Answers, _) => MemberRule::Copy(MessagePart::Answer),
            (MessagePart::Answer, name) if ANSWER_MEMBERS.contains(&name) => {
                MemberRule::Copy(MessagePart::Other)
            }
            (MessagePart::Answer, _) => MemberRule::Redact,
            (MessagePart::Frame | MessagePart::Message, "result") if self.by_client => {
                MemberRule::Copy(MessagePart::Answer)
            }
            (MessagePart::Frame | MessagePart::Message, "params") => MemberRule::Copy(MessagePart::Params),
            (MessagePart::Params, "arguments" | "argument" | "context")
                if self.redactor.redacts_arguments() =>
            {
                MemberRule::Redact
            }
            (_, "uriTemplate") => MemberRule::Verbatim,
            (_, name) if is_secret_member(name) => MemberRule::RedactValue,
            _ => MemberRule::Copy(MessagePart::Other),
        }
    }

    /// Writes a scalar.
    fn write<E: serde::de::Error>(&mut self, scalar: &(impl Serialize + ?Sized)) -> Result<(), E> {
        serde_json::to_writer(&mut self.out, scalar).map_err(E::custom)
    }
}

/// A value that is read and written in one pass.
struct RuledValue<'w, 'a> {
    rewriter: &'w mut Rewriter<'a>,
    rule: MemberRule,
}

impl RuledValue<'_, '_> {
    /// Returns whether only an object would be copied: of an answer, nothing else is known to be harmless.
    fn needs_object(&self) -> bool {
        matches!(
            self.rule,
            MemberRule::RedactValue | MemberRule::Copy(MessagePart::Answer | MessagePart::Answers)
        )
    }

    fn scalar<E: serde::de::Error>(self, scalar: impl Serialize) -> Result<(), E> {
        match self.needs_object() {
            true => self.rewriter.write(REDACTED),
            false => self.rewriter.write(&scalar),
        }
    }
}

impl<'de> DeserializeSeed<'de> for RuledValue<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.rule {
            MemberRule::Redact => {
                IgnoredAny::deserialize(value)?;
                self.rewriter.write(REDACTED)
            }
            MemberRule::Tag => {
                let secret = <&RawValue>::deserialize(value)?;
                let tag = self.rewriter.redactor.tag(secret.get().as_bytes());
                self.rewriter.write(&tag)
            }
            MemberRule::Copy(_) | MemberRule::RedactValue | MemberRule::Verbatim => {
                value.deserialize_any(self)
            }
        }
    }
}

impl<'de> Visitor<'de> for RuledValue<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        match self.rule {
            MemberRule::Verbatim => self.rewriter.write(value),
            _ => {
                let redactor = self.rewriter.redactor;
                self.scalar(redactor.text(value))
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        if self.needs_object() {
            while values.next_element::<IgnoredAny>()?.is_some() {}
            return self.rewriter.write(REDACTED);
        }
        let part = match self.rule {
            MemberRule::Copy(MessagePart::Frame) => MessagePart::Message,
            _ => MessagePart::Other,
        };
        let rewriter = self.rewriter;
        rewriter.out.push(b'[');
        let start = rewriter.out.len();
        loop {
            let end = rewriter.out.len();
            if end > start {
                rewriter.out.push(b',');
            }
            if values.next_element_seed(rewriter.value(MemberRule::Copy(part)))?.is_none() {
                rewriter.out.truncate(end);
                break;
            }
        }
        rewriter.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let part = match self.rule {
            MemberRule::Copy(part) => part,
            _ => MessagePart::Other,
        };
        let rewriter = self.rewriter;
        rewriter.out.push(b'{');
        let mut first = true;
        while let Some(name) = members.next_key::<String>()? {
            if !std::mem::take(&mut first) {
                rewriter.out.push(b',');
            }
            rewriter.write::<A::Error>(&name)?;
            rewriter.out.push(b':');
            let rule = rewriter.rule(part, &name);
            members.next_value_seed(rewriter.value(rule))?;
        }
        rewriter.out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_client(message: &str) -> String {
        Redactor::new().message(message.as_bytes(), true).unwrap_or_else(|withheld| withheld)
    }

    fn from_server(message: &str) -> String {
        Redactor::new().message(message.as_bytes(), false).unwrap_or_else(|withheld| withheld)
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1.5,"method":"a","params":{"z":1,"a":[true,null,-2000,"é\n",[],{}],"arguments":{"x":{}}}}"#,
            r#"[{"id":1,"result":{}},{"id":2,"error":{"code":-1,"message":"m"}}]"#,
            r#"{"result":{"tools":[{"inputSchema":{"properties":{"password":{"type":"string"}}}}]}}"#,
            r#"{"result":{"resourceTemplates":[{"uriTemplate":"a://b{?c}"}]}}"#,
        ] {
            assert_eq!(from_server(message), message);
            let spaced = message.replace(',', " ,\r\n ").replace(':', " : ").replace(" : //", "://");
            assert_eq!(from_server(&spaced), message);
        }
    }

    #[test]
    fn answers_are_redacted_wherever_a_client_gives_them() {
        let answer = r#"{"id":1,"result":{"action":"accept","content":{"a":"QQ"},"_meta":{"b":"QQ"}}}"#;
        assert_eq!(
            from_client(answer),
            r#"{"id":1,"result":{"action":"accept","content":"<redacted>","_meta":"<redacted>"}}"#
        );
        assert_eq!(
            from_client(r#"[{"id":1,"result":{"roots":[{"uri":"QQ"}]}},{"id":2,"result":["QQ"]}]"#),
            r#"[{"id":1,"result":{"roots":"<redacted>"}},{"id":2,"result":"<redacted>"}]"#
        );
        assert_eq!(from_server(answer), answer);
        let state = |text: &str| {
            let tagged = from_client(text);
            assert!(!tagged.contains("QQ") && tagged.contains("<redacted:"), "{tagged}");
            tagged
        };
        let retried = state(
            r#"{"id":2,"params":{"inputResponses":{"k":{"action":"accept","content":{"a":"QQ"}},"l":"QQ"},"requestState":"QQ"}}"#,
        );
        assert!(retried.contains(r#"{"k":{"action":"accept","content":"<redacted>"},"l":"<redacted>"}"#));
        state(r#"{"id":2,"params":{"input\u0052esponses":{"k":{"x":"QQ"}},"\u0072equestState":{"a":"QQ"}}}"#);
        let nested = from_server(r#"{"result":{"a":[{"requestState":"QQ","requestState":"QQ"}]}}"#);
        assert!(!nested.contains("QQ") && nested.matches("<redacted:").count() == 2, "{nested}");
    }

    #[test]
    fn urls_and_tokens_are_redacted_at_any_depth() {
        assert_eq!(
            from_server(r#"{"params":{"url":"https:\/\/u:QQ@a\/?QQ","x":["b://c?QQ"]}}"#),
            r#"{"params":{"url":"https://<redacted>@a/?<redacted>","x":["b://c?<redacted>"]}}"#
        );
        assert_eq!(
            from_client(
                r#"{"params":{"arguments":{"access_token":"QQ","Client-Secret":["QQ"],"password":5}}}"#
            ),
            r#"{"params":{"arguments":{"access_token":"<redacted>","Client-Secret":"<redacted>","password":"<redacted>"}}}"#
        );
    }

    #[test]
    fn arguments_are_redacted_by_option() {
        let redactor = Redactor::new().arguments().member("own");
        let redacted = |text: &str| redactor.message(text.as_bytes(), true).unwrap();
        assert_eq!(
            redacted(r#"{"params":{"name":"a","arguments":{"b":1},"argument":{},"own":{}}}"#),
            r#"{"params":{"name":"a","arguments":"<redacted>","argument":"<redacted>","own":"<redacted>"}}"#
        );
        // The arguments that a prompt declares.
        let declared = r#"{"result":{"prompts":[{"arguments":[{"name":"a"}]}]}}"#;
        assert_eq!(redactor.message(declared.as_bytes(), false).unwrap(), declared);
    }

    #[test]
    fn what_is_not_json_is_withheld() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in ["", "QQ", "{\"a\":\"S\"", "{\"a\" \"S\"}", "[1,]", "{\"a\":S}", "\"QQ\n\"", "1 2", &deep]
        {
            let shown = from_client(text);
            assert_eq!(shown, format!("<redacted: {} bytes that are not JSON>", text.len()));
        }
        assert!(Redactor::new().message(b"\"QQ\xff\"", true).is_err_and(|shown| !shown.contains("QQ")));
        let disabled = Redactor::disabled();
        assert_eq!(disabled.message(b"{\"requestState\" :\n 1}", true).unwrap(), "{\"requestState\":1}");
        assert_eq!(disabled.message(b"noise", true), Err("noise".to_owned()));
    }
}
