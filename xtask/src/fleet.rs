//! Several processes of one server that share a Redis, behind a balancer that sends each request to the next one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::Process;

/// The number of processes that serve.
const NODES: usize = 3;
const START: Duration = Duration::from_secs(10);
/// How often a program is started that finds its port taken.
const ATTEMPTS: usize = 5;

/// The processes of a fleet. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Fleet {
    url: String,
    processes: Vec<Process>,
}

impl Fleet {
    /// Starts a Redis, processes of the program that serve at a port of their own, and haproxy in front of them. The program finds
    /// the address of the Redis in `PINTLE_REDIS`, and prints its URL.
    pub(crate) fn start(program: &Path, folder: &Path) -> io::Result<Self> {
        let redis = RedisProcess::start(folder)?;
        let (mut addresses, mut processes) = (Vec::new(), Vec::new());
        let mut path = String::new();
        for node in 1..=NODES {
            let mut command = Command::new(program);
            command.env("PORT", "0").env("PINTLE_REDIS", redis.url());
            let log = folder.join(format!("server-{node}.log"));
            let (process, url) = Process::serve(command.current_dir(folder), &log, START)?;
            let (address, rest) =
                split(&url).ok_or_else(|| io::Error::other(format!("`{url}` is no URL")))?;
            addresses.push(address.to_owned());
            rest.clone_into(&mut path);
            processes.push(process);
        }
        processes.push(redis.process);
        let (port, balancer) = on_free_port("haproxy", |port| start_balancer(port, &addresses, folder))?;
        processes.push(balancer);
        Ok(Self { url: format!("http://127.0.0.1:{port}{path}"), processes })
    }

    /// The URL of the balancer.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn into_processes(self) -> Vec<Process> {
        self.processes
    }
}

fn start_redis(port: u16, folder: &Path) -> io::Result<Process> {
    let mut redis = Command::new("redis-server");
    redis.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
    Process::start(redis.current_dir(folder), &folder.join("redis.log"))
}

/// A Redis without files. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct RedisProcess {
    process: Process,
    url: String,
}

impl RedisProcess {
    /// Starts it at a port of its own. Its log goes to the folder.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        let (port, process) = on_free_port("redis-server", |port| start_redis(port, folder))?;
        Ok(Self { process, url: format!("redis://127.0.0.1:{port}/") })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

fn start_balancer(port: u16, addresses: &[String], folder: &Path) -> io::Result<Process> {
    let file = folder.join("haproxy.cfg");
    fs::write(&file, configuration(port, addresses))?;
    let mut balancer = Command::new("haproxy");
    balancer.arg("-db").arg("-f").arg(&file).current_dir(folder);
    Process::start(&mut balancer, &folder.join("haproxy.log"))
}

/// Starts a program that cannot choose a port itself. Another program may take the port first, so the program is started again with
/// another one if it ends.
fn on_free_port(name: &str, start: impl Fn(u16) -> io::Result<Process>) -> io::Result<(u16, Process)> {
    for _ in 0..ATTEMPTS {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut process = start(port)?;
        if listens(&mut process, port) {
            return Ok((port, process));
        }
    }
    Err(io::Error::other(format!("`{name}` does not listen, on any of {ATTEMPTS} ports")))
}

/// Waits until a process listens on a port. Returns `false` if it ends, or does not listen in time.
fn listens(process: &mut Process, port: u16) -> bool {
    let start = Instant::now();
    while start.elapsed() < START && process.runs() {
        // Whoever listens may be another program: the process then ends, a moment later.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            thread::sleep(Duration::from_millis(100));
            return process.runs();
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Splits a URL into its address and its path.
fn split(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    Some(rest.split_at(rest.find('/').unwrap_or(rest.len())))
}

/// The configuration of haproxy: each request goes to the next process, and streams may be silent.
fn configuration(port: u16, addresses: &[String]) -> String {
    let mut text = format!(
        "global\n    maxconn 4096\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 1h\n    timeout server 1h\n\
         frontend entry\n    bind 127.0.0.1:{port}\n    default_backend nodes\n\
         backend nodes\n    balance roundrobin\n"
    );
    for (number, address) in addresses.iter().enumerate() {
        text.push_str(&format!("    server node{} {address}\n", number + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_an_address_and_a_path() {
        assert_eq!(split("http://127.0.0.1:80/mcp"), Some(("127.0.0.1:80", "/mcp")));
        assert_eq!(split("http://127.0.0.1:80"), Some(("127.0.0.1:80", "")));
        assert_eq!(split("redis://127.0.0.1:80"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_finds_its_port_taken_gets_another_one() {
        let taken = std::cell::RefCell::new(Vec::new());
        let started = on_free_port("sleep", |port| {
            // Somebody else is faster, twice: the program ends at once.
            let is_taken = taken.borrow().len() < 2;
            taken.borrow_mut().push(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?);
            let mut program = Command::new(if is_taken { "false" } else { "sleep" });
            Process::start(program.arg("60"), Path::new("/dev/null"))
        });
        let (port, _process) = started.unwrap();
        assert_eq!(taken.borrow().len(), 3);
        assert_eq!(taken.borrow()[2].local_addr().unwrap().port(), port);
    }

    #[test]
    fn every_process_gets_its_turn() {
        let text = configuration(8000, &["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()]);
        assert!(
            text.contains("balance roundrobin\n    server node1 127.0.0.1:1\n    server node2 127.0.0.1:2\n")
        );
    }
}
