//! The `a::b::c` paths of a Rust text, with `a::{b, c::d}` written out.

use super::source::is_name;

/// Every path with the offset of its last part. A lone name is a path too.
pub(super) fn paths(bare: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bare.len() {
        let byte = bare.as_bytes()[at];
        if is_name(byte) && !byte.is_ascii_digit() {
            at = one(bare, at, &[], &mut found);
        } else if byte.is_ascii_digit() {
            at = name_end(bare, at);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads the path at `at`, which follows `before`; returns where reading goes on.
fn one<'a>(bare: &'a str, at: usize, before: &[&'a str], found: &mut Vec<(usize, Vec<&'a str>)>) -> usize {
    let mut path = before.to_vec();
    let mut last = at;
    let mut at = at;
    loop {
        last = if path.len() > before.len() { at } else { last };
        let end = name_end(bare, at);
        path.push(&bare[at..end]);
        let next = skip_space(bare, end);
        if !bare[next..].starts_with("::") {
            found.push((last, path));
            return end;
        }
        at = skip_space(bare, next + 2);
        match bare.as_bytes().get(at) {
            Some(b'{') => return group(bare, at, &path, found),
            Some(b'*') => {
                path.push("*");
                found.push((at, path));
                return at + 1;
            }
            Some(byte) if is_name(*byte) => {}
            _ => {
                found.push((last, path));
                return at;
            }
        }
    }
}

fn group<'a>(
    bare: &'a str,
    open: usize,
    before: &[&'a str],
    found: &mut Vec<(usize, Vec<&'a str>)>,
) -> usize {
    let mut at = open + 1;
    while let Some(byte) = bare.as_bytes().get(at) {
        at = match byte {
            b'}' => return at + 1,
            b'*' => {
                found.push((at, [before, &["*"]].concat()));
                at + 1
            }
            byte if is_name(*byte) => {
                let end = one(bare, at, before, found);
                // Past `as other`, if it is there.
                bare[end..].find([',', '}']).map_or(bare.len(), |next| end + next)
            }
            _ => at + 1,
        };
    }
    at
}

fn name_end(bare: &str, at: usize) -> usize {
    at + bare.as_bytes()[at..].iter().take_while(|byte| is_name(**byte)).count()
}

fn skip_space(bare: &str, at: usize) -> usize {
    at + bare.as_bytes()[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        paths(text).into_iter().map(|(_, path)| path.join("::")).collect()
    }

    #[test]
    fn groups_are_written_out() {
        let found = all("use std::{\n fmt::{self, Debug as D},\n time, io::*,\n};");
        assert_eq!(found, ["use", "std::fmt::self", "std::fmt::Debug", "std::time", "std::io::*"]);
    }

    #[test]
    fn paths_in_the_middle_of_code_count_too() {
        assert_eq!(
            all("let x: super::a::B<u8> = Vec::<u8>::new(1u8);"),
            ["let", "x", "super::a::B", "u8", "Vec", "u8", "new"]
        );
    }

    #[test]
    fn a_path_is_placed_at_its_last_part() {
        let text = "use a::{b,\n c};";
        assert_eq!(paths(text)[2].0, text.find('c').unwrap());
    }
}
