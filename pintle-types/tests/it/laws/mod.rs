//! What holds for every text, whoever wrote it. The property tests and the fuzz targets share it.

use pintle_types::{Frame, Malformed, Message, RawObject};
use serde_json::{Map, Value, value::RawValue};

/// Reads bytes as a frame and holds whatever comes of it against the laws.
pub(crate) fn frame(bytes: &[u8]) {
    match Frame::parse(bytes, 8) {
        Ok(Frame::One(read)) => message(&read, bytes),
        Ok(Frame::Batch(items)) => {
            assert!((1..=8).contains(&items.len()), "a batch of {}", items.len());
            let texts: Vec<&RawValue> = serde_json::from_slice(bytes).expect("it was split");
            for (item, text) in items.iter().zip(&texts) {
                match item {
                    Ok(read) => message(read, text.get().as_bytes()),
                    Err(malformed) => refused(malformed),
                }
            }
        }
        Err(malformed) => {
            refused(&malformed);
            if !bytes.trim_ascii_start().starts_with(b"[") {
                assert_eq!(
                    Message::parse(bytes),
                    Err(malformed),
                    "a frame is refused in the message's words"
                );
            }
        }
    }
}

/// A message prints on one line, which is read as the same message and means what the original text meant.
fn message(read: &Message, original: &[u8]) {
    let printed = read.to_vec();
    assert!(!printed.contains(&b'\n') && !printed.contains(&b'\r'), "more than one line: {read}");
    let again = Message::parse(&printed).expect("what we print can be read");
    assert_eq!(again.to_vec(), printed);
    if !original.contains(&b'\n') && !original.contains(&b'\r') {
        assert_eq!(again, *read);
    }
    let (Some(meant), Some(detail)) = (tree(original), tree(&printed)) else { return };
    assert_eq!(essence(meant), detail);
}

/// What is refused is answered with a response, unless it was one.
fn refused(malformed: &Malformed) {
    let Some(reply) = malformed.reply() else { return };
    let reply = Message::Response(reply);
    assert_eq!(Message::parse(&reply.to_vec()).as_ref(), Ok(&reply));
}

/// The members that the envelope keeps.
fn essence(mut message: Value) -> Value {
    let Some(members) = message.as_object_mut() else { return message };
    members.retain(|name, value| match name.as_str() {
        "jsonrpc" | "method" | "result" | "error" => true,
        "id" | "params" => !value.is_null(),
        _ => false,
    });
    if !members.contains_key("method") {
        members.remove("params");
    }
    if let Some(error) = members.get_mut("error").and_then(Value::as_object_mut) {
        error.retain(|name, value| match name.as_str() {
            "code" | "message" => true,
            "data" => !value.is_null(),
            _ => false,
        });
    }
    message
}

/// Reads a text as an object and compares what is found in it with what serde_json finds.
pub(crate) fn object(text: &str) {
    let Ok(object) = text.parse::<RawObject>() else { return };
    let again: RawObject = object.as_str().parse().expect("what was read can be read again");
    assert_eq!(again, object);
    assert_eq!(format!("{{{}}}", object.inner()), object.as_str());
    let Some(Value::Object(members)) = tree(text.as_bytes()) else { return };
    agrees(&object, &members);
    let raw: &RawValue = serde_json::from_str(text).expect("it was read before");
    agrees(&RawObject::from_serialize(raw).expect("an object"), &members);
    // Read again, because serde_json may print a number that it reads as the one next to it.
    let printed = serde_json::to_vec(&members).expect("a tree prints");
    let reread = tree(&printed).and_then(|tree| tree.as_object().cloned()).expect("an object");
    agrees(&RawObject::from_serialize(&members).expect("an object"), &reread);
    agrees(&RawObject::from_serialize(&object).expect("an object"), &members);
    for name in members.keys().take(4) {
        let mut fewer = members.clone();
        fewer.remove(name);
        agrees(&object.without(&[name]), &fewer);
        let mut other = members.clone();
        other.insert(name.clone(), Value::from(7));
        agrees(&object.with(name, serde_json::from_str("7").expect("a number")), &other);
    }
}

fn agrees(object: &RawObject, members: &Map<String, Value>) {
    assert_eq!(object.is_empty(), members.is_empty(), "{object:?}");
    assert_eq!(object.iter().count(), members.len(), "{object:?}");
    for (name, value) in object.iter() {
        let name: String = serde_json::from_str(&format!("\"{name}\"")).expect("a name as it is printed");
        assert_eq!(tree(value.as_bytes()).as_ref(), members.get(&name), "`{name}` of {object:?}");
    }
    for (name, value) in members {
        let found = object.get(name).and_then(|text| tree(text.as_bytes()));
        assert_eq!(found.as_ref(), Some(value), "`{name}` of {object:?}");
    }
    assert_eq!(object.decode::<Map<String, Value>>().expect("an object"), *members);
}

/// The text as serde_json sees it, where that can be compared: not what is too deep or too large for a tree, and not
/// the name by which serde_json knows its own raw values.
fn tree(text: &[u8]) -> Option<Value> {
    let own = b"$serde_json::private";
    if text.windows(own.len()).any(|window| window == own) {
        return None;
    }
    serde_json::from_slice(text).ok()
}
