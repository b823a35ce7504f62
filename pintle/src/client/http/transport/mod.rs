//! The transport: what is sent and received over several HTTP requests, as one connection.

mod exchange;
mod line;
mod live;
mod oldest;
mod running;
mod standing;
mod stream;
mod wardrobe;

pub(super) use live::Live;
