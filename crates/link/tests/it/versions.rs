//! Two sides that can't speak say so, and which of them is too old.

use atoll_link::version::SPOKEN;
use atoll_link::{Hello, Side, Version, Versions, agree};

fn hello(side: Side, oldest: u16, newest: u16) -> Hello {
    Hello {
        side,
        speaks: Versions { oldest: Version(oldest), newest: Version(newest) },
        program: format!("atoll 0.{newest}.0"),
    }
}

#[test]
fn the_newest_version_that_both_know_is_spoken() {
    for (hub, member, want) in [((1, 1), (1, 1), 1), ((2, 5), (1, 3), 3), ((1, 3), (3, 9), 3)] {
        let (hub, member) = (hello(Side::Hub, hub.0, hub.1), hello(Side::Member, member.0, member.1));
        assert_eq!(agree(&hub, &member), Ok(Version(want)));
        assert_eq!(agree(&member, &hub), Ok(Version(want)));
    }
    assert_eq!(agree(&Hello::ours(Side::Hub), &Hello::ours(Side::Member)), Ok(SPOKEN.newest));
}

#[test]
fn a_version_that_cannot_be_spoken_is_said_in_words() {
    let (hub, member) = (hello(Side::Hub, 3, 4), hello(Side::Member, 1, 2));
    let want = "the member (atoll 0.2.0) speaks versions 1 to 2 of the link, the hub (atoll 0.4.0) speaks versions 3 to 4: \
                upgrade the member (atoll 0.2.0)";
    for (ours, theirs) in [(&hub, &member), (&member, &hub)] {
        assert_eq!(agree(ours, theirs).unwrap_err().to_string(), want);
    }
    let old_hub = agree(&hello(Side::Hub, 1, 1), &hello(Side::Member, 2, 2)).unwrap_err();
    assert!(old_hub.to_string().ends_with("upgrade the hub (atoll 0.1.0)"), "{old_hub}");
}

#[test]
fn a_hello_of_the_future_can_be_read() {
    let text = r#"{"side":"Member","speaks":{"oldest":7,"newest":9},"program":"atoll 9","features":["x"]}"#;
    let theirs: Hello = serde_json::from_str(text).unwrap();
    assert!(agree(&Hello::ours(Side::Hub), &theirs).unwrap_err().to_string().contains("upgrade the hub"));
}
