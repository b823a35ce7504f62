//! The flags that choose a `Listen`.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::Path,
    process,
};

use super::Listen;
use crate::{Error, Result};

const OPTIONS: &str = "\
  --stdio             serve on standard input and output (the default)
  --http [ADDRESS]    serve HTTP, at 127.0.0.1:8000 unless an address, a port or a URL is given
  --allow-host HOST   a host name that HTTP requests may be for, instead of those of this machine; may be repeated
";

impl Listen {
    /// Reads the arguments of the process: `--stdio`, which is the default, or `--http [ADDRESS]`.
    ///
    /// | flags | listens |
    /// |---|---|
    /// | none, `--stdio` | on the standard streams |
    /// | `--http` | over HTTP at `127.0.0.1:8000` |
    /// | `--http 9000`, `--http 0.0.0.0:9000` | over HTTP at this port of `127.0.0.1`, or at this address |
    /// | `--http http://127.0.0.1:9000/tools` | over HTTP at this address and path |
    /// | `--allow-host mcp.example.com` | and accepts HTTP requests for [this host](Self::hosts) |
    ///
    /// Other arguments are an error. A program with flags of its own parses the value of one of them instead:
    /// `"http://127.0.0.1:8000".parse::<Listen>()`.
    ///
    /// Ends the process with status 2 and a message if the arguments are invalid, and with status 0 after `--help`, as `clap`
    /// does. [`parse_args`](Self::parse_args) returns the error.
    pub fn from_args() -> Self {
        let mut args = env::args_os();
        let program = args.next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let args: Vec<_> = args.collect();
        if args.iter().any(|arg| arg == "--help" || arg == "-h") {
            // There is nobody to tell that standard output is closed.
            let _ = write!(io::stdout(), "{}\n{OPTIONS}", usage(&program));
            process::exit(0);
        }
        Self::parse_args(args).unwrap_or_else(|error| {
            let _ = write!(io::stderr(), "error: {error}\n\n{}\n{OPTIONS}", usage(&program));
            process::exit(2)
        })
    }

    /// Reads the flags of [`from_args`](Self::from_args) from these arguments, without the name of the program.
    ///
    /// ```
    /// use pintle::server::Listen;
    ///
    /// # #[cfg(feature = "http-server")] {
    /// let listen = Listen::parse_args(["--http", "9000"])?;
    /// assert_eq!(listen.to_string(), "http://127.0.0.1:9000/mcp");
    /// # }
    /// let error = Listen::parse_args(["--htpp"]).unwrap_err();
    /// assert_eq!(error.to_string(), "unexpected argument `--htpp`: the flags are `--stdio`, `--http` and `--allow-host`");
    /// # Ok::<(), pintle::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if an argument is unknown or contradicts another one, a value is invalid, or the feature that serves the
    /// address is disabled.
    pub fn parse_args<T: Into<OsString>>(args: impl IntoIterator<Item = T>) -> Result<Self> {
        let args = args.into_iter().map(|arg| {
            arg.into().into_string().map_err(|arg| {
                Error::misuse(format!("`{}` is not UTF-8: remove the argument", arg.to_string_lossy()))
            })
        });
        let mut args = args.collect::<Result<Vec<_>>>()?.into_iter().peekable();
        let (mut chosen, mut hosts) = (None::<Self>, Vec::new());
        while let Some(arg) = args.next() {
            let (flag, value) = match arg.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (&*arg, None),
            };
            let listen = match (flag, value) {
                ("--stdio", None) => Self::default_stdio()?,
                ("--http", Some(address)) => Self::parse_http(&address)?,
                ("--http", None) => match args.next_if(|next| !next.starts_with('-')) {
                    Some(address) => Self::parse_http(&address)?,
                    None => Self::default_http()?,
                },
                ("--allow-host", value) => {
                    let value = value.or_else(|| args.next_if(|next| !next.starts_with('-')));
                    let host = value.filter(|host| !host.is_empty());
                    hosts.push(host.ok_or_else(|| {
                        Error::misuse("`--allow-host` needs a value: write `--allow-host mcp.example.com`")
                    })?);
                    continue;
                }
                _ => {
                    return Err(Error::misuse(format!(
                        "unexpected argument `{arg}`: the flags are `--stdio`, `--http` and `--allow-host`"
                    )));
                }
            };
            if chosen.replace(listen).is_some() {
                return Err(Error::misuse(
                    "`--stdio` and `--http` exclude each other: pass one of them, once",
                ));
            }
        }
        let listen = chosen.map_or_else(Self::default_stdio, Ok)?;
        if !hosts.is_empty() && listen.http_address().is_none() {
            return Err(Error::misuse("`--allow-host` is for HTTP: pass `--http` too"));
        }
        Ok(listen.hosts(hosts))
    }
}

fn usage(program: &str) -> String {
    format!("usage: {program} [--stdio | --http [ADDRESS]] [--allow-host HOST]...\n")
}

#[cfg(all(test, feature = "http-server", feature = "stdio"))]
mod tests {
    use super::*;

    #[test]
    fn flags_choose_the_address() {
        for (args, address, hosts) in [
            (&[][..], "stdio", &[][..]),
            (&["--stdio"], "stdio", &[]),
            (&["--http"], "http://127.0.0.1:8000/mcp", &[]),
            (&["--http", "9000"], "http://127.0.0.1:9000/mcp", &[]),
            (&["--http=0.0.0.0:80"], "http://0.0.0.0:80/mcp", &[]),
            (&["--http", "--allow-host", "a.example"], "http://127.0.0.1:8000/mcp", &["a.example"]),
            (&["--allow-host=a", "--http", "80", "--allow-host=b"], "http://127.0.0.1:80/mcp", &["a", "b"]),
        ] {
            let listen = Listen::parse_args(args).unwrap();
            assert_eq!(listen.to_string(), address, "{args:?}");
            assert_eq!(listen.hosts, hosts, "{args:?}");
        }
    }

    #[test]
    fn wrong_flags_are_explained() {
        for (args, expected) in [
            (&["--htpp"][..], "unexpected argument `--htpp`"),
            (&["9000"], "unexpected argument `9000`"),
            (&["--stdio=yes"], "unexpected argument `--stdio=yes`"),
            (&["--http", "--stdio"], "exclude each other"),
            (&["--http", "1", "--http", "2"], "exclude each other"),
            (&["--http", "1", "2"], "unexpected argument `2`"),
            (&["--http", ":80"], "`:80` has no host"),
            (&["--http", "--allow-host"], "`--allow-host` needs a value"),
            (&["--http", "--allow-host", "--http"], "`--allow-host` needs a value"),
            (&["--allow-host", "a"], "pass `--http` too"),
        ] {
            let error = Listen::parse_args(args).unwrap_err().to_string();
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }
}
