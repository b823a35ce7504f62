//! Round trips of whatever can be read.

use std::ops::Range;

use pintle_types::{Frame, Message, Notification, RawObject, Request, RequestId, Response, RpcError};
use proptest::{collection::btree_map, prelude::*};
use serde_json::Value;

use crate::laws;

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![any::<i64>().prop_map(RequestId::from), any::<String>().prop_map(RequestId::from)]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn object(members: Range<usize>) -> impl Strategy<Value = RawObject> {
    let name = prop_oneof!["[a-z_]{0,8}", any::<String>()];
    // Spaced as another printer would.
    btree_map(name, json(), members).prop_map(|members| {
        let members: serde_json::Map<_, _> = members.into_iter().collect();
        let text = serde_json::to_string_pretty(&members).unwrap_or_default();
        text.parse().unwrap_or_default()
    })
}

fn message() -> impl Strategy<Value = Message> {
    let params = || prop::option::of(object(0..4));
    let error = (any::<i32>(), any::<String>(), prop::option::of(json())).prop_map(|(code, detail, data)| {
        let error = RpcError::new(pintle_types::ErrorCode(code), detail);
        // A null says as little as nothing does.
        data.filter(|data| !data.is_null()).map_or(error.clone(), |data| error.with_data(&data))
    });
    let result = prop_oneof![object(0..4).prop_map(Ok), error.prop_map(Err)];
    prop_oneof![
        (id(), any::<String>(), params())
            .prop_map(|(id, method, params)| Message::Request(Request::new(id, method, params))),
        (any::<String>(), params())
            .prop_map(|(method, params)| Message::Notification(Notification::new(method, params))),
        (prop::option::of(id()), result)
            .prop_map(|(id, result)| Message::Response(Response::new(id, result))),
    ]
}

proptest! {
    #[test]
    fn an_object_is_what_serde_json_says(object in object(0..15)) {
        laws::object(object.as_str());
    }

    #[test]
    fn any_text_is_an_object_or_none(text in r#"[{}\[\]",:\\a-z0-9 \n\u{e9}]{0,40}"#) {
        laws::object(&text);
        laws::object(&format!("{{{text}}}"));
        laws::frame(text.as_bytes());
    }

    #[test]
    fn a_message_comes_back(message in message()) {
        let printed = message.to_vec();
        // Line breaks between tokens become spaces once; from then on nothing changes.
        let read = Message::parse(&printed).map_err(|bad| TestCaseError::fail(bad.error.to_string()))?;
        prop_assert_eq!(read.to_vec(), &*printed);
        prop_assert_eq!(Frame::parse(&printed, 1), Ok(Frame::One(read)));
        laws::frame(&printed);
    }

    #[test]
    fn a_batch_comes_back(messages in prop::collection::vec(message(), 1..5)) {
        let printed: Vec<String> = messages.iter().map(ToString::to_string).collect();
        let batch = format!("[ {} ]", printed.join(" ,\n"));
        laws::frame(batch.as_bytes());
        let Ok(Frame::Batch(items)) = Frame::parse(batch.as_bytes(), 8) else { panic!("a batch") };
        let read: Vec<String> = items.iter().flatten().map(ToString::to_string).collect();
        prop_assert_eq!(read, printed);
    }

    #[test]
    fn a_message_with_a_flaw_breaks_no_law(message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut printed = message.to_vec();
        let at = at.index(printed.len());
        printed[at] = byte;
        laws::frame(&printed);
        printed.remove(at);
        laws::frame(&printed);
        printed.truncate(at);
        laws::frame(&printed);
    }
}
