//! A tool that returns an image and audio.

use pintle::{
    Server,
    server::tool,
    types::schema::{AudioContent, ContentBlock, ImageContent},
};

/// The flag Oscar, 12 by 8: man overboard.
const FLAG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAwAAAAICAMAAAD6Ou7DAAAABlBMVEX2xADIEC5zkdW2AAAAHklEQVR42lXHoQEAAAjAIPz/aaOT\
                    BnPwctWR6kh1CwzsADGKUdxtAAAAAElFTkSuQmCC";
/// A very short blast of the horn.
const HORN: &str = "UklGRmQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YUAAAABAQEBAQEBAQMDAwMDAwMDAQEBAQEBAQEDAwMDAwMDA\
                    wEBAQEBAQEBAwMDAwMDAwMBAQEBAQEBAQMDAwMDAwMDA";

pub(super) fn add(server: Server) -> Server {
    server.tool(tool("signal", signal).description("The signal for a man overboard.").read_only())
}

async fn signal() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("Man overboard!"),
        ContentBlock::Image(ImageContent::new(FLAG, "image/png")),
        ContentBlock::Audio(AudioContent::new(HORN, "audio/wav")),
    ]
}
