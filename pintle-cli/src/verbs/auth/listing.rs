use std::time::SystemTime;

use pintle_oauth::client::StoredLogin;
use serde_json::{Value, json};

use crate::{
    auth::Login,
    output::{Text, Tone},
};

/// Formats a login for programs.
pub(super) fn to_json(login: &Login, stored: Option<&StoredLogin>) -> Value {
    let mut row = json!({ "url": login.url, "issuer": login.issuer, "loggedIn": stored.is_some() });
    if let Some(StoredLogin { client_id, scopes, stale_at, refreshable, .. }) = stored {
        row["clientId"] = client_id.as_str().into();
        row["scopes"] = json!(scopes);
        row["refreshable"] = (*refreshable).into();
        let at = stale_at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        row["staleAt"] = json!(at.map(|at| at.as_secs()));
    }
    row
}

/// Prints a login.
pub(super) fn to_text(login: &Login, stored: Option<&StoredLogin>, text: &mut Text) {
    text.tone(Tone::Title, &login.url).end();
    text.tone(Tone::Faint, "  issuer   ").line(&login.issuer);
    let Some(StoredLogin { client_id, scopes, stale_at, refreshable, .. }) = stored else {
        text.tone(Tone::Faint, "  token    ").line("none: log in again");
        return;
    };
    if !client_id.is_empty() {
        text.tone(Tone::Faint, "  client   ").line(client_id);
    }
    if !scopes.is_empty() {
        text.tone(Tone::Faint, "  scopes   ").line(scopes.join(" "));
    }
    text.tone(Tone::Faint, "  token    ").line(lifetime(*stale_at, *refreshable));
}

fn lifetime(stale_at: Option<SystemTime>, refreshable: bool) -> String {
    let left = stale_at.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default().as_secs());
    match (left, refreshable) {
        (None, _) => "valid until the server revokes it".to_owned(),
        (Some(0), true) => "expired, and is refreshed when it is used".to_owned(),
        (Some(0), false) => "expired: log in again".to_owned(),
        (Some(seconds), true) => format!("valid for {}, and refreshed after that", span(seconds)),
        (Some(seconds), false) => format!("valid for {}", span(seconds)),
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_lifetime_of_a_token_in_words() {
        let past = Some(SystemTime::UNIX_EPOCH);
        let later = SystemTime::now().checked_add(Duration::from_secs(7230));
        assert_eq!(lifetime(None, false), "valid until the server revokes it");
        assert_eq!(lifetime(past, false), "expired: log in again");
        assert_eq!(lifetime(past, true), "expired, and is refreshed when it is used");
        assert_eq!(lifetime(later, true), "valid for 2 hours, and refreshed after that");
    }
}
