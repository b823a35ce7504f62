/// Raises the limit of open files of this process to the most that the system allows it. Servers with many sessions need it: each
/// connection is a file.
///
/// Processes that are started later inherit it, and some old ones cannot have more than 1,024 files: only for what starts none.
pub(crate) fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        // It stays as it is where the system has another limit.
        if current != maximum {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        }
    }
}
