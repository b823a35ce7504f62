//! A client that is told anything, in any order: it never panics, and every request of its own ends at most once.

use std::collections::HashSet;

use pintle_proto::{
    Limits,
    client::{Engine, Extras, Inbound, Mode, Opening, OpeningEvent, OpeningStep, Profile},
};
use pintle_types::{Message, RequestId};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    /// Send one of `METHODS`.
    Send(usize, bool),
    Cancel(i64),
    Abandon(i64),
    /// Answer a question.
    Reply(i64),
    /// Hear one of `LINES`, with `#` standing for an id.
    Receive(usize, i64),
    Lose,
}

const METHODS: [&str; 6] =
    ["tools/call", "tools/list", "ping", "subscriptions/listen", "acme/custom", "completion/complete"];

const LINES: [&str; 22] = [
    r##"{"jsonrpc":"2.0","id":#,"result":{}}"##,
    r##"{"jsonrpc":"2.0","id":#,"result":{"resultType":"complete","content":[{"type":"text","text":"a"}]}}"##,
    r##"{"jsonrpc":"2.0","id":#,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"}}}}"##,
    r##"{"jsonrpc":"2.0","id":#,"result":{"resultType":"?"}}"##,
    r##"{"jsonrpc":"2.0","id":#,"result":{},"error":5}"##,
    r##"{"jsonrpc":"2.0","id":#,"error":{"code":-32602,"message":"no"}}"##,
    r##"{"jsonrpc":"2.0","id":#,"error":{"code":-32042,"message":"no","data":{"elicitations":[{}]}}}"##,
    r##"{"jsonrpc":"2.0","id":"#","result":{}}"##,
    r##"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"##,
    r##"{"jsonrpc":"2.0","id":#,"method":"ping"}"##,
    r##"{"jsonrpc":"2.0","id":#,"method":"roots/list"}"##,
    r##"{"jsonrpc":"2.0","id":#,"method":"elicitation/create","params":{"mode":"url","url":"a:b"}}"##,
    r##"{"jsonrpc":"2.0","id":#,"method":5}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":#,"progress":1}}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":null}}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":#}}}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":#},"notifications":{"toolsListChanged":true}}}"##,
    r##"{"jsonrpc":"2.0","method":"acme/news","params":{"n":#}}"##,
    r##"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":#}}"##,
    "listening on #",
];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..METHODS.len(), any::<bool>()).prop_map(|(method, progress)| Act::Send(method, progress)),
        1 => (0..20i64).prop_map(Act::Cancel),
        1 => (0..20i64).prop_map(Act::Abandon),
        2 => (0..20i64).prop_map(Act::Reply),
        12 => (0..LINES.len(), -1..20i64).prop_map(|(line, id)| Act::Receive(line, id)),
        1 => Just(Act::Lose),
    ]
}

fn open(engine: &mut Engine, profile: &Profile, revision: &str) {
    let (mode, answer) = if revision == "2026-07-28" {
        (Mode::Modern, format!(r#"{{"supportedVersions":["{revision}"]}}"#))
    } else {
        (Mode::Legacy, format!(r#"{{"protocolVersion":"{revision}"}}"#))
    };
    let (mut opening, _) = Opening::new(profile.clone(), mode, None);
    let mut step = opening.step(OpeningEvent::Answer(Ok(&answer.parse().unwrap())));
    if let OpeningStep::Notify(_) = step {
        step = opening.step(OpeningEvent::Done);
    }
    let OpeningStep::Ready(opened) = step else { panic!("{step:?}") };
    engine.settle(&opened);
}

proptest! {
    #[test]
    fn every_request_ends_at_most_once(
        revision in prop::sample::select(vec!["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        acts in prop::collection::vec(act(), 0..120),
    ) {
        let capabilities = r#"{"roots":{},"elicitation":{"url":{}}}"#;
        let profile = Profile::new(r#"{"name":"t","version":"1"}"#.parse().unwrap(), capabilities.parse().unwrap());
        let mut engine = Engine::new(profile.clone(), Limits::default());
        open(&mut engine, &profile, revision);
        let stateless = revision == "2026-07-28";
        let mut waiting = HashSet::new();
        let mut sent = HashSet::new();
        let mut questions = HashSet::new();
        for act in acts {
            match act {
                Act::Send(method, progress) => {
                    let mut extras = Extras::default();
                    extras.progress = progress;
                    let params = r#"{"notifications":{"toolsListChanged":true}}"#.parse().unwrap();
                    if let Ok(request) = engine.request(METHODS[method], &params, &extras) {
                        prop_assert!(sent.insert(request.id.clone()), "an id is used twice");
                        waiting.insert(request.id);
                    }
                }
                Act::Cancel(id) => {
                    let id = RequestId::from(id);
                    prop_assert_eq!(engine.cancel(&id, None).is_some(), waiting.remove(&id));
                }
                Act::Abandon(id) => {
                    engine.abandon(&id.into());
                    waiting.remove(&id.into());
                }
                Act::Reply(id) => {
                    let id = RequestId::from(id);
                    let reply = engine.reply(&id, Ok("{}".parse().unwrap()));
                    prop_assert_eq!(reply.is_some(), questions.remove(&id));
                }
                Act::Lose => {
                    let lost: HashSet<_> = engine.lose().requests.into_iter().collect();
                    prop_assert_eq!(&lost, &waiting);
                    waiting.clear();
                    questions.clear();
                    open(&mut engine, &profile, revision);
                }
                Act::Receive(line, id) => {
                    let line = LINES[line].replace('#', &id.to_string());
                    match engine.receive(Message::parse(line.as_bytes())) {
                        Inbound::Answer { id, .. } | Inbound::Ended { subscription: id, .. } => {
                            prop_assert!(waiting.remove(&id), "{id} ended twice, or was never sent");
                        }
                        Inbound::Question(question) => {
                            prop_assert!(!stateless && questions.insert(question.id));
                        }
                        Inbound::Withdrawn { id } => prop_assert!(questions.remove(&id)),
                        Inbound::Reply(_) => prop_assert!(!stateless, "nothing is answered in that era"),
                        Inbound::Progress { id, .. } => prop_assert!(waiting.contains(&id)),
                        Inbound::Change { subscription, .. } => {
                            prop_assert_eq!(subscription.is_some(), stateless);
                            prop_assert!(subscription.is_none_or(|id| waiting.contains(&id)));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
