//! How a portal comes to know another without an editor: tokens, what is kept of them, and the call that uses one.
//!
//! 1. The portal that is called keeps an [`Invitation`] in `tokens.d/NAME.toml`, and its user gives the [`Token`] to
//!    another.
//! 2. That one enrols by it ([`enrol`]): the handshake of `hawser_core::handshake::enrolment`, and no data.
//! 3. The first portal writes `peers.d/NAME.toml` ([`add_peer`]), forgets the invitation, and reads its configuration
//!    again. A member of a hub whose peers are in etcd writes it there.
//!
//! Files are the truth, and all of it: what commands write, an editor may write too.

mod addresses;
mod enrol;
mod files;
mod invitation;
mod peers;
mod token;

pub use addresses::{NoRoom, Turn, inner_addresses};
pub use enrol::{EnrolError, Uplink, enrol};
pub use files::{FileError, make_folder, remove_file, write_private};
pub use invitation::{Invitation, InvitationError, Invitations, TOKENS_FOLDER};
pub use peers::{add_peer, peer_file};
pub use token::{Endpoint, Host, Hub, HubError, MEMBERS_MAX, Member, Share, TOKEN_PREFIX, Token, TokenError};
