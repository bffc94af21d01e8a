//! Whether each subflow of MPTCP has the congestion control that was asked for, by what the kernel tells `ss`.

use hawser_wire::Namespace;

use super::{Congestion, LabError};

/// Looks at all established connections of a server's port, from one end.
///
/// # Errors
/// Where one has another congestion control, or `ss` cannot be had.
pub(super) fn check_congestion(end: &Namespace, port: u16, congestion: Congestion) -> Result<(), LabError> {
    let filter = format!("( sport = :{port} or dport = :{port} )");
    let arguments = ["--no-header", "--oneline", "--tcp", "--info", "--numeric", "state", "established", &filter];
    let missing = ["the program ss", "install the package iproute2"];
    let asked = end.command("ss").args(arguments).output();
    let output = asked.map_err(|error| LabError::program("ask ss for subflows", error, missing))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let Some(line) = stranger(&said, congestion) else { return Ok(()) };
    let reason = format!("a subflow has another than {}: {line}", congestion.name());
    Err(LabError::NoFigure { figure: "congestion control", reason })
}

/// The line of a connection with another congestion control.
fn stranger(said: &str, congestion: Congestion) -> Option<&str> {
    said.lines().find(|line| !line.split_whitespace().any(|word| word == congestion.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_with_another_congestion_control_is_found() {
        let cubic = "0 0 10.0.0.1:5 10.0.0.2:6 tcp-ulp-mptcp flags:Mmec cubic wscale:7,7 rto:204";
        let bbr = "0 0 10.0.1.1:5 10.0.0.2:6 tcp-ulp-mptcp flags:Jjec bbr wscale:7,7 bbr:(bw:1Mbps)";
        let both = format!("{cubic}\n{bbr}\n");
        assert_eq!(stranger(cubic, Congestion::Cubic), None);
        assert_eq!(stranger(&both, Congestion::Cubic), Some(bbr));
        assert_eq!(stranger(&both, Congestion::Bbr), Some(cubic));
        assert_eq!(stranger("", Congestion::Bbr), None, "a stream that is over has no connections");
    }
}
