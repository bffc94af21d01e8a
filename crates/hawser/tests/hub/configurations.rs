//! The configurations of the portals: the home's, and its members'.

use std::path::Path;

use hawser_config::PrivateKey;

use crate::lab::write_private;
use crate::nat::INNER;
use crate::world::{HOME, OUTSIDE};

/// Into a folder, with keys. `nat`: the home has an inner address, and its public one is the members' to give.
pub fn write(folder: &Path, members: &[&str], nat: bool) {
    let key = |name: &str| {
        let key = PrivateKey::generate().expect("randomness");
        write_private(&folder.join(format!("{name}.key")), &key.to_base64());
        key.public()
    };
    let home = key("home");
    let portal = |name: &str| {
        let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
        let (socket, state) = (at(".sock"), at(".state"));
        format!("[portal]\nprivate_key_file = \"{name}.key\"\nsocket = \"{socket}\"\nstate_dir = \"{state}\"\n")
    };
    let own = if nat { INNER } else { HOME };
    let links = ["one", "two"].map(|name| format!("[[link]]\nname = \"{name}\"\ninterface = \"{name}\"\n")).concat();
    let others = members[1..].iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let mut text = format!("{}[tun]\naddresses = [\"{own}/32\"]\n{links}", portal("home"));
    for (at, name) in members.iter().enumerate() {
        let (key, endpoint) = (key(name), OUTSIDE[at]);
        text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [\"{endpoint}:4920\"]\n");
        if at == 0 {
            text += &format!("allowed_ips = [\"203.0.114.0/24\"]\nstandby = [{others}]\n");
        }
    }
    write_private(&folder.join("home.toml"), &text);
    let networks = if nat { format!("\"{INNER}/32\", \"{HOME}/32\"") } else { format!("\"{HOME}/32\"") };
    for name in members {
        let text = format!(
            "{}listen = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\n[[peer]]\nname = \"home\"\n\
             public_key = \"{home}\"\nallowed_ips = [{networks}]\n",
            portal(name)
        );
        write_private(&folder.join(format!("{name}.toml")), &text);
    }
}
