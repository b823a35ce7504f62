//! Event streams, split at any position.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use pintle_proto::sse::{Decoder, Event, DecodeError, Frame, DecoderLimits};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    line: u8,
    event: u8,
    cuts: [u8; 4],
    written: Vec<Written<'a>>,
    stream: &'a [u8],
}

#[derive(Arbitrary, Debug)]
struct Written<'a> {
    name: Option<&'a str>,
    id: Option<&'a str>,
    retry: Option<u64>,
    data: Option<&'a str>,
}

fuzz_target!(|input: Input<'_>| {
    let small = DecoderLimits { line: input.line.into(), event: input.event.into() };
    for limits in [small, DecoderLimits::default()] {
        cut_anywhere(limits, input.stream, &input.cuts);
    }
    written_and_read(&input);
});

/// Checks that events, errors and the last id do not depend on how the stream is split, and that limits hold.
fn cut_anywhere(limits: DecoderLimits, stream: &[u8], cuts: &[u8]) {
    let mut whole = Decoder::new(limits);
    let expected = read(&mut whole, [stream]);
    let mut pieces = Vec::new();
    let (mut rest, mut cuts) = (stream, cuts.iter().cycle());
    while let (false, Some(cut)) = (rest.is_empty(), cuts.next()) {
        let (piece, more) = rest.split_at(rest.len().min(usize::from(*cut).max(1)));
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    let mut cut = Decoder::new(limits);
    assert_eq!(read(&mut cut, pieces), expected);
    assert_eq!(cut.last_event_id(), whole.last_event_id());
    for event in &expected.0 {
        assert!(event.data.len() <= limits.event, "{} bytes of data", event.data.len());
        for text in [&event.name, &event.id].into_iter().flatten() {
            assert!(text.len() <= limits.line, "a field of {} bytes", text.len());
        }
    }
    if let Some(fault) = expected.1 {
        assert_eq!(cut.next(&mut &b"data: x\n\n"[..]), Err(fault), "a fault is for ever");
    }
    cut.reconnect();
    assert_eq!(cut.last_event_id(), whole.last_event_id());
}

/// Checks that written events are read back, with any line break as a line feed.
fn written_and_read(input: &Input<'_>) {
    let mut out = Vec::new();
    let mut expected = Vec::new();
    for Written { name, id, retry, data } in &input.written {
        let mut frame = data.map_or_else(Frame::default, Frame::data);
        frame = name.map_or(frame, |name| frame.event(name));
        frame = id.map_or(frame, |id| frame.id(id));
        frame = retry.map_or(frame, |retry| frame.with_retry(retry));
        let before = out.len();
        if frame.write(&mut out).is_err() {
            assert_eq!(out.len(), before, "nothing is written of what cannot be");
            assert!([name, id].into_iter().flatten().any(|text| text.contains(['\n', '\r', '\0'])));
            continue;
        }
        if data.is_some() || id.is_some() || retry.is_some() {
            let mut event = Event::default();
            event.name = name.filter(|name| !matches!(*name, "" | "message")).map(str::to_owned);
            event.id = id.map(str::to_owned);
            event.retry = *retry;
            event.data = data.unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
            expected.push(event);
        }
    }
    assert_eq!(read(&mut Decoder::default(), [&*out]), (expected, None));
}

fn read<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, Option<DecodeError>) {
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(fault) => return (events, Some(fault)),
            }
        }
    }
    (events, None)
}
