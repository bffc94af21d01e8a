//! Tokens and ports that are wrong: a sentence says so, with its cure, and nothing is left behind.

use hawser_config::PrivateKey;

use super::*;
use crate::footprint::Footprint;

/// A token with something else in it, as a server would have printed it.
fn other(token: &str, change: impl FnOnce(&mut Token)) -> String {
    let mut token: Token = token.parse().expect("a token");
    change(&mut token);
    token.to_string()
}

#[test]
fn wrong_tokens_and_ports_are_told_in_a_sentence_with_its_cure_and_leave_nothing() {
    let scene = Scene::new("wrong");
    let Home { local, remote, world, .. } = &scene.home;
    let right = scene.serve();
    let taken_back = token(&scene.done(remote, "hub", "peer add cabin"));
    scene.done(remote, "hub", "peer remove cabin");
    let used = token(&scene.done(remote, "hub", "peer add boat"));
    let first = scene.hawser(world, "other", &format!("join {used} --no-default-route"));
    assert_eq!(first.status, Some(0), "{}", first.err);
    let stranger = PrivateKey::generate().expect("randomness").public();
    let middle = right.len() / 2;
    let altered = if right.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let altered = format!("{}{altered}{}", &right[..middle], &right[middle + 1..]);
    let silent = "the token was used or taken back, it is of another server than answers there, or that port is closed";
    let table = [
        ("altered", altered, 2, "it was altered, or is not whole", "copy all of it"),
        ("expired", other(&right, |token| token.expires = 1), 2, "it expired", "sudo hawser peer add home"),
        ("no token", "hello".to_owned(), 2, "a token begins with `hwr1:`", "as the server printed it"),
        ("used", used, 1, silent, "sudo hawser peer add boat"),
        ("taken back", taken_back, 1, silent, "sudo hawser peer list"),
        ("of another server", other(&right, |token| token.public_key = stranger), 1, silent, "sudo hawser peer list"),
        (
            "wrong port",
            other(&right, |token| token.endpoints.iter_mut().for_each(|endpoint| endpoint.port += 1)),
            1,
            "nothing listens there (udp)",
            "sudo hawser status",
        ),
    ];
    let before = Footprint::of(local);
    thread::scope(|scope| {
        for (what, token, status, sentence, cure) in &table {
            let scene = &scene;
            scope.spawn(move || {
                let said = scene.hawser(local, &what.replace(' ', "-"), &format!("join {token}"));
                assert_eq!(said.status, Some(*status), "{what}: {}", said.err);
                assert!(said.err.contains(sentence) && said.err.contains(cure), "{what}: {}", said.err);
                assert!(said.took < Duration::from_secs(20), "{what}: {:?}", said.took);
                assert!(!scene.file(&what.replace(' ', "-")).parent().expect("a folder").exists(), "{what}");
            });
        }
    });
    before.assert_same(local, "after wrong tokens");
    // None of that has used up the right one.
    assert_eq!(scene.join(&right, "").status, Some(0));
}
