//! Step 1: the configuration, its keys, and whether a portal runs by it.

use std::path::Path;

use hawser_config::{Config, LoadError};
use hawser_portal::api::{Client, ClientError, Status};
use hawser_portal::keys::Keys;

use super::finding::Finding;
use crate::failure::with_causes;

/// The configuration, where it can be read; what is wrong with it, or its keys.
pub fn configuration(file: &Path, findings: &mut Vec<Finding>) -> Option<Config> {
    let (config, text) = match hawser_config::read(file) {
        Ok(read) => read,
        Err(error) => {
            findings.push(unread(file, &error));
            return None;
        }
    };
    if let Err(error) = Keys::load(&config, file, &text) {
        let cure = match &error {
            LoadError::Key(key) => key.hint(),
            _ => format!("hawser check -c {}", file.display()),
        };
        findings.push(Finding::fault("key", file.display(), with_causes(&error), cure));
    }
    Some(config)
}

fn unread(file: &Path, error: &LoadError) -> Finding {
    let missing = matches!(error, LoadError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    let cure = if missing {
        "join a portal: sudo hawser join TOKEN; or name the configuration: hawser doctor -c FILE".to_owned()
    } else {
        format!("hawser check -c {}", file.display())
    };
    Finding::fault("configuration", file.display(), with_causes(error), cure)
}

/// What the running portal says, where one does.
pub fn status(config: &Config, findings: &mut Vec<Finding>) -> Option<Status> {
    let socket = &config.portal.socket;
    match Client::status(socket) {
        Ok(status) => {
            let ours = env!("CARGO_PKG_VERSION");
            if status.version != ours {
                let text = format!("the portal that runs is of version {}, this program of {ours}", status.version);
                findings.push(Finding::notice("old-program", "", text, "sudo systemctl restart hawser"));
            }
            Some(status)
        }
        Err(error) => {
            let (id, cure) = match &error {
                ClientError::NotRunning { .. } => {
                    ("not-running", "sudo systemctl start hawser; why it ended: journalctl -u hawser".to_owned())
                }
                _ => ("no-answer", "sudo systemctl restart hawser".to_owned()),
            };
            findings.push(Finding::fault(id, socket.display(), with_causes(&error), cure));
            None
        }
    }
}
