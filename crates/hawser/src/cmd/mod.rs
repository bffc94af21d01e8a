//! The commands, one file each.

mod check;
#[cfg(feature = "decode")]
mod decode;
#[cfg(feature = "lab")]
mod demo;
mod doctor;
mod genkey;
mod hub;
mod join;
mod kill_switch;
#[cfg(feature = "lab")]
mod lab;
mod leave;
mod output;
#[cfg(feature = "pages")]
mod pages;
mod pairing;
mod peer;
mod ping;
mod pubkey;
#[cfg(feature = "scion")]
mod scion;
mod serve;
mod shim;
mod speed;
mod status;
mod table;
#[cfg(feature = "top")]
mod top;
mod up;
#[cfg(feature = "web")]
mod web;
mod world;

use clap::Subcommand;

use crate::failure::Failure;

/// What `hawser` can be told to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make this host a portal that others join, and print a token for the first
    Serve(serve::Serve),
    /// Join the portal that printed a token, by every uplink of this host
    Join(join::Join),
    /// Undo `hawser join`: end the portal, and remove its key and configuration
    Leave(leave::Leave),
    /// Peers of this portal, and tokens for new ones
    Peer(peer::Peer),
    /// A hub's member: whose peers are its own, and moving them to the other member
    Hub(hub::Hub),
    /// Run a portal in the foreground
    Up(up::Up),
    /// Close or open the way past the tunnel, by which traffic leaves while there is none
    KillSwitch(kill_switch::KillSwitch),
    /// Print a new private key
    Genkey(genkey::Genkey),
    /// Print the public key of the private key on standard input
    Pubkey(pubkey::Pubkey),
    /// Check a configuration and change nothing
    Check(check::Check),
    /// Show the peers and paths of the running portal
    Status(status::Status),
    /// Show links, paths, the largest flows and events of the running portal, live
    #[cfg(feature = "top")]
    Top(top::Top),
    /// Print a link to the page that shows the running portal
    #[cfg(feature = "web")]
    Web(web::Web),
    /// Find what is wrong with this portal, its links and its peers, and what mends it
    Doctor(doctor::Doctor),
    /// Load the links to a peer for some seconds, and show what each and the bond carry, and what limits them
    Speed(speed::Speed),
    /// Read captured tunnel traffic with the keys of a key log
    #[cfg(feature = "decode")]
    Decode(decode::Decode),
    /// Unmodified TCP and UDP applications over many paths
    Shim(shim::Shim),
    /// Show what bonding does, in network namespaces of its own (needs root)
    #[cfg(feature = "lab")]
    Demo(demo::Demo),
    /// Compare ways to use several links, on emulated networks
    #[cfg(feature = "lab")]
    Lab(lab::Lab),
    /// SCION: paths, file transfer, the dispatcher bypass, test networks, measurements
    #[cfg(feature = "scion")]
    Scion(scion::Scion),
    // Hidden: whoever makes a package looks for it, and nobody else.
    #[cfg(feature = "pages")]
    #[command(hide = true)]
    Pages(pages::Pages),
}

impl Command {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Serve(serve) => serve.run(),
            Self::Join(join) => join.run(),
            Self::Leave(leave) => leave.run(),
            Self::Peer(peer) => peer.run(),
            Self::Hub(hub) => hub.run(),
            Self::Up(up) => up.run(),
            Self::KillSwitch(kill_switch) => kill_switch.run(),
            Self::Genkey(genkey) => genkey.run(),
            Self::Pubkey(pubkey) => pubkey.run(),
            Self::Check(check) => check.run(),
            Self::Status(status) => status.run(),
            #[cfg(feature = "top")]
            Self::Top(top) => top.run(),
            #[cfg(feature = "web")]
            Self::Web(web) => web.run(),
            Self::Doctor(doctor) => doctor.run(),
            Self::Speed(speed) => speed.run(),
            #[cfg(feature = "decode")]
            Self::Decode(decode) => decode.run(),
            Self::Shim(shim) => shim.run(),
            #[cfg(feature = "lab")]
            Self::Demo(demo) => demo.run(),
            #[cfg(feature = "lab")]
            Self::Lab(lab) => lab.run(),
            #[cfg(feature = "scion")]
            Self::Scion(scion) => scion.run(),
            #[cfg(feature = "pages")]
            Self::Pages(pages) => pages.run(),
        }
    }
}
