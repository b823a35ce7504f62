//! The answer to a probe that was given up.

use pintle_proto::client::{Mode, Opening, OpeningEvent, OpeningStep, Profile};
use serde_json::json;

const R4: &str = "2025-11-25";
const R5: &str = "2026-07-28";

#[test]
fn a_late_answer_to_the_probe_decides_until_the_handshake_is_answered() {
    let profile = Profile::new(r#"{"name":"t","version":"1"}"#.parse().unwrap(), "{}".parse().unwrap());
    let discovery = |revision: &str| {
        json!({"resultType": "complete", "supportedVersions": [revision], "capabilities": {}})
            .to_string()
            .parse()
            .unwrap()
    };
    let (mut opening, step) = Opening::new(profile.clone(), Mode::Auto, None);
    assert!(matches!(step, OpeningStep::Send { method: "server/discover", .. }));
    // It is not late yet.
    assert!(opening.late_discovery(&discovery(R5)).is_none());
    let step = opening.step(OpeningEvent::Silence);
    assert!(matches!(step, OpeningStep::Send { method: "initialize", .. }));
    // Only the stateless era makes the handshake superfluous.
    assert!(opening.late_discovery(&discovery(R4)).is_none());
    assert!(opening.late_discovery(&"{}".parse().unwrap()).is_none());
    let Some(OpeningStep::Ready(opened)) = opening.late_discovery(&discovery(R5)) else {
        panic!("it is ready")
    };
    assert_eq!(opened.revision.as_str(), R5);
    assert!(opening.late_discovery(&discovery(R5)).is_none());

    // What was refused before is not asked for by a later answer.
    let (mut opening, _) = Opening::new(profile, Mode::Auto, None);
    let refused = pintle_types::RpcError::method_not_found("server/discover");
    opening.step(OpeningEvent::Answer(Err(&refused)));
    assert!(opening.late_discovery(&discovery(R5)).is_none());
}
