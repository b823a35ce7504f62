/// Appends `text` as it is printed between the quotes of a JSON string, byte for byte as serde_json prints it.
///
/// It looks at eight bytes at a time, where serde_json looks at each.
pub(super) fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain(rest.as_bytes()));
        out.push_str(plain);
        let Some(byte) = special.bytes().next() else { return };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            control => {
                out.push_str("\\u00");
                let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
                out.extend([digit(control >> 4), digit(control & 0xf)]);
            }
        }
        // What is escaped is one byte long.
        rest = special.get(1..).unwrap_or_default();
    }
}

/// Returns the number of bytes at the beginning that need no escape.
fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    words.len() * 8 + rest.iter().position(special).unwrap_or(rest.len())
}

/// The highest bit of each byte that is a control character, a quote or a backslash. Behind the first one others may be
/// set too: a borrow goes on to the next byte.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(text: &str) -> String {
        let mut out = "\"".to_owned();
        escape(&mut out, text);
        out + "\""
    }

    #[test]
    fn every_byte_of_ascii_is_printed_as_serde_json_does_wherever_it_stands() {
        for byte in 0..128_u8 {
            for before in 0..17 {
                let text = format!("{}{}ü{}", "x".repeat(before), byte as char, byte as char);
                assert_eq!(printed(&text), serde_json::to_string(&text).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_printed_as_serde_json_does(text in "\\PC*|[\"\\\\\\x00-\\x1f a-zé—\u{10ffff}]*") {
            prop_assert_eq!(printed(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
