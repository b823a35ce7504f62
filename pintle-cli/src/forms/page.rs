use pintle::{
    client::{Answer, ElicitUrl},
    types::schema::ElicitUrlParams,
};
use serde_json::Value;

use crate::{
    auth::open_browser,
    output::{Text, Tone, Turn},
};

/// Shows the host and the URL of a page, and opens it if the user agrees.
pub(super) async fn show_page(server: &str, page: &ElicitUrl, opens: bool, turn: &mut Turn<'_>) -> Answer {
    let mut text = Text::new();
    text.tone(Tone::Title, server).add(" asks: ").block(&page.message);
    text.add("It wants you to open a page of ").tone(Tone::Method, &page.host);
    if let Some(port) = page.port {
        text.add(", port ").add(port);
    }
    text.end().add("  ").line(&page.url);
    if page.has_punycode() {
        text.tone(Tone::Error, "The name of the host has letters that may look like others.").end();
    }
    turn.print(&text);
    loop {
        let Some(typed) = turn.ask(&Text::from("Open it? (yes, no) [no]: ")).await else {
            return Answer::Cancel;
        };
        match typed.trim().to_lowercase().as_str() {
            "y" | "yes" => break,
            "" | "n" | "no" => return Answer::Decline,
            _ => turn.print(Text::from("Type `yes` or `no`; `no` declines.").end()),
        }
    }
    if !opens || open_browser(&page.url).is_err() {
        let mut text = Text::new();
        text.add("Open this page in a browser: ").line(&page.url);
        turn.print(&text);
    }
    Answer::Accept(Value::Null)
}

/// Shows the URL of a page that an earlier command printed, and asks whether the user has opened it.
pub(super) async fn confirm_page(server: &str, page: &ElicitUrlParams, turn: &mut Turn<'_>) -> Answer {
    let mut text = Text::new();
    text.tone(Tone::Title, server).add(" asks: ").block(&page.message);
    text.add("  ").line(&page.url);
    turn.print(&text);
    let Some(typed) = turn.ask(&Text::from("Have you opened it? (yes, no) [no]: ")).await else {
        return Answer::Cancel;
    };
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Accept(Value::Null),
        _ => Answer::Decline,
    }
}
