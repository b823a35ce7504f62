//! The command lines, and what they print.

use super::server::Server;
use crate::interop::rows::Peer;

/// A command line: a verb, the words after its target, and what comes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// More words if the target is not the first one after it.
    pub(super) verb: &'static str,
    pub(super) words: &'static [&'static str],
    pub(super) code: i32,
    /// A part of what is printed.
    pub(super) prints: &'static str,
}

/// An event for `watch`: the call that causes it, and the text that is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) words: &'static [&'static str],
    pub(super) call: &'static [&'static str],
    pub(super) prints: &'static str,
}

const fn line(verb: &'static str, words: &'static [&'static str], prints: &'static str) -> Line {
    Line { verb, words, code: 0, prints }
}

/// Lines for every server.
const EVERY: &[Line] = &[
    line("ping", &[], "answered in "),
    line("doctor", &[], "lists"),
    // Each has something without a description, or with a schema that some model API refuses.
    Line { code: 6, ..line("lint", &[], " tools, about ") },
    line("lock", &["--as", "it"], "mcp.lock: it: "),
    line("diff", &["--as", "it"], ""),
];

const DEMO: &[Line] = &[
    line("info", &[], "harbour 1.0.0"),
    line("ls", &["tools"], "tide(port: bergen|esbjerg|lerwick, hour: int)"),
    line("call", &["tide", "port=bergen", "hour=4"], "{\"metres\":0.6,\"rising\":true}"),
    line("call", &["berth", "--answer", "boat=Tern", "--answer", "nights=3"], " for the Tern, 3 nights."),
    line(
        "call",
        &["customs", "--decline", "--sample-with", "echo cod", "--root", "."],
        "Goods: cod Places: 1.",
    ),
    line("read", &["harbour://boats/auk"], "Auk"),
    line("read", &["harbour://tides/{port}/{hour}", "port=bergen", "hour=4"], "0.6"),
    line("prompt", &["passage", "to=bergen"], "bergen"),
    line("complete", &["passage", "to=b"], "bergen"),
    // The first page.
    line("raw", &["tools/list", "--pick", ".tools[].name"], "berth\n"),
    line("trace -- call", &["tide", "port=bergen", "hour=4"], " tools/call "),
    line("bench", &["tide", "port=bergen", "hour=4", "-c", "2", "-n", "10"], "10 calls"),
];

const FIXTURE: &[Line] = &[
    line("info", &[], "pintle-conformance "),
    line("ls", &["templates"], "test://template/{id}/data"),
    line("call", &["test_simple_text"], "This is a simple text response for testing."),
    line("call", &["test_image_content", "--save", "."], "image/png"),
    Line {
        code: 5,
        ..line("call", &["test_error_handling"], "This tool intentionally returns an error for testing")
    },
    line("call", &["test_tool_with_progress"], ""),
    line(
        "call",
        &["test_elicitation", "message=x", "--answer", "username=ada", "--answer", "email=a@b.example"],
        "ada",
    ),
    line("call", &["test_sampling", "prompt=x", "--sample-with", "echo pong"], "LLM response: pong"),
    line("read", &["test://static-text"], "This is the content of the static text resource."),
    line("read", &["test://template/{id}/data", "id=7"], "Data for ID: 7"),
    line("prompt", &["test_prompt_with_arguments", "arg1=a", "arg2=b"], "arg1='a', arg2='b'"),
    line("complete", &["test_prompt_with_arguments", "arg1=teste"], "tester"),
    line("raw", &["prompts/list", "--pick", ".prompts[].name"], "test_prompt_with_image\n"),
    line("trace -- ls", &["resources"], " resources/list "),
    line("bench", &["test_simple_text", "-c", "2", "-n", "10"], "10 calls"),
];

const INTEROP: &[Line] = &[
    line("info", &[], "-interop 1.0.0"),
    line("ls", &["tools"], "add(a: int, b: int)"),
    // The last of three pages.
    line("ls", &["resources"], "note://6"),
    line("call", &["add", "a=2", "b=3"], "5"),
    line("call", &["add", "--a", "2", "--b", "3", "--pick", ".structuredContent.sum"], "5\n"),
    line("call", &["steps", "n=2"], "done"),
    line("call", &["ask", "question=x", "--answer", "copies=2"], "accepted 2"),
    line("call", &["ask", "question=x", "--decline"], "declined"),
    line("call", &["sample", "topic=x", "--sample-with", "echo pong"], "model said pong"),
    line("read", &["note://1"], "This is note 1."),
    line("prompt", &["greet", "name=ada"], "Say hello to ada."),
    line("complete", &["greet", "name=al"], "alan\n"),
    line("raw", &["tools/list", "--pick", ".tools[].name"], "grow\n"),
    line("trace -- call", &["add", "a=2", "b=3"], " tools/call "),
    line("bench", &["add", "a=2", "b=3", "-c", "2", "-n", "10"], "10 calls"),
];

/// Lines that differ for one server, and why.
const EXCEPTIONS: &[(Server, Line)] = &[
    // Our own has no findings.
    (Server::Demo, line("lint", &[], " tools, about ")),
    // Its program lists the prompt and completes its argument, and has no `prompts/get`.
    (
        Server::Peer(Peer::Rmcp),
        Line { code: 2, ..line("prompt", &["greet", "name=ada"], "prompts/get (-32601)") },
    ),
];

/// Returns the lines for a server.
pub(super) fn lines(server: Server) -> impl Iterator<Item = Line> {
    let own = match server {
        Server::Demo => DEMO,
        Server::Fixture => FIXTURE,
        Server::Peer(_) => INTEROP,
    };
    own.iter().chain(EVERY).map(move |line| {
        let exception = EXCEPTIONS
            .iter()
            .find(|(whose, other)| *whose == server && (other.verb, other.words) == (line.verb, line.words));
        exception.map_or(*line, |(_, other)| *other)
    })
}

/// Returns what is watched at a server over HTTP.
pub(super) fn watched(server: Server) -> Watched {
    match server {
        Server::Demo => Watched {
            words: &["harbour://notice"],
            call: &["post", "text=fog"],
            prints: "updated harbour://notice",
        },
        Server::Fixture => {
            Watched { words: &[], call: &["test_trigger_tool_change"], prints: "tools changed" }
        }
        Server::Peer(_) => Watched { words: &["note://1"], call: &["touch"], prints: "updated note://1" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_of_a_client_is_typed_at_every_server() {
        for server in Server::all() {
            for verb in [
                "info", "ls", "call", "read", "prompt", "complete", "ping", "raw", "doctor", "lint", "lock",
                "diff", "trace", "bench",
            ] {
                let is_typed = lines(server).any(|line| line.verb.split(' ').next() == Some(verb));
                assert!(is_typed, "{verb} at {}", server.as_str());
            }
        }
    }

    #[test]
    fn every_exception_is_about_a_line() {
        for (server, exception) in EXCEPTIONS {
            assert!(lines(*server).any(|line| line.prints == exception.prints), "{exception:?}");
        }
    }
}
