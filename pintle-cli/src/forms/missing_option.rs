use pintle::{
    Error,
    types::{
        method,
        schema::{CallToolResult, ContentBlock, MissingCapabilityData},
    },
};

use crate::args::QuestionArgs;

/// Returns the options that let the command answer what a server asked for, as they are typed; empty if that is not why the call
/// failed.
pub(super) fn missing_options(error: &Error, options: &QuestionArgs) -> String {
    let data = match error {
        Error::Rpc(error) => error.data_as::<MissingCapabilityData>(),
        _ => None,
    };
    match data {
        Some(MissingCapabilityData { required_capabilities: required, .. }) => {
            typed(options, required.sampling.is_some(), required.roots.is_some())
        }
        None => of_text(&error.to_string(), options),
    }
}

/// Returns the options for a tool that failed because the client does not answer what it asks.
pub(super) fn missing_options_of(result: &CallToolResult, options: &QuestionArgs) -> String {
    let texts: Vec<_> = result.content.iter().filter_map(ContentBlock::as_text).collect();
    of_text(&texts.join(" "), options)
}

/// Reads the reason of a server. SDKs word it in their own ways: "Client does not support sampling", "Roots not supported".
///
/// Words are all that there is: revisions with sessions have no code for a capability that is missing, and of a tool that failed the
/// client knows the content only. A wrong guess adds advice to a message, and decides nothing.
fn of_text(text: &str, options: &QuestionArgs) -> String {
    let names = |method: &str| text.contains(method);
    let (sampling, roots) = (names(method::SAMPLING_CREATE_MESSAGE), names(method::ROOTS_LIST));
    let text = text.to_lowercase();
    if !sampling && !roots && !["support", "declare", "capabilit"].iter().any(|word| text.contains(word)) {
        return String::new();
    }
    let has = |word: &str| text.split(|letter: char| !letter.is_alphanumeric()).any(|other| other == word);
    typed(options, sampling || has("sampling"), roots || has("roots"))
}

fn typed(options: &QuestionArgs, sampling: bool, roots: bool) -> String {
    let sampling = (sampling && options.sample_with.is_none()).then_some("--sample-with COMMAND");
    let roots = (roots && options.roots.is_empty()).then_some("--root DIR");
    sampling.into_iter().chain(roots).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use pintle::types::{ErrorCode, RpcError};
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_of_servers_name_the_option() {
        let none = QuestionArgs::default();
        for (text, expected) in [
            // As the servers of this SDK, TypeScript, Python and rmcp word it.
            (
                "the client did not declare `{\"sampling\":{}}`, which the call needs: use a client that does",
                "--sample-with COMMAND",
            ),
            (
                "the question `x` requires the capability `sampling`, which the client did not declare",
                "--sample-with COMMAND",
            ),
            (
                "Client does not support sampling (required for sampling/createMessage)",
                "--sample-with COMMAND",
            ),
            ("Client does not support listing roots (required for roots/list)", "--root DIR"),
            ("Error executing tool t: List roots not supported", "--root DIR"),
            ("MCP error -32601: no such method: `sampling/createMessage`", "--sample-with COMMAND"),
            ("sampling and roots are not supported", "--sample-with COMMAND --root DIR"),
            ("the equation has no real roots", ""),
            ("this sampling rate is too high", ""),
            ("this format is not supported", ""),
        ] {
            assert_eq!(of_text(text, &none), expected, "{text}");
        }
    }

    #[test]
    fn an_option_that_was_given_is_not_missing() {
        let required = json!({"requiredCapabilities": {"sampling": {}, "roots": {}}});
        let error = RpcError::new(ErrorCode::MISSING_CLIENT_CAPABILITY, "no").with_data(&required);
        let error = Error::Rpc(error);
        let given = QuestionArgs { sample_with: Some("cat".to_owned()), ..QuestionArgs::default() };
        assert_eq!(missing_options(&error, &QuestionArgs::default()), "--sample-with COMMAND --root DIR");
        assert_eq!(missing_options(&error, &given), "--root DIR");
        let given = QuestionArgs { roots: vec![".".into()], ..given };
        assert_eq!(missing_options(&error, &given), "");
    }
}
