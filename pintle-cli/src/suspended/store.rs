use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::SuspendedRecord;
use crate::{
    failure::Failure,
    storage::{self, create_directory, is_unique_name, read_private, unique_name, write_private},
};

/// How many calls are kept. The oldest is removed for another.
const MAX_CALLS: usize = 64;
/// How long a call is kept. Servers forget sooner.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The size of a call that is kept.
const MAX_BYTES: u64 = 4 << 20;

/// The directory of suspended calls.
#[derive(Clone, Debug)]
pub(crate) struct SuspendedStore(PathBuf);

/// A call that is being resumed, which no other command can resume meanwhile.
///
/// Unless it is [used up](Claim::consume), it can be resumed again when this value is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    claimed: PathBuf,
    unclaimed: PathBuf,
    is_consumed: bool,
}

impl SuspendedStore {
    /// The store of the user. The error is one line.
    pub(crate) fn of_user() -> Result<Self, String> {
        let state = storage::path().ok_or("there is no home directory: set `PINTLE_STATE_DIR`")?;
        Ok(Self(state.join("calls")))
    }

    /// Stores a call and returns its token. The error is one line.
    pub(crate) fn save(&self, record: &SuspendedRecord) -> Result<String, String> {
        let contents = serde_json::to_vec(record).map_err(|error| error.to_string())?;
        if contents.len() as u64 > MAX_BYTES {
            return Err(format!("the call is larger than {} MiB", MAX_BYTES >> 20));
        }
        let unwritten = |error: io::Error| format!("`{}` cannot be written: {error}", self.0.display());
        create_directory(&self.0).map_err(unwritten)?;
        self.prune(MAX_CALLS - 1, SystemTime::now());
        let token = unique_name();
        write_private(&self.path(&token, "json"), &contents).map_err(unwritten)?;
        Ok(token)
    }

    /// Returns the tokens of the calls that can be resumed.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        names
            .filter_map(|name| {
                name.strip_suffix(".json").filter(|token| is_unique_name(token)).map(str::to_owned)
            })
            .take(MAX_CALLS)
            .collect()
    }

    /// Takes a call, so that no other command can.
    pub(crate) fn claim(&self, token: &str) -> Result<(Claim, SuspendedRecord), Failure> {
        if !is_unique_name(token) {
            let message = format!("`{token}` is not the token of a call: it has twelve letters and digits");
            return Err(Failure::usage(message, "pintle resume --help"));
        }
        let (unclaimed, claimed) = (self.path(token, "json"), self.path(token, "claimed"));
        // Renaming succeeds for one of those who try at the same time.
        if let Err(error) = fs::rename(&unclaimed, &claimed) {
            let message = match error.kind() {
                io::ErrorKind::NotFound if claimed.exists() => {
                    format!("the call `{token}` is being resumed by another command: wait for its result")
                }
                io::ErrorKind::NotFound => format!(
                    "there is no call `{token}`: it was resumed, or it is older than a week; start the call again"
                ),
                _ => format!("the call `{token}` cannot be read: {error}"),
            };
            return Err(Failure::usage(message, "pintle resume --help"));
        }
        let mut claim = Claim { claimed, unclaimed, is_consumed: false };
        let record = read_private(&claim.claimed, MAX_BYTES)
            .ok()
            .flatten()
            .as_deref()
            .and_then(SuspendedRecord::from_bytes);
        match record {
            Some(record) => Ok((claim, record)),
            None => {
                claim.consume();
                let message = format!("the file of the call `{token}` is invalid: start the call again");
                Err(Failure::usage(message, "pintle resume --help"))
            }
        }
    }

    /// Removes calls that are too old, and the oldest beyond a number. Files that are not calls are left alone.
    fn prune(&self, limit: usize, now: SystemTime) {
        let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_call =
                matches!(path.extension().and_then(|end| end.to_str()), Some("json" | "claimed" | "tmp"));
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if let (true, Ok(modified)) = (is_call, modified) {
                files.push((modified, path));
            }
        }
        files.sort();
        let excess = files.len().saturating_sub(limit);
        for (number, (modified, path)) in files.iter().enumerate() {
            let is_old = now.duration_since(*modified).is_ok_and(|age| age > MAX_AGE);
            if number < excess || is_old {
                // Another command may have removed it.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn path(&self, token: &str, extension: &str) -> PathBuf {
        self.0.join(format!("{token}.{extension}"))
    }
}

