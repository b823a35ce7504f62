use std::{fmt, time::Duration};

use pintle::{Error, Result};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{
    flow::{Flow, add_scopes},
    token::TokenError,
};
use crate::{
    client::store::credentials::Tokens,
    shared::{form::Form, identity::Identity, scope::Scopes, secret::Secret},
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How long is waited between two looks, at least and at most.
const PACE: (u64, u64) = (1, 60);
/// A login that nobody finishes ends, whatever the authorization server says.
const LONGEST: u64 = 1800;

/// What a user needs to log in on another device: where to go, and what to type there.
#[derive(Clone, Deserialize)]
pub struct DeviceCode {
    verification_uri: String,
    verification_uri_complete: Option<String>,
    user_code: String,
    device_code: Secret,
    #[serde(default)]
    expires_in: u64,
    interval: Option<u64>,
}

impl DeviceCode {
    /// Where to go.
    pub fn url(&self) -> &str {
        &self.verification_uri
    }

    /// What to type there.
    pub fn code(&self) -> &str {
        &self.user_code
    }

    /// Where to go without having to type anything, for a link or a QR code.
    pub fn whole_url(&self) -> Option<&str> {
        self.verification_uri_complete.as_deref()
    }
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCode").field("url", &self.verification_uri).finish_non_exhaustive()
    }
}

pub(crate) type Show = dyn Fn(&DeviceCode) + Send + Sync;

impl Flow<'_> {
    /// The user logs in on another device, while this one asks now and then whether they have: RFC 8628.
    pub(crate) async fn device(&self, name: &str, show: &Show, scopes: Scopes) -> Result<Tokens> {
        let issuer = &self.discovered.key;
        let Some(endpoint) = &self.discovered.server.device_authorization_endpoint else {
            return Err(Error::Refused(format!(
                "the authorization server `{issuer}` has no login by another device: use `OAuth::login`"
            )));
        };
        let mut credentials = self.settings.store.load(issuer).await?.unwrap_or_default();
        let client = self.identify(name, None, &mut credentials).await?;
        let mut form = Form::new();
        self.add_resource(&mut form);
        add_scopes(&mut form, &self.staying(&scopes));
        let asked = self.request(endpoint, Some(&client), form).send::<DeviceCode>("device_code").await;
        let code = match asked {
            Ok(code) => code,
            Err(error) => return Err(self.refused(error, &client).await),
        };
        for url in [Some(code.url()), code.whole_url()].into_iter().flatten() {
            self.web.reach.check(url)?;
        }
        show(&code);
        self.wait(&client, &code, scopes).await
    }

    async fn wait(&self, client: &Identity, code: &DeviceCode, scopes: Scopes) -> Result<Tokens> {
        let patience = if code.expires_in == 0 { LONGEST } else { code.expires_in.min(LONGEST) };
        let end = Instant::now() + Duration::from_secs(patience);
        let mut pace = code.interval.unwrap_or(5).clamp(PACE.0, PACE.1);
        while Instant::now() < end {
            sleep(Duration::from_secs(pace)).await;
            let mut form =
                Form::new().with("grant_type", GRANT).with("device_code", code.device_code.reveal());
            self.add_resource(&mut form);
            match self.ask(Some(client), form).await {
                Ok(answer) => return self.read(answer, Some(client), scopes),
                Err(TokenError::Refused { error, .. }) if error == "authorization_pending" => {}
                Err(TokenError::Refused { error, .. }) if error == "slow_down" => {
                    pace = (pace + 5).min(PACE.1);
                }
                // It may be back when it is asked again.
                Err(TokenError::Failed(_)) => pace = (pace * 2).min(PACE.1),
                Err(error) => return Err(self.refused(error, client).await),
            }
        }
        Err(Error::Refused("nobody logged in on another device in time: try again".into()))
    }
}
