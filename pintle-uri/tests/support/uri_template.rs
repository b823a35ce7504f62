//! A URI template and a URI, separated by a line break.

use pintle_uri::{Template, Values, expand, path_from_uri};

/// Matches the one against the other.
pub(crate) fn play(input: &str) {
    let (template, uri) = input.split_once('\n').unwrap_or((input, input));
    // Any text is a path or an error.
    let _ = path_from_uri(uri);
    let Ok(parsed) = Template::parse(template) else { return };
    assert_eq!(parsed.as_str(), template);
    let unconfined = parsed.clone().dangerously_allow_path_traversal().matches(uri);
    if let Some(found) = parsed.matches(uri) {
        assert_eq!(Some(&found), unconfined.as_ref(), "a template that refuses less finds the same");
        for (name, value) in found.iter() {
            assert!(parsed.names().any(|known| known == name), "`{name}` is no variable of `{template}`");
            assert!(!value.contains('\0'), "a NUL byte in `{name}`");
            let leads_up = value.split(['/', '\\']).any(|segment| segment == "..");
            // A dot in a query is part of a text, not of a path.
            assert!(!leads_up || !value.contains(['/', '\\']), "`{name}` leads out: {value}");
        }
    }
    if let Some(found) = unconfined {
        let values = found.iter().fold(Values::new(), |values, (name, value)| values.set(name, value));
        let expanded = parsed.expand(&values);
        assert_eq!(Ok(expanded), expand(template, &values), "both ways to expand agree");
    }
}
