use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use pintle_proto::{
    inputs::{Answer, Question},
    server::{CacheHint, Outcome},
};
use pintle_types::{
    RawObject, RpcError,
    schema::{CacheScope, ElicitAction, LoggingLevel},
};
use serde_json::{Value, json};

use super::{client::object, server::Cx};

/// What is left of the shop between two calls.
#[derive(Debug, Default)]
pub(crate) struct Shop {
    /// How often a card was charged.
    pub(crate) charges: Cell<u32>,
    /// How often a list was made, rather than served from a client's cache.
    pub(crate) listings: Cell<u32>,
    /// Asks something else under the same name.
    pub(crate) fickle: Cell<bool>,
    /// Lets those go who wait.
    pub(crate) release: Cell<bool>,
    /// Makes every list fail.
    pub(crate) broken: Cell<bool>,
    /// How long lists may be kept.
    pub(crate) ttl_ms: Cell<u64>,
    /// Whether others may keep them too.
    pub(crate) public: Cell<bool>,
}

/// The tools, in the order of the list.
pub(crate) const TOOLS: [&str; 14] = [
    "arm", "both", "book", "chat", "count", "draft", "echo", "greet", "pay", "plan", "quoted", "think",
    "wait", "where",
];

/// The same for every revision: nothing here knows which one is spoken.
pub(crate) async fn serve(cx: &Cx) -> Result<Outcome, RpcError> {
    let params: Value = cx.call.params().decode().unwrap();
    match cx.call.method() {
        "tools/list" => {
            let tools: Vec<_> =
                TOOLS.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
            list(cx, json!({"tools": tools}))
        }
        "tools/call" => {
            let name = params["name"].as_str().unwrap().to_owned();
            match tool(cx, &name, &params["arguments"]).await? {
                Reply::Text(text) => complete(json!({"content": [{"type": "text", "text": text}]})),
                Reply::BadArguments(detail) => Ok(Outcome::BadArguments(detail.into())),
            }
        }
        "resources/list" => {
            // The empty string is a cursor like any other.
            let page = match params.get("cursor").map(|cursor| cursor.as_str().unwrap()) {
                None => json!({"resources": [{"name": "1", "uri": "note://1"}], "nextCursor": ""}),
                Some("") => json!({"resources": [{"name": "2", "uri": "note://2"}], "nextCursor": "3"}),
                Some("3") => json!({"resources": [{"name": "3", "uri": "note://3"}]}),
                Some(other) => return Err(RpcError::invalid_params(format!("no such page: `{other}`"))),
            };
            list(cx, page)
        }
        "resources/read" => match params["uri"].as_str().unwrap() {
            "note://1" => list(cx, json!({"contents": [{"uri": "note://1", "text": "one"}]})),
            "note://ask" => {
                let text = sample(cx, "ask", "Is it one").await?;
                list(cx, json!({"contents": [{"uri": "note://ask", "text": text}]}))
            }
            other => Ok(Outcome::NotFound { uri: other.into() }),
        },
        "prompts/get" => {
            let text = sample(cx, "tone", "Be polite").await?;
            complete(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
        }
        "completion/complete" => complete(json!({"completion": {"values": ["blue", "black"]}})),
        "server/echo" => complete(json!({"echo": params["text"]})),
        other => Err(RpcError::method_not_found(other)),
    }
}

enum Reply {
    Text(String),
    BadArguments(&'static str),
}

async fn tool(cx: &Cx, name: &str, arguments: &Value) -> Result<Reply, RpcError> {
    Ok(Reply::Text(match name {
        "echo" => match arguments["text"].as_str() {
            Some(text) => text.to_owned(),
            None => return Ok(Reply::BadArguments("`/text`: expected a string")),
        },
        "greet" => {
            let what = arguments["ask"].as_str().unwrap_or("Your name?");
            match form(cx, "name", what).await? {
                Ok(name) => format!("Hello, {name}"),
                Err(action) => format!("{action:?}"),
            }
        }
        "book" => {
            let message = if cx.shop.fickle.get() { "Which meal?" } else { "Which seat?" };
            let seat = form(cx, "seat", message).await?.unwrap();
            let charge = charge(cx);
            let meal = form(cx, "meal", "Which meal?").await?.unwrap();
            format!("{seat}, {meal}, charge {charge}")
        }
        "draft" => {
            let outline = sample(cx, "outline", "A poem").await?;
            let charge = charge(cx);
            let text = sample(cx, "text", &outline).await?;
            format!("{text} charge {charge}")
        }
        "plan" => {
            let (text, place) = join(sample(cx, "plan", "Go"), roots(cx)).await;
            format!("{} {}", text?, place?)
        }
        "both" => {
            let (seat, text) = join(form(cx, "seat", "Which seat?"), sample(cx, "plan", "Go")).await;
            format!("{} {}", seat?.unwrap(), text?)
        }
        "quoted" => sample(cx, "what \"they\" said\n", "Truly").await?,
        "think" => sample(cx, "think", "Hm").await?,
        "arm" => {
            let message = json!({"role": "user", "content": {"type": "text", "text": "Hm"}});
            let tools = json!([{"name": "knife", "inputSchema": {"type": "object"}}]);
            let params = json!({"messages": [message], "maxTokens": 9, "tools": tools});
            let question = Question::Sample(serde_json::from_value(params).unwrap());
            let Answer::Sample(result) = cx.ask("arm", question).await? else { panic!("another kind") };
            result.model
        }
        "where" => roots(cx).await?,
        "pay" => {
            let params = json!({"mode": "url", "message": "Pay here", "url": "https://pay.example/1"});
            let question = Question::Elicit(serde_json::from_value(params).unwrap());
            let Answer::Elicit(result) = cx.ask("pay", question).await? else { panic!("another kind") };
            format!("{:?}", result.action)
        }
        "count" => {
            for (done, detail) in [(0.5, "half"), (0.25, "back"), (1.0, "all")] {
                cx.progress(done, detail);
                turn().await;
            }
            "counted".to_owned()
        }
        "chat" => {
            cx.log(LoggingLevel::Debug, "a detail");
            cx.log(LoggingLevel::Warning, "a warning");
            turn().await;
            cx.log(LoggingLevel::Error, "an error");
            "chatted".to_owned()
        }
        "wait" => {
            if arguments["ask"] == true {
                form(cx, "name", "Your name?").await?.unwrap();
            }
            poll_fn(|_| if cx.shop.release.get() { Poll::Ready(()) } else { Poll::Pending }).await;
            cx.progress(9.0, "late");
            cx.log(LoggingLevel::Emergency, "late");
            "waited".to_owned()
        }
        other => return Err(RpcError::invalid_params(format!("no such tool: `{other}`"))),
    }))
}

fn charge(cx: &Cx) -> Value {
    cx.once("charge", || {
        cx.shop.charges.set(cx.shop.charges.get() + 1);
        json!(cx.shop.charges.get())
    })
}

/// What the user filled in, or what they did instead.
async fn form(cx: &Cx, key: &str, message: &str) -> Result<Result<String, ElicitAction>, RpcError> {
    let schema =
        json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let question = Question::Elicit(serde_json::from_value(params).unwrap());
    let Answer::Elicit(result) = cx.ask(key, question).await? else { panic!("another kind") };
    Ok(match result.action {
        ElicitAction::Accept => Ok(result.content.unwrap()["value"].as_str().unwrap().to_owned()),
        action => Err(action),
    })
}

async fn sample(cx: &Cx, key: &str, text: &str) -> Result<String, RpcError> {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let params = json!({"messages": [message], "maxTokens": 9});
    let question = Question::Sample(serde_json::from_value(params).unwrap());
    let Answer::Sample(result) = cx.ask(key, question).await? else { panic!("another kind") };
    let content = serde_json::to_value(&result.content).unwrap();
    Ok(content["text"].as_str().unwrap().to_owned())
}

async fn roots(cx: &Cx) -> Result<String, RpcError> {
    let Answer::Roots(result) = cx.ask("roots", Question::Roots).await? else { panic!("another kind") };
    Ok(result.roots[0].uri.clone())
}

fn complete(result: Value) -> Result<Outcome, RpcError> {
    Ok(Outcome::Complete(object(&result).into()))
}

fn list(cx: &Cx, result: Value) -> Result<Outcome, RpcError> {
    cx.shop.listings.set(cx.shop.listings.get() + 1);
    if cx.shop.broken.get() {
        return Err(RpcError::internal("broken"));
    }
    let scope = if cx.shop.public.get() { CacheScope::Public } else { CacheScope::Private };
    let result: RawObject = object(&result);
    Ok(Outcome::Cacheable(result.into(), CacheHint::new(cx.shop.ttl_ms.get(), scope)))
}

/// Lets the driver look at what was put down so far.
async fn turn() {
    let mut turned = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut turned, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs both at once.
async fn join<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(|cx| {
        if first.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(cx)
        {
            first = Some(value);
        }
        if second.is_none()
            && let Poll::Ready(value) = other.as_mut().poll(cx)
        {
            second = Some(value);
        }
        if first.is_some() && second.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (first.unwrap(), second.unwrap())
}
