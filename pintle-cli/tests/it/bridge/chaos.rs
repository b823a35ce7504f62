//! A server behind a bridge that is killed again and again: every call is answered, and nothing is left.
//!
//! `cargo xtask chaos` runs more rounds, and repeats those of a seed.

use std::{fs, time::Duration};

use pintle::{
    Client, Connection,
    client::{Answer, Mode, http::Http},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

use super::{matrix_server, programs::marked};
use crate::support::{HttpServing, pintle};

/// Rounds of the test, if no variable says otherwise.
const ROUNDS: usize = 12;
/// Only a call that is never answered takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// Random numbers that a seed repeats (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|value| value.parse().ok().unwrap_or_else(|| panic!("{name}: {value}")))
}

fn kill_all(mark: &str) {
    for id in marked(mark) {
        // It may have ended.
        let _ = kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::KILL);
    }
}

/// A bridge in front of a program, with a mark in the environment of the program.
struct Victim {
    bridge: HttpServing,
    mark: String,
}

impl Victim {
    fn start(era: &str) -> Self {
        let mark = format!("PINTLE_TEST_MARK=chaos-{era}-{}", std::process::id());
        let (variable, program) = matrix_server::program();
        let mut command = pintle();
        command.args([
            "bridge",
            "--http",
            "127.0.0.1:0",
            "--era",
            era,
            "--env",
            &variable,
            "--env",
            &mark,
            "--",
        ]);
        command.args(program);
        Self { bridge: HttpServing::of(command), mark }
    }

    /// Connects a client whose user has the server killed when it is asked.
    async fn connect(&self, mode: Mode) -> Connection {
        let mark = self.mark.clone();
        let client = Client::new("chaos", "1.0.0").mode(mode).on_elicit(move |_| {
            kill_all(&mark);
            async { Answer::accept(json!({"count": 3})) }
        });
        client.connect(Http::new(&self.bridge.url).unwrap()).await.unwrap()
    }

    /// The number of open descriptors of the bridge, and its memory in kB.
    fn usage(&self) -> (usize, u64) {
        let process = format!("/proc/{}", self.bridge.id());
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident = resident.trim().trim_end_matches(" kB").parse().unwrap();
        (fs::read_dir(format!("{process}/fd")).unwrap().count(), resident)
    }

    /// Waits until no more programs run than the one for changes and the one of clients without a session, and no more descriptors are
    /// open than before.
    async fn settles(&self, descriptors: usize) {
        for _ in 0..5_000 {
            if marked(&self.mark).len() <= 2 && self.usage().0 <= descriptors {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} programs, {:?}, {descriptors} descriptors before", marked(&self.mark).len(), self.usage());
    }
}

/// Where the server is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Somewhere between the request and the response.
    Call,
    /// Before the answer to its question arrives.
    Question,
    /// After the first event of a stream.
    Stream,
}

/// Makes a call during which the server is killed, and returns what the client got.
async fn strike(victim: &Victim, client: &Connection, moment: Moment) -> pintle::Result<String> {
    let wait = |sender: mpsc::Sender<()>| {
        let call = client.call("wait").on_progress(move |_| {
            // The first one counts.
            let _ = sender.try_send(());
        });
        call.send()
    };
    match moment {
        Moment::Question => Ok(client.call_tool("book", ()).await?.text()),
        Moment::Stream => {
            let (sender, mut begun) = mpsc::channel(1);
            let mut call = std::pin::pin!(wait(sender));
            tokio::select! {
                done = &mut call => return Ok(done?.text()),
                _ = begun.recv() => kill_all(&victim.mark),
            }
            Ok(call.await?.text())
        }
        Moment::Call => {
            let killed = tokio::task::spawn_blocking({
                let mark = victim.mark.clone();
                move || kill_all(&mark)
            });
            let called = client.call_tool("add", json!({"a": 1, "b": 2})).await;
            killed.await.unwrap();
            Ok(called?.text())
        }
    }
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_no_call_without_an_answer() {
    let seed: u64 = variable("PINTLE_CHAOS_SEED").unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
    });
    let rounds: usize = variable("PINTLE_CHAOS_ROUNDS").unwrap_or(ROUNDS);
    println!(
        "chaos: {rounds} rounds, seed {seed} (repeat it with `cargo xtask chaos --seed {seed} --rounds {rounds}`)"
    );
    let mut random = Random(seed);
    for era in ["session", "stateless"] {
        let victim = Victim::start(era);
        let mut before = None;
        let mut errors = 0;
        for round in 0..rounds.div_ceil(2) {
            let mode = if random.below(2) == 0 { Mode::Legacy } else { Mode::Modern };
            let moment = match random.below(3) {
                0 => Moment::Call,
                1 => Moment::Question,
                _ => Moment::Stream,
            };
            let what = format!("seed {seed}, {era}, round {round}: {mode:?}, {moment:?}");
            let client = victim.connect(mode).await;
            for _ in 0..=random.below(2) {
                match timeout(LIMIT, strike(&victim, &client, moment)).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => {
                        errors += 1;
                        assert!(error.to_string().contains("`matrix`"), "{what}: {error}");
                    }
                    Err(_) => panic!("{what}: no answer"),
                }
            }
            // Whatever happened, the next one works.
            let mut next =
                timeout(LIMIT, client.call_tool("add", json!({"a": 1, "b": 2}))).await.expect(&what);
            if next.is_err() {
                next = timeout(LIMIT, client.call_tool("add", json!({"a": 1, "b": 2}))).await.expect(&what);
            }
            assert_eq!(next.unwrap_or_else(|error| panic!("{what}: {error}")).text(), "3", "{what}");
            client.close().await;
            if round == 2 {
                victim.settles(usize::MAX).await;
                before = Some(victim.usage());
            }
        }
        assert!(errors > 0, "seed {seed}: the server was never hit");
        let (descriptors, memory) = before.unwrap();
        victim.settles(descriptors + 4).await;
        let after = victim.usage();
        println!(
            "chaos: {era}: {errors} calls failed; descriptors and kB {descriptors} {memory}, after {after:?}"
        );
        assert!(after.1 < memory + 20_000, "seed {seed}: {memory} kB before, {} kB after", after.1);
    }
}
