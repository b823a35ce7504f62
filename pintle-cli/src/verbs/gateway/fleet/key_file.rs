use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};

use super::GatewayKeys;
use crate::{
    failure::Failure,
    output::Output,
    storage::{create_directory, create_private, path as state_directory, read_secret},
};

/// The limit of bytes of a file with a key.
const MAX_BYTES: u64 = 256;

/// Returns the keys of a gateway without a Redis: those of the file of the option, or of one of its own, which is created if there is
/// none. `served` is the path of the file that the gateway serves; without one there is nothing to find its own file by.
pub(super) fn keys(
    option: Option<&Path>,
    served: Option<&Path>,
    output: &Output,
) -> Result<GatewayKeys, Failure> {
    if let Some(path) = option {
        return read_or_create(path).map_err(|error| unusable(path, &error))?;
    }
    let Some(path) = served.and_then(own_path) else { return GatewayKeys::random() };
    let created = path.parent().map_or(Ok(()), create_directory).and_then(|()| read_or_create(&path));
    match created {
        Ok(keys) => keys,
        // There is one, which is not replaced.
        Err(error) if path.exists() => Err(unusable(&path, &error)),
        Err(error) => {
            output.warning(format!(
                "the key of the gateway cannot be kept in `{}`: {error}; `requestState`s, cursors and ids of tasks end with this \
                 process: set `PINTLE_STATE_DIR`, or use `--key-file`",
                path.display()
            ));
            GatewayKeys::random()
        }
    }
}

/// Returns the path of the key of a gateway that serves this file.
fn own_path(served: &Path) -> Option<PathBuf> {
    let served = fs::canonicalize(served).ok()?;
    let hash = digest(&SHA256, served.as_os_str().as_encoded_bytes());
    let name: String = hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Some(state_directory()?.join("gateway-keys").join(name))
}

/// Reads the key of a file. If there is none, it is created, and what another process has created at the same time is read.
fn read_or_create(path: &Path) -> io::Result<Result<GatewayKeys, Failure>> {
    let bytes = match read_secret(path, MAX_BYTES)? {
        Some(bytes) => bytes,
        None => {
            let key = match GatewayKeys::random() {
                Ok(key) => key,
                Err(failure) => return Ok(Err(failure)),
            };
            create_private(path, key.text().as_bytes())?;
            read_secret(path, MAX_BYTES)?.ok_or(io::ErrorKind::NotFound)?
        }
    };
    let place = format!("the file `{}`", path.display());
    Ok(GatewayKeys::parse(&place, &String::from_utf8_lossy(&bytes)))
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let message = format!("the key in `{shown}` cannot be used: {error}");
    Failure::usage(
        message,
        match error.kind() {
            io::ErrorKind::PermissionDenied => format!("chmod 600 {shown}"),
            _ => format!("ls -l {shown}"),
        },
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, thread};

    use super::*;
    use crate::output::OutputSettings;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pintle-key-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn text(path: &Path) -> Result<String, String> {
        let output = Output::new(OutputSettings::default());
        keys(Some(path), None, &output).map(|keys| keys.text()).map_err(|failure| failure.message)
    }

    #[test]
    fn processes_that_start_at_the_same_time_have_one_key() {
        let path = scratch("shared");
        let mut texts: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = (0..8).map(|_| scope.spawn(|| text(&path).unwrap())).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        texts.push(fs::read_to_string(&path).unwrap());
        texts.dedup();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::remove_file(&path).unwrap();
        assert_eq!((texts.len(), mode), (1, 0o600));
    }

    #[test]
    fn a_file_that_is_no_key_is_an_error_and_stays() {
        let path = scratch("wrong");
        for (content, mode, reason) in [
            ("", 0o600, "is not a key of 64 hexadecimal digits"),
            ("0f0f\n", 0o600, "is not a key of 64 hexadecimal digits"),
            ("-----BEGIN PRIVATE KEY-----\n", 0o600, "is not a key of 64 hexadecimal digits"),
            (&"0f".repeat(200), 0o600, "it is too large"),
            (&"0f".repeat(32), 0o644, "others can read it"),
            (&"0f".repeat(32), 0o620, "others can write it"),
        ] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = text(&path).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), *content);
        }
        fs::remove_file(&path).unwrap();
    }
}
