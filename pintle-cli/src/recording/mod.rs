//! Recordings of messages: lines of JSON that `trace` and `tap` write, and that `replay` reads.
//!
//! `docs/cli.md` has the format. The records are those of [`pintle::message_log`]; a header with the version of the format begins
//! each recording of a file.

mod args;
mod header;
mod printed;
mod reader;
mod record;
mod recorder;

pub(crate) use args::RecordArgs;
pub(crate) use reader::read;
pub(crate) use record::{RecordedHttp, RecordedLine};
pub(crate) use recorder::Recorder;
