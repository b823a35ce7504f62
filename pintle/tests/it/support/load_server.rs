//! A server whose calls wait, panic or answer, by their number.

use pintle::{
    Server,
    proto::Limits,
    server::{Arguments, tool},
};

/// Returns the server that [`child_servers`](super::child_servers) runs for load tests.
pub(crate) fn server() -> Server {
    let work = |Arguments(arguments): Arguments| async move {
        let n: u64 = arguments.decode_member("n").unwrap().unwrap();
        println!("stray {n}");
        for _ in 0..n % 7 {
            tokio::task::yield_now().await;
        }
        if n.is_multiple_of(5) {
            std::future::pending::<()>().await;
        }
        assert!(!n.is_multiple_of(13), "thirteen");
        n.to_string()
    };
    let state = || async {
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0_u64);
        format!("{tasks} {pages}")
    };
    let mut limits = Limits::default();
    limits.in_flight = 1000;
    Server::new("load", "0").limits(limits).tool(tool("work", work)).tool(tool("state", state))
}
