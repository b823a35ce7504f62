//! Twins that never import each other: the two eras in `pintle-proto`, the two roles in `pintle`. Above the engine there are no eras.

use super::Fault;
use super::paths::paths;
use super::tree::Tree;

struct Twins {
    krate: &'static str,
    names: [&'static str; 2],
    advice: &'static str,
}

const TWINS: &[Twins] = &[
    Twins {
        krate: "pintle-proto",
        names: ["session", "stateless"],
        advice: "what both eras need belongs in the module above them",
    },
    Twins {
        krate: "pintle",
        names: ["server", "client"],
        advice: "what both roles need belongs beside them, in a module of its own",
    },
];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for twins in TWINS {
        let [one, other] = twins.names;
        for (own, foreign) in [(one, other), (other, one)] {
            for source in tree.sources.iter().filter(|source| source.krate == twins.krate && source.in_src())
            {
                if !belongs(&source.inside, own) {
                    continue;
                }
                for (at, path) in paths(&source.bare) {
                    if names_module(&path, foreign) && !source.is_test(at) {
                        let what = format!("`{own}` imports `{}`; {}", path.join("::"), twins.advice);
                        faults.push(Fault::new(&source.path, source.line(at), what));
                    }
                }
            }
        }
    }
    faults
}

/// Whether a file is the module `name` (`session.rs`, or `session_…` and its like) or lies in it.
fn belongs(inside: &str, name: &str) -> bool {
    inside.split('/').any(|part| {
        part.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('_'))
    })
}

fn names_module(path: &[&str], module: &str) -> bool {
    match path {
        ["crate" | "super" | "self", rest @ ..] => {
            // After a type's name come its own items.
            let mut modules = rest.iter().take_while(|part| !part.starts_with(char::is_uppercase));
            modules.any(|part| *part == module)
        }
        [first, _, ..] => *first == module,
        _ => false,
    }
}

/// Names that ask for an era. They are refused above the engine, also for functions and fields of other types.
const ASKING: &[&str] = &["is_stateless", "is_in_session"];

/// The only crate that knows eras.
const ENGINE: &str = "pintle-proto";

pub(super) fn check_asked(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in tree.published().filter(|source| source.krate != ENGINE) {
        for word in ASKING {
            for at in source.words(word).filter(|at| !source.is_test(*at)) {
                let what = format!(
                    "`{word}` outside `{ENGINE}`; ask for one of `pintle_proto::Facts`, or add what is asked there"
                );
                faults.push(Fault::new(&source.path, source.line(at), what));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn an_era_is_asked_for_in_the_engine_only() {
        let file = "// is_stateless\nfn f(cx: &Cx) -> bool { cx.peer().revision.is_stateless() }\nstruct A { is_in_session: bool }\n\
                    fn is_stateless_for() {}\n#[cfg(test)]\nmod tests { fn f() { is_stateless() } }\n";
        let files = ["pintle/src/lib.rs", "pintle/tests/it/main.rs", "pintle-proto/src/lib.rs"];
        let found = places(check_asked, &files.map(|path| (path, file)));
        assert_eq!(found, ["pintle/src/lib.rs:2", "pintle/src/lib.rs:3"]);
    }

    #[test]
    fn eras_do_not_see_each_other() {
        let found = places(
            check,
            &[
                ("pintle-proto/src/server/mod.rs", "use self::{session, stateless};"),
                (
                    "pintle-proto/src/server/session.rs",
                    "// super::stateless\nuse super::{Call, stateless::admit};",
                ),
                ("pintle-proto/src/http/session/get.rs", "fn f() { crate::http::stateless::admit() }"),
                ("pintle-proto/src/client/stateless.rs", "let session = 1;\nsession::open();"),
                (
                    "pintle-proto/src/http/stateless.rs",
                    "use crate::revision::Era; Era::stateless(); \"super::session\";",
                ),
            ],
        );
        assert_eq!(
            found,
            [
                "pintle-proto/src/http/session/get.rs:1",
                "pintle-proto/src/server/session.rs:2",
                "pintle-proto/src/client/stateless.rs:2",
            ]
        );
    }

    #[test]
    fn roles_do_not_see_each_other() {
        let found = places(
            check,
            &[
                ("pintle/src/server/serve.rs", "use crate::{client::Connection, limits::Limits};"),
                (
                    "pintle/src/client/mod.rs",
                    "use pintle_proto::client::Opening; use hyper_util::server::conn;",
                ),
            ],
        );
        assert_eq!(found, ["pintle/src/server/serve.rs:1"]);
    }
}
