//! An argument of a type that nobody can read.

enum Tone {
    Kind,
}

#[pintle::prompt]
async fn greet(tone: Tone) -> &'static str {
    match tone {
        Tone::Kind => "Be kind.",
    }
}

fn main() {
    pintle::routes![greet];
}
