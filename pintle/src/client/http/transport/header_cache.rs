use std::{borrow::Cow, sync::Arc};

use http::HeaderMap;
use pintle_proto::http::{
    NameSource,
    headers::{BadHeader, PostHeaders},
    name_member,
};
use pintle_types::{Message, Request};

/// A cache of the headers of POSTs on one connection.
#[derive(Debug)]
pub(in crate::client::http) struct HeaderCache {
    posts: PostHeaders,
    /// The headers of every POST.
    common: Arc<HeaderMap>,
    /// The headers of the last POST that had more: the next often has the same (see `bench/LEDGER.md`).
    last: Option<Cached>,
}

#[derive(Debug)]
struct Cached {
    method: Cow<'static, str>,
    /// The tool, prompt or resource that it names, as JSON.
    named: Option<Box<str>>,
    headers: Arc<HeaderMap>,
}

impl HeaderCache {
    pub(in crate::client::http) fn new(posts: PostHeaders, common: HeaderMap) -> Self {
        Self { posts, common: Arc::new(common), last: None }
    }

    /// Returns the headers of a POST of these messages.
    pub(in crate::client::http) fn headers_for(
        &mut self,
        messages: &[Message],
    ) -> Result<Arc<HeaderMap>, BadHeader> {
        const MAX_NAME: usize = 1024;
        let request = match messages {
            [Message::Request(request)] => Some(request),
            _ => None,
        };
        if let (Some(last), Some(request)) = (&self.last, request)
            && last.method == request.method
            && last.named.as_deref() == named(request)
        {
            return Ok(last.headers.clone());
        }
        let own = self.posts.of(messages, &NameSource::TASKS)?;
        if own.is_empty() {
            return Ok(self.common.clone());
        }
        let mut headers = HeaderMap::clone(&self.common);
        headers.extend(own.into_iter().map(|(name, value)| (Some(name), value)));
        let headers = Arc::new(headers);
        if let Some(request) = request.filter(|it| named(it).is_none_or(|name| name.len() <= MAX_NAME)) {
            let (method, named) = (request.method.clone(), named(request).map(Into::into));
            self.last = Some(Cached { method, named, headers: headers.clone() });
        }
        Ok(headers)
    }
}

fn named(request: &Request) -> Option<&str> {
    request.params.as_ref()?.get(name_member(&request.method, &NameSource::TASKS)?)
}

#[cfg(test)]
mod tests {
    use pintle_proto::{
        Revision,
        http::{MCP_METHOD, MCP_NAME},
    };

    use super::*;

    fn cache(revision: Revision) -> HeaderCache {
        let posts = PostHeaders::new(Some(revision), None).unwrap();
        let common = posts.common().clone();
        HeaderCache::new(posts, common)
    }

    #[test]
    fn each_request_wears_what_it_says() {
        let mut cache = cache(Revision::LATEST);
        let mut message = |method: &str, params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let headers = cache.headers_for(&[Message::parse(text.as_bytes()).unwrap()]).unwrap();
            let message = |name| headers.get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
            format!("{} {} of {}", message(&MCP_METHOD), message(&MCP_NAME), headers.len())
        };
        for _ in 0..2 {
            assert_eq!(message("tools/call", r#"{"name":"a"}"#), "tools/call a of 5");
        }
        assert_eq!(message("tools/call", r#"{"name":"b"}"#), "tools/call b of 5");
        assert_eq!(message("prompts/get", r#"{"name":"b"}"#), "prompts/get b of 5");
        assert_eq!(message("prompts/get", r#"{"title":"b"}"#), "prompts/get - of 4");
        assert_eq!(message("tools/list", r#"{"name":"b"}"#), "tools/list - of 4");
        assert_eq!(message("tasks/get", r#"{"taskId":"7"}"#), "tasks/get 7 of 5");
    }

    #[test]
    fn in_a_session_all_wear_the_same() {
        let oldest = Revision::all().find(|revision| revision.facts().keeps_session).unwrap();
        let mut cache = cache(oldest);
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        let headers = cache.headers_for(&[Message::parse(call).unwrap()]).unwrap();
        assert!(Arc::ptr_eq(&headers, &cache.common));
    }
}
