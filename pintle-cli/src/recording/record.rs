use pintle::types::RawValue;
use serde::Deserialize;

use super::header::RecordingHeader;

/// A line of a recording: a header, a record, or the number of records that were dropped.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedLine {
    pub(super) recording: Option<RecordingHeader>,
    /// The number of records that were dropped before this line.
    pub(crate) dropped: Option<u64>,
    pub(super) time: Option<String>,
    side: Option<String>,
    direction: Option<String>,
    /// The number of the connection; several recordings of a file begin again.
    pub(crate) connection: Option<u64>,
    pub(crate) http: Option<RecordedHttp>,
    /// A message or a batch.
    pub(crate) message: Option<Box<RawValue>>,
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) oversized: bool,
    /// The number of headers before this line.
    #[serde(skip)]
    pub(crate) part: usize,
}

/// The HTTP part of a record.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedHttp {
    /// The number of the request, which its response has too.
    pub(crate) exchange: u64,
    pub(super) method: String,
    pub(super) uri: String,
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(super) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(super) event: bool,
}

impl RecordedLine {
    /// Returns whether the client sent it. The direction is that of the side that wrote the record.
    pub(crate) fn is_by_client(&self) -> bool {
        (self.direction.as_deref() == Some("out")) != (self.side.as_deref() == Some("server"))
    }
}
