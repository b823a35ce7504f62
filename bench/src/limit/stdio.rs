//! The limit on a pipe: one thread that blocks, and writes when all that was read is answered.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader, Result, Write, stdin, stdout},
    os::fd::AsFd,
};

use super::{Answer, Limit, call_id, called, question};

/// So much may wait to be written.
const FULL: usize = 256 << 10;

/// Serves until the input ends.
///
/// # Errors
///
/// The pipes broke.
pub fn serve() -> Result<()> {
    let limit = Limit::default();
    let mut input = BufReader::with_capacity(64 << 10, stdin().lock());
    // Standard output itself would be written line by line.
    let mut output = File::from(stdout().as_fd().try_clone_to_owned()?);
    let (mut line, mut out) = (Vec::new(), Vec::new());
    let mut asked: HashMap<u64, String> = HashMap::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let before = out.len();
        match limit.answer(line.trim_ascii_end(), None, &mut out) {
            Answer::Reply | Answer::Opened | Answer::Lines => out.push(b'\n'),
            Answer::Asked(question) => {
                out.push(b'\n');
                asked.insert(question, call_id(&line));
            }
            Answer::Answered(question, yes) => {
                if let Some(call) = asked.remove(&question) {
                    called(&mut out, &call, false, question::word(yes));
                    out.push(b'\n');
                }
            }
            Answer::Nothing | Answer::Bad => out.truncate(before),
        }
        line.clear();
        if input.buffer().is_empty() || out.len() > FULL {
            output.write_all(&out)?;
            out.clear();
        }
    }
    Ok(())
}
