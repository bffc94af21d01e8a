//! A portal that answers, and with which there is no session: the status says why.

use hawser_config::PrivateKey;

use crate::lab::{Lab, write_private};

/// What the local portal's status and log say of a remote one that was given another key, or another preshared one.
#[test]
fn a_key_that_is_unknown_there_and_another_preshared_key_are_told_apart() {
    for (word, tag) in [("unknown_key", "unkey"), ("preshared_key", "unpsk")] {
        let lab = Lab::new(tag, "");
        let other = PrivateKey::generate().expect("randomness");
        let file = lab.path("remote.toml");
        let text = std::fs::read_to_string(&file).expect("a configuration");
        let text = if word == "unknown_key" {
            let line = text.lines().find(|line| line.starts_with("public_key")).expect("a key").to_owned();
            text.replace(&line, &format!("public_key = \"{}\"", other.public()))
        } else {
            write_private(&lab.path("shared.key"), &other.to_base64());
            text.replace("public_key = ", "preshared_key_file = \"shared.key\"\npublic_key = ")
        };
        write_private(&file, &text);
        let _remote = lab.start("remote");
        let local = lab.start("local");
        local.wait_for("the reason", |status| {
            status.peers.first().and_then(|peer| peer.refused.as_deref()) == Some(word)
        });
        assert!(local.log().contains(&format!("cause=\"{word}\"")), "{}", local.log());
    }
}
