//! A Redis with TLS: `rediss://` addresses, a certificate that is checked, and a user with a password.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use pintle_redis::Redis;

const ADDRESS: &str = "PINTLE_TLS_REDIS";

/// A folder with the keys of a Redis, and the Redis.
struct TlsRedis {
    folder: PathBuf,
    child: Child,
    port: u16,
}

impl TlsRedis {
    /// Returns `None` if there is no `redis-server` with TLS or no `openssl`; with `PINTLE_REQUIRE_REDIS` that is a failure.
    fn start() -> Option<Self> {
        let folder = env::temp_dir().join(format!("pintle-redis-tls-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let skip = |what: &str| {
            assert!(env::var_os("PINTLE_REQUIRE_REDIS").is_none(), "{what}");
            eprintln!("skipped: {what}");
        };
        if !certify(&folder) {
            skip("`openssl` is not installed");
            return None;
        }
        let port = crate::redis_server::free_port();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--bind", "127.0.0.1", "--save", "", "--tls-auth-clients", "no"]);
        command.args([
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            "server.pem",
            "--tls-key-file",
            "server.key",
        ]);
        command.args(["--tls-ca-cert-file", "ca.pem", "--requirepass", "unused"]);
        command.args(["--user", "fleet", "on", ">sesame", "~pintle:*", "+@all", "-@admin", "-@dangerous"]);
        let child = command.current_dir(&folder).stdout(Stdio::null()).spawn();
        let Ok(child) = child else {
            skip("`redis-server` is not installed");
            return None;
        };
        Some(Self { folder, child, port })
    }

    /// Runs the helper with this address, and certificates of these authorities. Returns whether it could use Redis, and what it said.
    fn use_it(&self, url: &str, authorities: Option<&Path>) -> (bool, String) {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "tls::helper", "--nocapture"]).env(ADDRESS, url);
        match authorities {
            Some(file) => command.env("SSL_CERT_FILE", file),
            None => command.env_remove("SSL_CERT_FILE"),
        };
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for TlsRedis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes an authority and the certificate of a server.
fn certify(folder: &Path) -> bool {
    fs::write(folder.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
    let run = |words: &str| {
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    run(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority",
    ) && run(
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
    ) && run(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    )
}

/// Tests nothing by itself: it is the process that the test starts.
#[test]
fn helper() {
    let Ok(url) = env::var(ADDRESS) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let code = runtime.block_on(async {
        let mut tries = 0;
        let redis = loop {
            match Redis::connect(&url).await {
                Ok(redis) => break redis,
                // It may have just been started.
                Err(error) if error.to_string().contains("refused") && tries < 100 => {
                    tries += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                Err(error) => {
                    eprintln!("{error}");
                    return 1;
                }
            }
        };
        i32::from(!crate::kits::first_use(&redis, &[7; 32], u64::from(u32::MAX)).await.unwrap())
    });
    std::process::exit(code);
}

#[test]
fn a_redis_with_tls_is_used_if_its_certificate_is_trusted_and_the_password_is_right() {
    let Some(redis) = TlsRedis::start() else { return };
    let authorities = redis.folder.join("ca.pem");
    let url = |user: &str| format!("rediss://{user}@localhost:{}/", redis.port);
    let (worked, text) = redis.use_it(&url("fleet:sesame"), Some(&authorities));
    assert!(worked, "{text}");
    for (user, authorities) in [("fleet:wrong", Some(&*authorities)), ("fleet:sesame", None)] {
        let (worked, text) = redis.use_it(&url(user), authorities);
        assert!(!worked, "{user}");
        assert!(!text.contains("sesame"), "{text}");
    }
}
