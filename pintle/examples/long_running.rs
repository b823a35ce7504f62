//! A long-running tool that reports progress and stops when it is cancelled.
//!
//! Dropping a future cancels it. When a client cancels a call, disconnects or times out, the handler's future is dropped at
//! its current `.await`; there is no flag to check. Cleanup belongs into a `Drop` implementation.

#![allow(clippy::print_stderr, reason = "it is what the program is for")]

use std::sync::Arc;

use pintle::{
    Server, ToolTraits,
    server::{Cx, State, ToolError},
};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// The numbers that are checked between two reports, which takes a few milliseconds.
const STEP: u64 = 50_000;

/// Count the prime numbers below a limit.
#[pintle::tool(read_only, open_world = false)]
async fn count_primes(
    cx: Cx,
    State(one_at_a_time): State<Arc<Semaphore>>,
    /// The limit.
    #[arg(maximum = 1_000_000_000_000_u64)]
    below: u64,
) -> Result<String, ToolError> {
    // The permit is returned when the call ends, also when it is cancelled, because it is dropped with the future.
    let _permit = one_at_a_time.acquire_owned().await?;
    let mut counted = Counted { primes: 0, done: 0, below };
    while counted.done < below {
        let (from, to) = (counted.done, below.min(counted.done + STEP));
        // CPU-bound work runs in `spawn_blocking`, one step at a time. A thread cannot be cancelled, so a cancelled call
        // stops at the end of its step.
        counted.primes += spawn_blocking(move || (from..to).filter(|n| is_prime(*n)).count()).await?;
        counted.done = to;
        // Sent only if the client requested progress.
        let text = format!("{} primes so far", counted.primes);
        cx.progress_with(to as f64, below as f64, &text).await;
    }
    Ok(format!("{} primes below {below}", counted.primes))
}

/// The progress of a call, which is logged if the call is cancelled.
struct Counted {
    primes: usize,
    done: u64,
    below: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.done < self.below {
            // Logs go to standard error, because standard output is the wire.
            eprintln!("cancelled at {} of {}", self.done, self.below);
        }
    }
}

fn is_prime(n: u64) -> bool {
    n > 1 && (2..).take_while(|divisor| divisor * divisor <= n).all(|divisor| !n.is_multiple_of(divisor))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let tools = pintle::tools![count_primes];
    let tools = tools.into_iter().map(|tool| tool.traits(ToolTraits::new().long_running()));
    Server::new("primes", "1.0.0").with_state(Arc::new(Semaphore::new(1))).tools(tools).serve_stdio().await
}