impl Claim {
    /// The call was sent, or replaced by another: it cannot be resumed again.
    pub(crate) fn consume(&mut self) {
        self.is_consumed = true;
        remove(&self.claimed);
    }

    /// The call was sent, and it is not known yet whether the server accepts it.
    pub(crate) fn sent(&mut self) {
        self.is_consumed = true;
    }

    /// The server refused the answers: the call can be resumed with others.
    pub(crate) fn release(&mut self) {
        self.is_consumed = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        match self.is_consumed {
            true => remove(&self.claimed),
            // Where it cannot be renamed, it is lost: nobody is there to be told.
            false => drop(fs::rename(&self.claimed, &self.unclaimed)),
        }
    }
}

fn remove(path: &Path) {
    // It may be gone.
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Folder(SuspendedStore);

    impl Folder {
        fn new() -> Self {
            Self(SuspendedStore(std::env::temp_dir().join(format!("pintle-cli-{}", unique_name()))))
        }

        fn count(&self) -> usize {
            fs::read_dir(&self.0.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.0);
        }
    }

    fn record() -> SuspendedRecord {
        let text = json!({
            "version": 1,
            "target": {"server": "demo", "given": []},
            "server": "harbour",
            "call": {"method": "tools/call", "params": {"name": "t"}, "state": "s", "reason": "",
                "requests": [{"key": "k", "method": "elicitation/create", "params": {"message": "?"}}]},
        });
        SuspendedRecord::from_bytes(text.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_call_is_resumed_once_unless_it_is_released() {
        let folder = Folder::new();
        let token = folder.0.save(&record()).unwrap();
        let (claim, found) = folder.0.claim(&token).unwrap();
        assert_eq!(found.call.requests[0].key, "k");
        // One wins.
        let other = folder.0.claim(&token).unwrap_err();
        assert!(other.message.contains("is being resumed by another command"), "{other:?}");
        drop(claim);
        let (mut claim, _) = folder.0.claim(&token).unwrap();
        claim.sent();
        claim.release();
        drop(claim);
        let (mut claim, _) = folder.0.claim(&token).unwrap();
        claim.sent();
        drop(claim);
        let gone = folder.0.claim(&token).unwrap_err();
        assert!(gone.message.contains("it was resumed"), "{gone:?}");
        assert_eq!(folder.count(), 0);
    }

    #[test]
    fn other_files_do_not_hide_calls() {
        let folder = Folder::new();
        let token = folder.0.save(&record()).unwrap();
        for number in 0..500 {
            fs::write(folder.0.0.join(format!("{number}.tmp")), "").unwrap();
        }
        assert_eq!(folder.0.tokens(), [token]);
    }

    #[test]
    fn of_many_that_try_at_the_same_time_one_wins() {
        let folder = Folder::new();
        let token = folder.0.save(&record()).unwrap();
        let claims: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| folder.0.claim(&token).ok())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(claims.iter().flatten().count(), 1);
    }

    #[test]
    fn calls_are_bounded_in_number_and_age() {
        let folder = Folder::new();
        for _ in 0..MAX_CALLS + 3 {
            folder.0.save(&record()).unwrap();
        }
        assert_eq!(folder.count(), MAX_CALLS);
        fs::write(folder.0.0.join("README"), "").unwrap();
        folder.0.prune(MAX_CALLS, SystemTime::now() + MAX_AGE * 2);
        assert_eq!(folder.count(), 1);
        let mut large = record();
        large.call.reason = "x".repeat(MAX_BYTES as usize);
        assert!(folder.0.save(&large).unwrap_err().contains("larger than 4 MiB"));
    }

    #[test]
    fn a_token_is_not_a_path_and_a_file_has_a_version() {
        let folder = Folder::new();
        let token = folder.0.save(&record()).unwrap();
        for bad in ["", "../../etc/passwd", "abc", "abcdefghijk/"] {
            assert!(folder.0.claim(bad).unwrap_err().message.contains("is not the token"), "{bad}");
        }
        fs::write(folder.0.path(&token, "json"), r#"{"version":2}"#).unwrap();
        assert!(folder.0.claim(&token).unwrap_err().message.contains("is invalid"));
        assert_eq!(folder.count(), 0);
    }
}
