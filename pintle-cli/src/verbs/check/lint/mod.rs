//! Checks of what a server offers.

mod finding;
mod rules;

use clap::Args;
use pintle::{Connection, schema::Schema, types::schema::Tool};
use serde_json::{Value, json};

use super::catalogue::ServerCatalogue;
use crate::{
    args::{HELP, TargetArgs, examples},
    failure::{Exit, Failure},
    output::{Output, Text, Tone, counted},
    targets::Endpoint,
};
use finding::{Finding, Level};

/// Check names, descriptions, schemas and hints of what a server offers
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle lint demo", ""),
        ("pintle lint https://example.com/mcp --call", "call read-only tools without arguments, and check their results"),
        ("pintle lint --sarif -- ./server > lint.sarif", "for code scanning"),
    ]),
    help_template = HELP,
    override_usage = "pintle lint TARGET",
)]
pub(crate) struct LintArgs {
    /// Call the tools that are declared read-only and take no arguments, and check their results
    #[arg(long)]
    call: bool,
    /// Print SARIF 2.1.0
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    /// Print notes too, and count them as findings
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    pub(in crate::verbs) target: TargetArgs,
}

pub(crate) async fn run(args: LintArgs, output: &Output) -> Result<(), Failure> {
    let LintArgs { call, sarif, strict, target } = args;
    let (endpoint, words) = Endpoint::take("lint", target)?;
    endpoint.no_more(&words, "lint")?;
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    let catalogue = ServerCatalogue::fetch(&connection).await.map_err(|error| endpoint.explain(&error))?;
    let mut findings = rules::apply(&catalogue);
    if call {
        for tool in catalogue.tools.iter().filter(|tool| is_harmless(tool)) {
            findings.extend(check_result(&connection, tool).await);
        }
    }
    connection.close().await;
    let notes = findings.iter().filter(|finding| finding.level == Level::Note).count();
    if !strict {
        findings.retain(|finding| finding.level > Level::Note);
    }
    let bytes: usize = catalogue.tools.iter().map(rules::size).sum();
    if sarif {
        output.document(&finding::sarif(&findings))?;
    } else {
        output.result(&to_json(&findings, bytes), |text| {
            to_text(&findings, catalogue.tools.len(), bytes, text)
        })?;
        if !strict && notes > 0 {
            output.note(format!("{}: `--strict` prints them", counted(notes, "note", "notes")));
        }
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Findings, "1 finding", endpoint.line_with("ls", "--schema"))),
        count => Err(Failure::new(
            Exit::Findings,
            format!("{count} findings"),
            endpoint.line_with("ls", "--schema"),
        )),
    }
}

/// Returns whether a tool declares that calling it without arguments has no effects.
fn is_harmless(tool: &Tool) -> bool {
    let hints = tool.annotations.as_ref();
    let is_read_only =
        hints.is_some_and(|hints| hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true));
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    is_read_only && required.is_none_or(Vec::is_empty)
}

/// Calls a tool and compares its result with its schema.
async fn check_result(connection: &Connection, tool: &Tool) -> Option<Finding> {
    let finding = |level, message: String| {
        Some(Finding { rule: "output", level, subject: format!("tool {}", tool.name), message })
    };
    let result = match connection.call_tool(&*tool.name, serde_json::Map::new()).await {
        Ok(result) => result,
        Err(error) => return finding(Level::Warning, format!("a call without arguments failed: {error}")),
    };
    let schema = tool.output_schema.as_ref()?;
    let schema = Schema::compile(&Value::Object((**schema).clone())).ok()?;
    match &result.structured_content {
        _ if result.is_error == Some(true) => None,
        None => finding(
            Level::Error,
            "there is an `outputSchema`, and the result has no `structuredContent`".to_owned(),
        ),
        Some(found) => match schema.check(&json!(found)) {
            Ok(()) => None,
            Err(faults) => {
                let faults: Vec<_> = faults.iter().take(5).map(ToString::to_string).collect();
                finding(
                    Level::Error,
                    format!("the result does not match `outputSchema`: {}", faults.join("; ")),
                )
            }
        },
    }
}

fn to_json(findings: &[Finding], bytes: usize) -> Value {
    let rows = findings.iter().map(|Finding { rule, level, subject, message }| {
        json!({ "rule": rule, "level": level.name(), "subject": subject, "message": message })
    });
    json!({
        "findings": rows.collect::<Vec<_>>(),
        "tools": { "bytes": bytes, "estimatedTokens": rules::tokens(bytes) },
    })
}

fn to_text(findings: &[Finding], tools: usize, bytes: usize, text: &mut Text) {
    for Finding { rule, level, subject, message } in findings {
        let tone = match level {
            Level::Error => Tone::Error,
            Level::Warning => Tone::Code,
            Level::Note => Tone::Faint,
        };
        text.tone(tone, level.name()).add("  ").tone(Tone::Method, subject).add(": ").add(message);
        text.tone(Tone::Faint, format_args!("  [{rule}]")).end();
    }
    let tokens = rules::tokens(bytes);
    text.line(format_args!(
        "{tools} tools, about {tokens} tokens in a conversation (an estimate: bytes / 4)"
    ));
}
