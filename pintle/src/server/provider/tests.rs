//! Providers that wrap another one.

/// Returns the names of the functions that stand one level deep in a part of a file.
fn functions(part: &str) -> Vec<&str> {
    let lines = part.lines().take_while(|line| *line != "}");
    lines
        .filter_map(|line| line.strip_prefix("    fn ").or_else(|| line.strip_prefix("    async fn ")))
        .filter_map(|line| line.split(['(', '<']).next())
        .collect()
}

#[test]
fn a_wrapper_passes_every_method_on() {
    let after = |text: &'static str, start: &str| text.split_once(start).map_or("", |(_, rest)| rest);
    let own = include_str!("mod.rs");
    let all = functions(after(own, "pub trait Provider"));
    assert!(all.len() > 15 && all.contains(&"has_unlisted"), "{all:?}");
    for (name, text) in [
        ("Arc<P>", own),
        ("Mount<P>", include_str!("mount.rs")),
        ("Transform<P>", include_str!("transform/mod.rs")),
        ("ToolSearch<P>", include_str!("search.rs")),
    ] {
        let passed_on = functions(after(text, &format!("Provider for {name} {{\n")));
        // What a wrapper offers has other names, or is not all: it is not the whole server.
        let is_passed_on = |method: &str| passed_on.contains(&method) || method == "is_whole_server";
        let forgotten: Vec<_> = all.iter().filter(|method| !is_passed_on(method)).collect();
        assert!(forgotten.is_empty(), "`{name}` has the default of {forgotten:?}");
    }
    let any = functions(after(include_str!("any.rs"), "impl<P: Provider> AnyProvider for P {\n"));
    // Only wrappers ask for these, of the provider that they wrap.
    let of_wrapped = ["has_unlisted", "finds_by_target"];
    let forgotten: Vec<_> =
        all.iter().filter(|method| !any.contains(method) && !of_wrapped.contains(method)).collect();
    assert!(forgotten.is_empty(), "`AnyProvider` lacks {forgotten:?}");
}
