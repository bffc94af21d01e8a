//! `hawser decode`: the inner packets of captured tunnel traffic.
//!
//! 1. The key log and the capture are opened. 2. Inner packets go out as a capture, or datagrams as lines of JSON.
//! 3. What was found is counted on standard error, also where the capture ends too early.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use hawser_decode::{
    DEFAULT_PORT, DEFAULT_PROTOCOL, DecodeError, KeyError, Keys, Marks, PcapWriter, Sighting, Sink, json,
};
use zeroize::Zeroizing;

use crate::failure::Failure;

/// The name that stands for standard input or output.
const STANDARD: &str = "-";

/// Read captured tunnel traffic with the keys of a key log
///
/// Writes the inner packets as a capture (pcap of raw IP packets), each once, with its checksums complete.
#[derive(Debug, Args)]
pub struct Decode {
    /// The capture: pcap or pcapng; `-` reads standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The key log that a portal wrote (`keylog` in its configuration)
    #[arg(long, value_name = "FILE")]
    keylog: PathBuf,
    /// Where the inner packets go [default: standard output; with --json nowhere]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Print each datagram, with its frames, as a line of JSON
    #[arg(long)]
    json: bool,
    /// The port that a portal listens on: tells Hawser's traffic where no key does
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    port: u16,
    /// The number of the bare IP protocol
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_PROTOCOL)]
    protocol: u8,
}

/// Where things go. Nothing is written at first; used by one thread.
struct Outputs {
    inner: Option<PcapWriter<Box<dyn Write>>>,
    listing: Option<BufWriter<io::Stdout>>,
}

impl Decode {
    /// Reads the capture to its end.
    pub fn run(self) -> Result<(), Failure> {
        let text = fs::read_to_string(&self.keylog).map(Zeroizing::new);
        let text = text.map_err(|error| Failure::wrong(format!("read key log {}: {error}", self.keylog.display())))?;
        let keys = Keys::read(&text).map_err(|error| bad_key_log(&self.keylog, error))?;
        drop(text);
        let capture: Box<dyn Read + Send> = if self.capture == Path::new(STANDARD) {
            Box::new(io::stdin())
        } else {
            let opened = File::open(&self.capture);
            Box::new(opened.map_err(|e| Failure::wrong(format!("open capture {}: {e}", self.capture.display())))?)
        };
        let mut outputs = Outputs { inner: self.inner()?, listing: self.json.then(|| BufWriter::new(io::stdout())) };
        let marks = Marks { port: self.port, protocol: self.protocol };
        let (summary, result) = hawser_decode::decode(capture, keys, marks, &mut outputs);
        let finished = outputs.finish().map_err(DecodeError::Write);
        let result = result.and(finished);
        if let Err(DecodeError::Write(error)) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // Whoever reads only the beginning (`| head`) has what they wanted.
            return Ok(());
        }
        eprint!("{summary}");
        result.map_err(told)
    }

    /// Where the inner packets go.
    fn inner(&self) -> Result<Option<PcapWriter<Box<dyn Write>>>, Failure> {
        let out: Box<dyn Write> = match &self.output {
            None if self.json => return Ok(None),
            Some(path) if path != Path::new(STANDARD) => {
                let made = File::create(path);
                Box::new(BufWriter::new(
                    made.map_err(|error| Failure::failed(format!("make {}: {error}", path.display())))?,
                ))
            }
            _ if self.json => {
                return Err(Failure::wrong("inner packets and --json cannot both go to standard output")
                    .hint("name a file for the inner packets: -o inner.pcap"));
            }
            _ if io::stdout().is_terminal() => {
                return Err(Failure::wrong("inner packets are not written to a terminal")
                    .hint("name a file: -o inner.pcap; or: | tshark -r -"));
            }
            _ => Box::new(BufWriter::new(io::stdout())),
        };
        let begun = PcapWriter::new(out);
        begun.map(Some).map_err(|error| Failure::failed(format!("write inner packets: {error}")))
    }
}

impl Sink for Outputs {
    fn datagram(&mut self, sighting: &Sighting<'_>) -> io::Result<()> {
        self.listing.as_mut().map_or(Ok(()), |out| writeln!(out, "{}", json::line(sighting)))
    }

    fn inner(&mut self, time: u64, packet: &[u8]) -> io::Result<()> {
        self.inner.as_mut().map_or(Ok(()), |out| out.packet(time, packet))
    }
}

impl Outputs {
    fn finish(&mut self) -> io::Result<()> {
        self.inner.as_mut().map_or(Ok(()), PcapWriter::flush)?;
        self.listing.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn bad_key_log(path: &Path, error: KeyError) -> Failure {
    let hint = format!("{} must be what a portal with `[portal] keylog` wrote", path.display());
    Failure::wrong(error).hint(hint)
}

fn told(error: DecodeError) -> Failure {
    let hint = match &error {
        DecodeError::NoKey(_) => {
            Some("the key log must be of one of the two portals, and of the time of the capture: keys live two minutes")
        }
        DecodeError::NoDatagram(_) => {
            Some("was it captured on a link, not on the tunnel's device? another port: --port")
        }
        DecodeError::CutShort(_) => Some("what was before it was written; end tcpdump with SIGINT, not SIGKILL"),
        _ => None,
    };
    Failure::hinted(hint, error)
}
