//! Makes the messages and the client of the daemon's service from proto/daemon.proto, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/daemon.proto");
    let files = protox::compile(["proto/daemon.proto"], ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(files)?;
    Ok(())
}
