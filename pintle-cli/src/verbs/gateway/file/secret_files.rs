use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pintle_serve::SecretSource;
use ring::digest::{SHA256, digest};

use crate::verbs::gateway::secret::SecretValue;

/// The age at which the time of a file tells whether it has changed: two changes shortly after each other may have the same.
const SETTLED: Duration = Duration::from_secs(2);

/// The files with secrets of targets and APIs. Two are equal if the secrets are; those themselves are not kept.
#[derive(Clone, Default, PartialEq)]
pub(in crate::verbs::gateway) struct SecretFiles(BTreeMap<PathBuf, SecretFile>);

#[derive(Clone)]
struct SecretFile {
    /// When the file was written, and its length, if that tells whether it has changed.
    written: Option<(SystemTime, u64)>,
    digest: [u8; 32],
}

impl PartialEq for SecretFile {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl fmt::Debug for SecretFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl SecretFiles {
    /// Reads the files of these values, but for those that have not changed since `known` was read. One that cannot be read is taken from
    /// there: whoever replaces it may not be done. It blocks.
    pub(super) fn read<'a>(values: impl Iterator<Item = &'a SecretValue>, known: Option<&Self>) -> Self {
        let mut files = BTreeMap::new();
        for value in values {
            let Some(path) = path(value) else { continue };
            let known = known.and_then(|known| known.0.get(path));
            let written = written(path).ok().flatten();
            let unchanged = known.filter(|known| written.is_some() && known.written == written);
            let file = match unchanged {
                Some(_) => None,
                None => value.read().ok().map(|secret| SecretFile::new(written, &secret)),
            };
            if let Some(file) = file.or_else(|| known.cloned()) {
                files.insert(path.to_owned(), file);
            }
        }
        Self(files)
    }

    /// Returns whether these values are the same as in others.
    pub(super) fn are_same<'a>(
        &self,
        other: &Self,
        mut values: impl Iterator<Item = &'a SecretValue>,
    ) -> bool {
        values.all(|value| self.is_same(other, value))
    }

    /// Returns whether a value is the same as in others.
    pub(in crate::verbs::gateway) fn is_same(&self, other: &Self, value: &SecretValue) -> bool {
        path(value).is_none_or(|path| self.0.get(path) == other.0.get(path))
    }
}

impl SecretFile {
    fn new(written: Option<(SystemTime, u64)>, secret: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
        Self { written, digest: hash }
    }
}

fn path(value: &SecretValue) -> Option<&Path> {
    match value {
        SecretValue::Source(SecretSource::File(path)) => Some(path),
        SecretValue::Source(_) | SecretValue::Text(_) => None,
    }
}

/// Returns when a file was written, and its length, unless it was just now.
fn written(path: &Path) -> io::Result<Option<(SystemTime, u64)>> {
    let metadata = fs::metadata(path)?;
    let modified = metadata.modified()?;
    let is_settled = modified.elapsed().is_ok_and(|age| age > SETTLED);
    Ok(is_settled.then_some((modified, metadata.len())))
}
