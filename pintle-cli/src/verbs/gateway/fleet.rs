//! A gateway of several processes that share a Redis, and the keys of one that does not.

mod key_file;
mod keys;
mod store_health;

use std::{
    convert::Infallible,
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use pintle::{
    Server,
    server::{
        Rules,
        http::{Http, nodes::Nodes},
    },
};
use pintle_redis::{Redis, RedisOptions};

use crate::{
    failure::{Exit, Failure},
    listen::Routes,
    output::Output,
};

pub(super) use keys::GatewayKeys;
use store_health::StoreHealth;

const HELP: &str = "pintle gateway --help";
/// The name of what the login pages share. The others are named by their paths.
const LOGIN_SERVICE: &str = "login";

/// Options of a gateway that shares its sessions with other processes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Several processes")]
pub(super) struct FleetArgs {
    /// The Redis that the processes share, such as `redis://127.0.0.1/`; `rediss` is with TLS
    #[arg(long, value_name = "URL", conflicts_with = "redis_env")]
    redis: Option<String>,
    /// An environment variable with that URL, which may have a user and a password
    #[arg(long, value_name = "NAME")]
    redis_env: Option<String>,
    /// An environment variable with the key that all processes have, 64 hexadecimal digits; more of them open what they have sealed, and do
    /// not seal
    #[arg(long, value_name = "NAME", conflicts_with = "redis_key_file")]
    redis_key_env: Vec<String>,
    /// A file with that key, in place of a variable
    #[arg(long, value_name = "FILE")]
    redis_key_file: Vec<PathBuf>,
    /// The file with the key of a gateway without a Redis, which is created if there is none; the default is in the directory of the
    /// command's state
    #[arg(long, value_name = "FILE", conflicts_with_all = ["redis", "redis_env"])]
    key_file: Option<PathBuf>,
}

/// The place of a shared Redis, and the keys that seal what is in it.
pub(super) struct FleetAddress {
    url: String,
    keys: GatewayKeys,
}

impl FleetArgs {
    /// Returns an option that was given, if there is one.
    pub(super) fn given(&self) -> Option<&'static str> {
        let Self { redis, redis_env, redis_key_env, redis_key_file, key_file } = self;
        let options = [
            ("--redis", redis.is_some()),
            ("--redis-env", redis_env.is_some()),
            ("--redis-key-env", !redis_key_env.is_empty()),
            ("--redis-key-file", !redis_key_file.is_empty()),
            ("--key-file", key_file.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns the keys of a gateway, and what it shares with other processes. `served` is the path of its file.
    pub(super) async fn open(
        &self,
        served: Option<&Path>,
        output: &Output,
    ) -> Result<(GatewayKeys, Option<GatewayFleet>), Failure> {
        match self.address()? {
            Some(FleetAddress { url, keys }) => {
                let fleet = GatewayFleet::open(&url, &keys).await?;
                Ok((keys, Some(fleet)))
            }
            None => Ok((key_file::keys(self.key_file.as_deref(), served, output)?, None)),
        }
    }

    /// Returns the address, if there is one.
    fn address(&self) -> Result<Option<FleetAddress>, Failure> {
        let keys = self.keys()?;
        let url = match (&self.redis, &self.redis_env) {
            (Some(url), _) if has_password(url) => {
                let message = "the URL of `--redis` has a password, which others on this machine can see: use `--redis-env`";
                return Err(Failure::usage(message, HELP));
            }
            (Some(url), _) => url.clone(),
            (None, Some(name)) => variable(name)?,
            (None, None) if keys.is_some() => {
                return Err(Failure::usage(
                    "there is a key and no Redis: set `--redis` or `--redis-env`",
                    HELP,
                ));
            }
            (None, None) => return Ok(None),
        };
        let keys = keys.ok_or_else(|| {
            let message =
                "the processes need a key that they share: set `--redis-key-env` or `--redis-key-file`";
            Failure::usage(message, "export PINTLE_KEY=$(openssl rand -hex 32)")
        })?;
        Ok(Some(FleetAddress { url, keys }))
    }

    /// Returns the keys, if there are any.
    fn keys(&self) -> Result<Option<GatewayKeys>, Failure> {
        let variables = self
            .redis_key_env
            .iter()
            .map(|name| Ok::<_, Failure>((format!("the variable `{name}`"), variable(name)?)));
        let files = self.redis_key_file.iter().map(|path| {
            let text = fs::read_to_string(path).map_err(|error| {
                let message = format!("the key in `{}` cannot be read: {error}", path.display());
                Failure::usage(message, format!("ls -l {}", path.display()))
            })?;
            Ok((format!("the file `{}`", path.display()), text))
        });
        let mut keys: Option<GatewayKeys> = None;
        for source in variables.chain(files) {
            let (place, text) = source?;
            let key = GatewayKeys::parse(&place, &text)?;
            keys = Some(match keys {
                Some(keys) => keys.and(key),
                None => key,
            });
        }
        Ok(keys)
    }
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|_| {
        let message = format!("the environment variable `{name}` is not set");
        Failure::usage(message, format!("export {name}=…"))
    })
}

/// Returns whether a URL has a password.
fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// The shared state of a gateway of several processes.
#[derive(Clone)]
pub(super) struct GatewayFleet {
    redis: Redis,
    health: StoreHealth,
}

impl GatewayFleet {
    /// Connects to the Redis of an address.
    async fn open(url: &str, keys: &GatewayKeys) -> Result<Self, Failure> {
        let options = RedisOptions::default().prefix("pintle-gateway").seal(keys.of_stores());
        let redis = Redis::connect_with(url, options).await.map_err(|error| failed(&error))?;
        Ok(Self { redis, health: StoreHealth::default() })
    }

    /// Returns why the Redis cannot be used.
    pub(super) fn outage(&self) -> Option<String> {
        self.health.outage()
    }

    /// Watches whether the Redis can be used.
    pub(super) async fn watch(&self, output: &Output) -> Infallible {
        self.health.watch(|| self.redis.ping(), output).await
    }

    /// Has the calls of rules counted together with those of the other processes.
    pub(super) fn share_rates(&self, rules: Rules) -> Rules {
        rules.share_rates(self.redis.clone())
    }

    /// Has the calls of the rules of a virtual server counted together with those of the other processes, apart from those of all others.
    pub(super) fn share_rates_of(&self, server: &str, rules: Rules) -> Rules {
        rules.share_rates_of(server, self.redis.clone())
    }

    /// Returns the record of DPoP proofs that were used: each is accepted by one process, once.
    pub(super) fn nonces(&self) -> Redis {
        self.redis.clone()
    }

    /// Returns the processes, for the pages of logins.
    pub(super) async fn login_nodes(&self) -> Result<Arc<dyn Nodes>, Failure> {
        Ok(Arc::new(self.redis.service(LOGIN_SERVICE).await.map_err(|error| failed(&error))?))
    }

    /// Serves a server at a path. Its sessions are those of this path in all processes.
    pub(super) async fn serve(&self, routes: &Routes, path: &str, server: &Server) -> Result<(), Failure> {
        let store = self.redis.service(path).await.map_err(|error| failed(&error))?;
        routes.insert(path, server, |http: Http| http.shared(store))
    }
}

fn failed(error: &std::io::Error) -> Failure {
    let message = format!("the Redis of the gateway cannot be used: {error}");
    Failure::new(Exit::Server, message, "redis-cli -u URL ping")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(redis: &str) -> FleetArgs {
        FleetArgs { redis: Some(redis.to_owned()), ..FleetArgs::default() }
    }

    #[test]
    fn a_password_is_not_an_argument_and_a_key_is_needed() {
        for url in ["redis://ann:sesame@host/", "redis://:sesame@host", "ann:sesame@host/0"] {
            let refused = args(url).address().err().unwrap().message;
            assert!(refused.contains("--redis-env") && !refused.contains("sesame"), "{refused}");
        }
        for url in ["redis://127.0.0.1:6379/", "redis://ann@host/a:b@c"] {
            let refused = args(url).address().err().unwrap().message;
            assert!(refused.contains("need a key"), "{refused}");
        }
        assert!(FleetArgs::default().address().unwrap().is_none());
    }
}
