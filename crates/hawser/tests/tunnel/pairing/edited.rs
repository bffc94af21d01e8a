//! Files that somebody edited: no command takes what is not its own, and no token is used up for nothing.

use std::fs;
use std::path::Path;

use hawser_config::PrivateKey;

use super::*;

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

impl Scene {
    /// A file beside the hub's configuration.
    fn beside(&self, folder: &str, name: &str) -> PathBuf {
        self.file("hub").with_file_name(folder).join(format!("{name}.toml"))
    }

    /// A command of the hub's user that is refused, and says these things.
    fn refused(&self, words: &str, status: i32, why: &[&str]) {
        let said = self.hawser(&self.home.remote, "hub", words);
        assert_eq!(said.status, Some(status), "{words}: {}", said.err);
        why.iter().for_each(|why| assert!(said.err.contains(why), "{words}: {}", said.err));
    }
}

fn key() -> String {
    PrivateKey::generate().expect("randomness").public().to_string()
}

#[test]
fn a_file_that_was_edited_is_not_replaced_and_a_token_is_taken_back_whatever_is_wrong() {
    let scene = Scene::new("edited");
    let remote = &scene.home.remote;
    scene.serve();
    let [shed, cabin] = ["shed", "cabin"].map(|name| scene.beside("peers.d", name));
    let add = |name: &str, host: u8| format!("peer add {name} --key {} --allowed-ip 10.77.0.{host}/32", key());
    let add_cabin = add("cabin", 10);
    scene.done(remote, "hub", &add("shed", 9));
    scene.done(remote, "hub", &add_cabin);
    // The second file is of a third peer by now.
    let (before, barn) = (read(&shed), read(&cabin).replace("\"cabin\"", "\"barn\""));
    fs::write(&cabin, &barn).expect("it is written");
    scene.refused("peer rename shed cabin", 2, &["another peer is in", "cabin.toml", "hint: take another name"]);
    assert_eq!([read(&shed), read(&cabin)], [before, barn.clone()]);
    assert!(scene.done(remote, "hub", "peer list").out.contains("barn"), "it is a peer still");
    // And then of none: its key is there still, in a comment.
    let nobody: String = barn.lines().map(|line| format!("# {line}\n")).collect();
    fs::write(&cabin, &nobody).expect("it is written");
    scene.refused(&add_cabin, 1, &["cabin.toml", "it was edited: another peer is in it, or none"]);
    assert_eq!(read(&cabin), nobody);
    fs::remove_file(&cabin).expect("it is there");
    scene.done(remote, "hub", &add_cabin);
    assert!(scene.done(remote, "hub", "peer list").out.contains("cabin"));
    // What is wrong with the configuration keeps no token out.
    let (file, token) = (scene.file("hub"), scene.beside("tokens.d", "home"));
    let text = read(&file);
    assert!(token.exists());
    fs::write(&file, format!("{text}\n[nonsense]\n")).expect("it is written");
    scene.refused("peer remove home", 2, &["unknown section", "hint: the token is taken back all the same"]);
    assert!(!token.exists());
    fs::write(&file, text).expect("it is written");
    scene.refused("peer remove home", 2, &["there is no such peer or token"]);
}

/// A hub of two members, the first with this network.
fn hub_of(network: &str) -> String {
    let member = |name: &str, more: &str| format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\n{more}\n", key());
    member("zurich", &format!("allowed_ips = [\"{network}\"]\nstandby = \"geneva\"")) + &member("geneva", "")
}

#[test]
fn who_enrols_comes_in_although_a_change_of_hubs_waits_for_a_restart() {
    let scene = Scene::new("beside");
    let token = scene.serve();
    let text = read(&scene.file("hub"));
    fs::write(scene.file("hub"), format!("{text}\n{}", hub_of("10.9.0.0/16"))).expect("it is written");
    let said = scene.join(&token, "");
    assert_eq!(said.status, Some(0), "{}", said.err);
}

#[test]
fn a_token_whose_peer_would_wait_for_a_restart_is_as_good_as_before() {
    let scene = Scene::new("waits");
    let remote = &scene.home.remote;
    let token = scene.serve();
    let (file, out, peer) = (scene.file("hub"), scene.beside("tokens.d", "home"), scene.beside("peers.d", "home"));
    // The running portal has the peer's address for a member of a hub that went from the file since.
    let text = read(&file);
    scene.end("hub");
    fs::write(&file, format!("{text}\n{}", hub_of("10.77.0.2/32"))).expect("it is written");
    scene.done(remote, "hub", "serve --name shed");
    fs::write(&file, &text).expect("it is written");
    let said = scene.join(&token, "");
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("no answer"), "nobody is told that it is a peer: {}", said.err);
    assert!(out.exists() && !peer.exists());
    scene.end("hub");
    scene.done(remote, "hub", "serve --name cabin");
    let said = scene.join(&token, "");
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(!out.exists() && peer.exists());
}
