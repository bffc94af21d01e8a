//! In the place of `web` where this program was built without it: there is no page.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::api::{Answers, FlowQuestions, Orders, WebStatus};

/// Never listened on.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4921);

/// There is none.
#[derive(Debug)]
pub enum Web {}

/// Why.
#[derive(Debug, thiserror::Error)]
#[error("a page is not supported in this version")]
pub struct WebError;

impl Web {
    /// Refused.
    pub fn open(_: SocketAddr, _: Arc<dyn Answers>, _: Orders, _: FlowQuestions) -> Result<Self, WebError> {
        Err(WebError)
    }

    /// Never called.
    pub fn link(&self) -> String {
        match *self {}
    }

    /// Never called.
    pub fn status(&self) -> WebStatus {
        match *self {}
    }
}
