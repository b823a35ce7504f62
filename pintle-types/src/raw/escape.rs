/// Appends `text` as it is printed between the quotes of a JSON string, byte for byte as serde_json prints it.
pub(super) fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest.as_bytes()));
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

/// Returns the number of bytes at the beginning that a JSON string may have as they are. It ends before a control
/// character, a quote or a backslash.
///
/// Eight bytes are looked at together (see `bench/LEDGER.md`).
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Sets the highest bit of each byte that is a control character, a quote or a backslash.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    // Sets the highest bit of each byte whose other bits, after the flip, are at least the bound. No byte has a carry.
    let reaches = |flip: u8, bound: u8| {
        ((word ^ (ONES * u64::from(flip))) & (ONES * 0x7f)) + ONES * (0x80 - u64::from(bound))
    };
    // With this bit flipped, the quote comes right behind the control characters.
    let plain = reaches(b'"' ^ b' ', b' ' + 1) & reaches(b'\\', 1);
    !(plain | word) & (ONES << 7)
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
    fn every_byte_is_plain_or_not_wherever_it_stands() {
        for byte in 0..=255 {
            let is_plain = byte >= b' ' && byte != b'"' && byte != b'\\';
            for before in 0..35 {
                let mut bytes = [b'x'; 40];
                bytes[before] = byte;
                let expected = if is_plain { bytes.len() } else { before };
                assert_eq!(plain_length(&bytes), expected, "{byte} behind {before}");
                bytes[before + 1] = b'"';
                assert_eq!(plain_length(&bytes), before + usize::from(is_plain), "{byte} behind {before}");
            }
        }
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
