use pintle_oauth::testing::Fault;

use crate::support::world::World;

fn logins(log: &[String]) -> Vec<&str> {
    log.iter()
        .filter(|line| line.starts_with("login"))
        .map(|line| line.split("scope=").nth(1).unwrap())
        .collect()
}

#[tokio::test]
async fn what_is_missing_is_asked_for_beside_what_was_asked_for_before() {
    let world = World::new();
    world.change(|state| state.needed = vec!["write".into()]);
    let server = world.connect(&world.login()).await.unwrap();
    server.call_tool("t", ()).await.unwrap();
    let log = world.log();
    assert_eq!(
        logins(&log),
        ["basic resource=https://mcp.test/mcp", "basic write resource=https://mcp.test/mcp"]
    );
}

#[tokio::test]
async fn what_was_asked_for_in_vain_is_not_asked_for_again() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    // Nobody is ever granted it.
    world.change(|state| state.needed = vec!["basic write".into()]);
    for _ in 0..3 {
        let error = server.call_tool("t", ()).await.unwrap_err().to_string();
        assert!(error.contains("403"), "{error}");
    }
    assert_eq!(logins(&world.log()).len(), 2);
}

#[tokio::test]
async fn a_server_that_always_wants_more_is_given_up_on() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    world.change(|state| state.needed = (0..100).map(|n| format!("s{n}")).collect());
    for _ in 0..10 {
        server.call_tool("t", ()).await.unwrap_err();
    }
    let log = world.log();
    assert_eq!(logins(&log).len(), 1 + 16, "{log:#?}");
}

#[tokio::test]
async fn a_user_who_says_no_to_more_is_not_asked_for_ever() {
    let world = World::new();
    let server = world.connect(&world.login()).await.unwrap();
    world.change(|state| state.needed = vec!["write".into()]);
    world.login.fault(Fault::Denied);
    world.log();
    let mut reply = Vec::new();
    for _ in 0..6 {
        reply.push(server.call_tool("t", ()).await.unwrap_err().to_string());
    }
    assert_eq!(logins(&world.log()).len(), 3);
    assert!(reply[2].contains("the login was refused: `access_denied`"), "{reply:#?}");
    assert!(reply[3].contains("403"), "{reply:#?}");
    // Something else may be asked for all the same.
    world.change(|state| state.needed = vec!["delete".into()]);
    world.login.clear_faults();
    server.call_tool("t", ()).await.unwrap();
}
