//! A tool with typed arguments and a typed result.

use pintle::{
    Server,
    server::{Args, Json, tool},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Port;

#[derive(Deserialize, JsonSchema)]
struct When {
    /// The port.
    port: Port,
    /// The hour of the day.
    #[schemars(range(min = 0, max = 23))]
    hour: u8,
}

#[derive(JsonSchema, Serialize)]
struct Tide {
    metres: f64,
    rising: bool,
}

pub(super) fn add(server: Server) -> Server {
    server.tool(tool("tide", tide).title("Tide").description("Returns the height of the water.").read_only())
}

async fn tide(Args(When { port, hour }): Args<When>) -> Json<Tide> {
    Json(at(port, hour))
}

/// Returns the tide, which rises and falls twice a day.
fn at(port: Port, hour: u8) -> Tide {
    let high = [9, 14, 21][port as usize];
    let hour = u32::from(hour) % 12;
    let step = if hour < 6 { hour } else { 12 - hour };
    Tide { metres: f64::from(step * high) / 60.0, rising: hour < 6 }
}

/// Formats the tide for the resource of the same name.
pub(super) fn line(port: Port, hour: u8) -> String {
    let Tide { metres, rising } = at(port, hour);
    format!("{metres:.1} m, {}", if rising { "rising" } else { "falling" })
}
