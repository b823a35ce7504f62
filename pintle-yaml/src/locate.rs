//! The place of a part of a text.

use saphyr_parser::{Event, Parser, StrInput};

use crate::error::Position;

/// Returns where the key or the item is that a JSON pointer names. Parts behind an alias have no place of their own.
///
/// The text is read again up to there: keep no positions for the message that may be needed.
pub fn locate(text: &str, pointer: &str) -> Option<Position> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut walk = Walk { events: Parser::new_from_str(text), at: Position { line: 1, column: 1 } };
    let mut event = loop {
        match walk.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            event => break event,
        }
    };
    let mut found = walk.at;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        (found, event) = walk.enter(&event, &part)?;
    }
    Some(found)
}

struct Walk<'a> {
    events: Parser<'a, StrInput<'a>>,
    at: Position,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<Event<'a>> {
        let (event, span) = self.events.next_event()?.ok()?;
        self.at = Position::of(&span.start);
        Some(event)
    }

    /// Goes to a part of the value that began with an event. Returns where it is, and the event that it begins with.
    fn enter(&mut self, event: &Event<'a>, part: &str) -> Option<(Position, Event<'a>)> {
        match event {
            Event::MappingStart(..) => loop {
                let key = self.next()?;
                let at = self.at;
                let is_it = match &key {
                    Event::Scalar(key, ..) => key == part,
                    _ => return None,
                };
                let value = self.next()?;
                if is_it {
                    return Some((at, value));
                }
                self.skip(&value)?;
            },
            Event::SequenceStart(..) => {
                let mut number: usize = part.parse().ok()?;
                loop {
                    let item = self.next()?;
                    match (&item, number) {
                        (Event::SequenceEnd, _) => return None,
                        (_, 0) => return Some((self.at, item)),
                        _ => number -= 1,
                    }
                    self.skip(&item)?;
                }
            }
            _ => None,
        }
    }

    /// Reads to the end of the value that began with an event.
    fn skip(&mut self, event: &Event<'a>) -> Option<()> {
        let opens = |event: &Event<'_>| matches!(event, Event::MappingStart(..) | Event::SequenceStart(..));
        let mut open = usize::from(opens(event));
        while open > 0 {
            let event = self.next()?;
            open += usize::from(opens(&event));
            open -= usize::from(matches!(event, Event::MappingEnd | Event::SequenceEnd));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_place_of_its_key() {
        let text = "a:\n  - x: 1\n    y/z: {w: 2}\n  - [1, 2]\nb: 3\n";
        for (pointer, place) in [
            ("", Some("line 1, column 1")),
            ("/b", Some("line 5, column 1")),
            ("/a/0/y~1z/w", Some("line 3, column 11")),
            ("/a/1/1", Some("line 4, column 9")),
            ("/a/2", None),
            ("/b/c", None),
            ("/c", None),
        ] {
            let found = locate(text, pointer).map(|place| place.to_string());
            assert_eq!(found.as_deref(), place, "{pointer}");
        }
    }
}
