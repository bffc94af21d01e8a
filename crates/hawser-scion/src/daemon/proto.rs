//! What Hawser asks of a SCION daemon, and no more: messages and calls of `proto.daemon.v1.DaemonService`.
//!
//! Names and numbers are those of proto/daemon/v1/daemon.proto of the reference implementation (v0.15.1); fields that
//! are not read here are left out, as protobuf allows. Written by hand: so nobody's build needs a compiler of protobuf.

use std::collections::HashMap;

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// A request, by which call of the service it is made, and what it is answered with.
pub trait Call: Message + Clone + 'static {
    type Answer: Message + Default + 'static;
    const METHOD: &'static str;
}

/// Makes a call, over a connection that is made anew where it was lost.
pub(super) async fn call<C: Call>(channel: Channel, asked: C) -> Result<C::Answer, Status> {
    let mut calls = Grpc::new(channel);
    calls.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let codec = ProstCodec::<C, C::Answer>::default();
    Ok(calls.unary(Request::new(asked), PathAndQuery::from_static(C::METHOD), codec).await?.into_inner())
}

macro_rules! calls {
    ($($request:ty => $answer:ty: $method:literal,)*) => {$(
        impl Call for $request {
            type Answer = $answer;
            const METHOD: &'static str = concat!("/proto.daemon.v1.DaemonService/", $method);
        }
    )*};
}

calls! {
    PathsRequest => PathsResponse: "Paths",
    AsRequest => AsResponse: "AS",
    InterfacesRequest => InterfacesResponse: "Interfaces",
    NotifyInterfaceDownRequest => NotifyInterfaceDownResponse: "NotifyInterfaceDown",
    PortRangeRequest => PortRangeResponse: "PortRange",
}

#[derive(Clone, PartialEq, Message)]
pub struct PathsRequest {
    /// 0: the daemon's own AS.
    #[prost(uint64, tag = "1")]
    pub source_isd_as: u64,
    #[prost(uint64, tag = "2")]
    pub destination_isd_as: u64,
    /// Ask the control service again, whatever is cached.
    #[prost(bool, tag = "3")]
    pub refresh: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct PathsResponse {
    #[prost(message, repeated, tag = "1")]
    pub paths: Vec<Path>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Path {
    #[prost(bytes = "vec", tag = "1")]
    pub raw: Vec<u8>,
    /// The border router to hand packets to.
    #[prost(message, optional, tag = "2")]
    pub interface: Option<Interface>,
    #[prost(message, repeated, tag = "3")]
    pub interfaces: Vec<PathInterface>,
    #[prost(uint32, tag = "4")]
    pub mtu: u32,
    #[prost(message, optional, tag = "5")]
    pub expiration: Option<prost_types::Timestamp>,
    /// Between each interface and the next; negative: not announced.
    #[prost(message, repeated, tag = "6")]
    pub latency: Vec<prost_types::Duration>,
    /// In kbit/s, between each interface and the next; 0: not announced.
    #[prost(uint64, repeated, tag = "7")]
    pub bandwidth: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PathInterface {
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    #[prost(uint64, tag = "2")]
    pub id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct AsRequest {
    /// 0: the daemon's own AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct AsResponse {
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    #[prost(bool, tag = "2")]
    pub core: bool,
    #[prost(uint32, tag = "3")]
    pub mtu: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct InterfacesRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct InterfacesResponse {
    #[prost(map = "uint64, message", tag = "1")]
    pub interfaces: HashMap<u64, Interface>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Interface {
    #[prost(message, optional, tag = "1")]
    pub address: Option<Underlay>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Underlay {
    /// IP:port.
    #[prost(string, tag = "1")]
    pub address: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct NotifyInterfaceDownRequest {
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    #[prost(uint64, tag = "2")]
    pub id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct NotifyInterfaceDownResponse {}

/// `google.protobuf.Empty`.
#[derive(Clone, PartialEq, Message)]
pub struct PortRangeRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct PortRangeResponse {
    #[prost(uint32, tag = "1")]
    pub dispatched_port_start: u32,
    #[prost(uint32, tag = "2")]
    pub dispatched_port_end: u32,
}
