//! Offloads of an interface, by the SIOCETHTOOL ioctl: no ethtool program is needed.
//!
//! 1. Ask the driver how many features it names (ETHTOOL_GSSET_INFO).
//! 2. Ask for the names (ETHTOOL_GSTRINGS).
//! 3. Set those that were asked for, in blocks of 32 bits (ETHTOOL_SFEATURES).

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::error::WireError;
use crate::namespace::Namespace;

/// Commands and sizes of the ioctl. Source: linux/ethtool.h.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;

/// Bits in a block of ETHTOOL_SFEATURES. Source: linux/ethtool.h, struct ethtool_set_features_block.
const BLOCK_BITS: usize = 32;

/// An offload by the kernel's name for it (as `ethtool -k` prints it, or near), and whether it is on.
pub type Feature = (&'static str, bool);

impl Namespace {
    /// Sets offloads of an interface.
    ///
    /// # Errors
    /// Where there is no such interface, or the driver does not know a feature.
    pub fn set_features(&self, interface: &str, features: &[Feature]) -> Result<(), WireError> {
        self.change_features(interface, |names| {
            let unknown = features.iter().find(|(name, _)| !names.iter().any(|known| known == name));
            if let Some(&(feature, _)) = unknown {
                let interface = interface.to_owned();
                return Err(WireError::NoFeature { interface, feature });
            }
            let wanted = |name: &String| features.iter().find(|(feature, _)| feature == name);
            Ok(names.iter().map(|name| wanted(name).map(|&(_, on)| on)).collect())
        })
    }

    /// Makes every packet its own, as on a real line, and coalesces on receipt: all TCP and UDP segmentation
    /// offloads off, GRO on. Which TCP segmentations there are differs between kernels.
    ///
    /// # Errors
    /// Where there is no such interface.
    pub fn set_plain_packets(&self, interface: &str) -> Result<(), WireError> {
        let wanted = |name: &String| match name.as_str() {
            "tx-generic-segmentation" | "tx-udp-segmentation" => Some(false),
            "rx-gro" => Some(true),
            other => (other.starts_with("tx-tcp") && other.ends_with("-segmentation")).then_some(false),
        };
        self.change_features(interface, |names| Ok(names.iter().map(wanted).collect()))
    }

    /// Sets those features for which `choose`, given all names, answers.
    fn change_features(
        &self,
        interface: &str,
        choose: impl FnOnce(&[String]) -> Result<Vec<Option<bool>>, WireError> + Send,
    ) -> Result<(), WireError> {
        let system = |error| WireError::system(format!("set offloads of {interface}"), error);
        self.run(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").map_err(system)?;
            let count = feature_count(&socket, interface).map_err(system)?;
            let names = feature_names(&socket, interface, count).map_err(system)?;
            let request = change_request(&choose(&names)?);
            ioctl(&socket, interface, request).map_err(system)?;
            Ok(())
        })?
    }
}

/// Step 1. Struct ethtool_sset_info: cmd, reserved, mask (64 bits), one count for the one bit of the mask.
fn feature_count(socket: &UdpSocket, interface: &str) -> io::Result<usize> {
    let answer = ioctl(socket, interface, vec![ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0])?;
    Ok(answer[4] as usize)
}

/// Step 2. Struct ethtool_gstrings: cmd, string set, length, then the names of 32 bytes each.
fn feature_names(socket: &UdpSocket, interface: &str, count: usize) -> io::Result<Vec<String>> {
    const HEADER_WORDS: usize = 3;
    let mut request = vec![0; HEADER_WORDS + count * ETH_GSTRING_LEN / size_of::<u32>()];
    request[0] = ETHTOOL_GSTRINGS;
    request[1] = ETH_SS_FEATURES;
    request[2] = u32::try_from(count).map_err(io::Error::other)?;
    let answer = ioctl(socket, interface, request)?;
    let bytes: Vec<u8> = answer[HEADER_WORDS..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |raw: &[u8]| {
        let end = raw.iter().position(|&byte| byte == 0).unwrap_or(raw.len());
        String::from_utf8_lossy(&raw[..end]).into_owned()
    };
    Ok(bytes.chunks(ETH_GSTRING_LEN).map(name).collect())
}

/// Step 3. Struct ethtool_sfeatures: cmd, number of blocks, then a pair of words (valid, requested) a block.
fn change_request(wanted: &[Option<bool>]) -> Vec<u32> {
    let blocks = wanted.chunks(BLOCK_BITS);
    let mut request = vec![ETHTOOL_SFEATURES, u32::try_from(blocks.len()).unwrap_or(u32::MAX)];
    for block in blocks {
        let bits = |chosen: fn(Option<bool>) -> bool| {
            let bit = |(bit, &wanted)| u32::from(chosen(wanted)) << bit;
            block.iter().enumerate().map(bit).sum::<u32>()
        };
        request.push(bits(|wanted| wanted.is_some()));
        request.push(bits(|wanted| wanted == Some(true)));
    }
    request
}

/// Sends words to the driver and returns what it wrote over them.
fn ioctl(socket: &UdpSocket, interface: &str, mut words: Vec<u32>) -> io::Result<Vec<u32>> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: ifreq is plain data for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: request and the words it points to live through the call; each caller sized its words
    // after the struct of its command, so that the kernel writes within them.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(words) }
}
