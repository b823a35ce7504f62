use clap::Args;
use pintle::proto::http::Guard;
use tokio::net::TcpListener;

use super::{Access, Listening};
use crate::failure::Failure;

/// Options of what listens, which every verb that serves HTTP has.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Listening")]
pub(crate) struct ListenArgs {
    /// A host that requests may be for, instead of those of this machine
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,
    /// An environment variable with a token that clients have to send, for each that is not to share with the others; without it,
    /// a random one is printed if other machines can connect
    #[arg(long, value_name = "NAME")]
    bearer_env: Vec<String>,
    /// Let other machines connect without a token; needs `--allow-host`
    #[arg(long, conflicts_with = "bearer_env")]
    insecure_no_auth: bool,
}

impl ListenArgs {
    /// Returns an option that was given, if there is one.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let Self { hosts, bearer_env, insecure_no_auth } = self;
        let options = [
            ("--allow-host", !hosts.is_empty()),
            ("--bearer-env", !bearer_env.is_empty()),
            ("--insecure-no-auth", *insecure_no_auth),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Opens a port. Whoever connects to one that other machines can reach needs a token.
    pub(crate) async fn listen(&self, address: &str, verb: &str) -> Result<Listening, Failure> {
        self.open(address, verb, None).await
    }

    /// Opens a port for routes that check tokens of an authorization server.
    pub(crate) async fn listen_for_routes(&self, address: &str, verb: &str) -> Result<Listening, Failure> {
        let option =
            [("--bearer-env", !self.bearer_env.is_empty()), ("--insecure-no-auth", self.insecure_no_auth)];
        if let Some((option, _)) = option.into_iter().find(|(_, given)| *given) {
            let message =
                format!("`{option}` does not go with the authorization server of the file: leave one out");
            return Err(Failure::usage(message, format!("pintle {verb} --help")));
        }
        self.open(address, verb, Some(Access::Routes)).await
    }

    async fn open(&self, address: &str, verb: &str, access: Option<Access>) -> Result<Listening, Failure> {
        let next = format!("pintle {verb} --help");
        let failed = |error| Failure::usage(format!("cannot listen at `{address}`: {error}"), next.clone());
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        // `[::ffff:127.0.0.1]` is reached by this machine alone, too.
        let is_local = bound.ip().to_canonical().is_loopback();
        let (own, guard) = self.admitted(is_local, address, verb)?;
        let access = access.unwrap_or(own);
        Ok(Listening { listener, guard, access, address: bound.to_string(), is_local })
    }

    /// Returns who may connect to an address, and for which hosts.
    fn admitted(&self, is_local: bool, address: &str, verb: &str) -> Result<(Access, Guard), Failure> {
        if !is_local && self.insecure_no_auth && self.hosts.is_empty() {
            let message = format!(
                "anybody could use `{address}`: name the host that clients connect to with `--allow-host`"
            );
            return Err(Failure::usage(message, format!("pintle {verb} --help")));
        }
        let access = match &*self.bearer_env {
            [] if is_local || self.insecure_no_auth => Access::Open,
            [] => Access::random()?,
            names => Access::of_variables(names)?,
        };
        let guard = match (self.hosts.is_empty(), is_local) {
            (false, _) => Guard::hosts(self.hosts.iter().map(String::as_str)),
            (true, true) => Guard::loopback(),
            // A web page on another host does not know the token.
            (true, false) => Guard::any_host(),
        };
        Ok((access, guard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(hosts: &[&str], insecure_no_auth: bool, is_local: bool) -> Result<Option<String>, Failure> {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let args = ListenArgs { hosts, bearer_env: Vec::new(), insecure_no_auth };
        let (access, _) = args.admitted(is_local, "0.0.0.0:8000", "demo")?;
        Ok(access.token().map(str::to_owned))
    }

    #[test]
    fn other_machines_need_a_token_unless_the_user_insists() {
        assert_eq!(admitted(&[], false, true).unwrap(), None);
        let token = admitted(&[], false, false).unwrap().unwrap();
        assert!(token.len() >= 43, "{token}");
        assert_ne!(admitted(&["box.example"], false, false).unwrap(), Some(token), "it is random");
        let refused = admitted(&[], true, false).unwrap_err();
        assert!(refused.message.contains("`--allow-host`"), "{refused:?}");
        assert_eq!(admitted(&["box.example"], true, false).unwrap(), None);
    }

    #[test]
    fn a_variable_without_a_token_is_an_error() {
        let unset =
            ListenArgs { bearer_env: vec!["PINTLE_NO_SUCH_VARIABLE".into()], ..ListenArgs::default() };
        let refused = unset.admitted(true, "127.0.0.1:0", "demo").unwrap_err();
        assert_eq!(refused.message, "the environment variable `PINTLE_NO_SUCH_VARIABLE` has no token");
    }
}
