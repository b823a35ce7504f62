//! A link to a file of ours, or to a heading in one, that is not there.

use super::Fault;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts.iter().filter(|(path, _)| path.ends_with(".md")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            for target in targets(line) {
                let (file, part) = target.split_once('#').unwrap_or((target, ""));
                if file.contains("://") || file.starts_with("mailto:") {
                    continue;
                }
                let file = if file.is_empty() { Some(path.clone()) } else { resolve(folder, file) };
                if !file.is_some_and(|file| is_there(tree, &file) && has_part(tree, &file, part)) {
                    let what = format!("the link to `{target}` leads nowhere; mend or remove it");
                    faults.push(Fault::new(path, number + 1, what));
                }
            }
        }
    }
    faults
}

/// The targets of `[text](target)` and `[label]: target` in one line.
fn targets(line: &str) -> Vec<&str> {
    // Every second piece is inside backticks.
    let pieces = line.split('`').step_by(2);
    let mut found: Vec<&str> = pieces
        .flat_map(|piece| piece.split("](").skip(1))
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect();
    if let Some((label, target)) = line.split_once("]: ")
        && label.starts_with('[')
        && !label.starts_with("[^")
    {
        found.extend(target.split_whitespace().next());
    }
    found
}

/// A path from the root; nothing when it leaves the workspace.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_there(tree: &Tree, path: &str) -> bool {
    path.is_empty() || tree.paths.contains(path)
}

/// Whether a page has a heading that is linked to like this. Of other files nothing is known.
fn has_part(tree: &Tree, path: &str, part: &str) -> bool {
    let text = tree.texts.iter().find(|(known, _)| known == path && path.ends_with(".md"));
    part.is_empty() || text.is_none_or(|(_, text)| headings(text).any(|heading| slug(heading) == part))
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim())
}

/// A heading as the end of a link: lower case, without punctuation, dashes for spaces.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn a_link_to_no_heading_is_found() {
        let page = "# Ask `first`, act after\n[a](#ask-first-act-after)\n[b](#act)\n[c](a.md#part)\n";
        let found = places(check, &[("docs/a.md", page), ("docs/b.md", "[d](a.md#ask-first-act-after)")]);
        assert_eq!(found, ["docs/a.md:3", "docs/a.md:4"]);
    }

    #[test]
    fn a_dead_link_is_found() {
        let guide = "## Here\n[a](../README.md) [b](#here) [c](https://a.example/x)\n[d](gone.md#part) and [e](../../out.md)\n\
                     `[f](gone.md)`\n```\n[g](gone.md)\n```\n[h]: ./lost.md\n[i`j`](gone.md)\n";
        let found = places(check, &[("README.md", "[docs](docs/guide.md)"), ("docs/guide.md", guide)]);
        assert_eq!(found, ["docs/guide.md:3", "docs/guide.md:3", "docs/guide.md:8", "docs/guide.md:9"]);
    }
}
