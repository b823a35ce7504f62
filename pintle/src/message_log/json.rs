//! Redaction of JSON without building a tree: the order of members and the digits of numbers stay as they are.

use std::borrow::Cow;

use super::redactor::{REDACTED, Redactor, is_secret_member};

/// Copies JSON without insignificant white space, and replaces what is to be redacted.
pub(super) struct Rewriter<'a> {
    redactor: &'a Redactor,
    by_client: bool,
    text: &'a str,
    at: usize,
    depth: usize,
    out: String,
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

/// The treatment of a member.
enum Rule {
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
/// The limit of nested values, as that of the parser of messages.
const MAX_DEPTH: usize = 128;

impl<'a> Rewriter<'a> {
    /// Returns `None` if the text is not JSON, or nested too deeply.
    pub(super) fn rewrite(redactor: &'a Redactor, text: &'a str, by_client: bool) -> Option<String> {
        let out = String::with_capacity(text.len());
        let mut rewriter = Rewriter { redactor, by_client, text, at: 0, depth: 0, out };
        rewriter.value(MessagePart::Frame)?;
        rewriter.skip_space();
        (rewriter.at == text.len()).then_some(rewriter.out)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes one of two bytes, after white space, and copies it.
    fn take(&mut self, bytes: [u8; 2]) -> Option<u8> {
        self.skip_space();
        let byte = self.peek().filter(|byte| bytes.contains(byte))?;
        self.at += 1;
        self.out.push(byte.into());
        Some(byte)
    }

    fn value(&mut self, part: MessagePart) -> Option<()> {
        self.skip_space();
        match self.peek()? {
            b'{' => self.nested(|rewriter| rewriter.object(part)),
            // An answer is an object: nothing else is known to be harmless.
            _ if matches!(part, MessagePart::Answer | MessagePart::Answers) => {
                self.redacted(|_| REDACTED.into())
            }
            b'[' => {
                let of = if part == MessagePart::Frame { MessagePart::Message } else { MessagePart::Other };
                self.nested(|rewriter| rewriter.array(of))
            }
            b'"' => self.string(),
            _ => self.scalar(),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    fn array(&mut self, part: MessagePart) -> Option<()> {
        self.take(*b"[[")?;
        self.skip_space();
        if self.peek()? == b']' {
            return self.take(*b"]]").map(drop);
        }
        loop {
            self.value(part)?;
            if self.take(*b",]")? == b']' {
                return Some(());
            }
        }
    }

    fn object(&mut self, part: MessagePart) -> Option<()> {
        self.take(*b"{{")?;
        self.skip_space();
        if self.peek()? == b'}' {
            return self.take(*b"}}").map(drop);
        }
        loop {
            self.skip_space();
            let name = self.raw_string()?;
            self.out.push_str(name);
            let name: Cow<'_, str> = decoded(name)?;
            self.take(*b"::")?;
            match self.rule(part, &name) {
                Rule::Copy(part) => self.value(part)?,
                Rule::Redact => self.redacted(|_| REDACTED.into())?,
                Rule::Tag => {
                    let redactor = self.redactor;
                    self.redacted(|value| redactor.tag(value.as_bytes()))?;
                }
                Rule::RedactValue => {
                    self.skip_space();
                    match self.peek()? {
                        b'{' => self.value(MessagePart::Other)?,
                        _ => self.redacted(|_| REDACTED.into())?,
                    }
                }
                Rule::Verbatim => {
                    self.skip_space();
                    match self.peek()? {
                        b'"' => {
                            let raw = self.raw_string()?;
                            self.out.push_str(raw);
                        }
                        _ => self.value(MessagePart::Other)?,
                    }
                }
            }
            if self.take(*b",}")? == b'}' {
                return Some(());
            }
        }
    }

    fn rule(&self, part: MessagePart, name: &str) -> Rule {
        if !self.redactor.is_enabled() {
            return Rule::Copy(MessagePart::Other);
        }
        if self.redactor.has_member(name) {
            return Rule::Redact;
        }
        match (part, name) {
            (_, "requestState") => Rule::Tag,
            (_, "inputResponses") => Rule::Copy(MessagePart::Answers),
            (MessagePart::Answers, _) => Rule::Copy(MessagePart::Answer),
            (MessagePart::Answer, name) if ANSWER_MEMBERS.contains(&name) => Rule::Copy(MessagePart::Other),
            (MessagePart::Answer, _) => Rule::Redact,
            (MessagePart::Frame | MessagePart::Message, "result") if self.by_client => {
                Rule::Copy(MessagePart::Answer)
            }
            (MessagePart::Frame | MessagePart::Message, "params") => Rule::Copy(MessagePart::Params),
            (MessagePart::Params, "arguments" | "argument" | "context")
                if self.redactor.redacts_arguments() =>
            {
                Rule::Redact
            }
            (_, "uriTemplate") => Rule::Verbatim,
            (_, name) if is_secret_member(name) => Rule::RedactValue,
            _ => Rule::Copy(MessagePart::Other),
        }
    }

    /// Reads a value, and writes something else in its place.
    fn redacted(&mut self, replace: impl FnOnce(&str) -> String) -> Option<()> {
        self.skip_space();
        let (start, kept) = (self.at, self.out.len());
        self.value(MessagePart::Other)?;
        self.out.truncate(kept);
        let text = replace(&self.text[start..self.at]);
        self.push_string(&text);
        Some(())
    }

    fn push_string(&mut self, text: &str) {
        self.out.push_str(&serde_json::Value::from(text).to_string());
    }

    /// Copies a string, without the secrets of the URLs in it.
    fn string(&mut self) -> Option<()> {
        let raw = self.raw_string()?;
        let text = decoded(raw)?;
        match self.redactor.text(&text) {
            Cow::Borrowed(_) => self.out.push_str(raw),
            Cow::Owned(redacted) => self.push_string(&redacted),
        }
        Some(())
    }

    /// Reads a string with its quotes.
    fn raw_string(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return self.text.get(start..self.at),
                b'\\' => self.at += 1,
                // A line break would end the line of the record.
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    /// Copies a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        let scalar = &rest[..end];
        serde_json::from_str::<serde::de::IgnoredAny>(scalar).ok()?;
        self.at += end;
        self.out.push_str(scalar);
        Some(())
    }
}

/// Decodes a string with its quotes.
fn decoded(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.get(1..raw.len().checked_sub(1)?)?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(raw).ok().map(Cow::Owned),
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
            r#"{"jsonrpc":"2.0","id":1.50,"method":"a","params":{"z":1,"a":[true,null,-2e3,"\u00e9\n"],"arguments":{"x":{}}}}"#,
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
