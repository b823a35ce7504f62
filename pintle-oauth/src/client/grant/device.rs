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
/// The minimum and maximum of seconds between two polls.
const PACE: (u64, u64) = (1, 60);
/// The limit of a login in seconds, whatever the authorization server states.
const MAX_SECONDS: u64 = 1800;

/// The address and the code that a user needs to log in on another device.
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
    /// Returns the address of the login page.
    pub fn url(&self) -> &str {
        &self.verification_uri
    }

    /// Returns the code to type there.
    pub fn code(&self) -> &str {
        &self.user_code
    }

    /// Returns the address that contains the code, for a link or a QR code.
    pub fn complete_url(&self) -> Option<&str> {
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
    /// Has the user log in on another device, and polls until they have: RFC 8628.
    pub(crate) async fn device(&self, name: &str, show: &Show, scopes: Scopes) -> Result<Tokens> {
        let issuer = &self.discovered.key;
        let Some(endpoint) = &self.discovered.server.device_authorization_endpoint else {
            return Err(Error::Refused(format!(
                "the authorization server `{issuer}` does not support device codes; use `OAuth::login`"
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
        for url in [Some(code.url()), code.complete_url()].into_iter().flatten() {
            self.web.reach.check(url)?;
        }
        show(&code);
        self.wait(&client, &code, scopes).await
    }

    async fn wait(&self, client: &Identity, code: &DeviceCode, scopes: Scopes) -> Result<Tokens> {
        let seconds = if code.expires_in == 0 { MAX_SECONDS } else { code.expires_in.min(MAX_SECONDS) };
        let end = Instant::now() + Duration::from_secs(seconds);
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
                // The next poll may succeed.
                Err(TokenError::Failed(_)) => pace = (pace * 2).min(PACE.1),
                Err(error) => return Err(self.refused(error, client).await),
            }
        }
        Err(Error::Refused("the login on another device was not completed in time; try again".into()))
    }
}
