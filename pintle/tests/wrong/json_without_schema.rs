//! A structured result without a schema.

use pintle::server::Json;

#[derive(serde::Serialize)]
struct Weather {
    celsius: f64,
}

#[pintle::tool]
async fn weather() -> Json<Weather> {
    Json(Weather { celsius: 21.5 })
}

fn main() {
    pintle::tools![weather];
}
