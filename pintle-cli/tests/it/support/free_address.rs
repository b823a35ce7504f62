use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

/// The ports that are used: below those that the system gives to connections, and none that the tests of `pintle-redis` use.
const FIRST: u16 = 21_000;
const COUNT: u32 = 11_000;

/// Returns an address of this machine that nothing listens at, each one once. No connection takes the port before a program listens
/// there, as it could one that the system chose.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        let next = std::process::id().wrapping_mul(61).wrapping_add(NEXT.fetch_add(7, Ordering::Relaxed));
        let port = FIRST + u16::try_from(next % COUNT).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port from {FIRST} on is free");
}
