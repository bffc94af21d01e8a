//! What one path knows of itself. The session owns these parts and composes them:
//!
//! 1. [`validation`]: is the far end where it says it is?
//! 2. [`sent`]: what is out there, what arrived, what is lost?
//! 3. [`received`], on [`ranges`] and [`replay`]: what came, and when is it acknowledged?
//! 4. [`rtt`] and [`oneway`]: how long does it take, there and back, and one way?
//! 5. [`health`]: may it carry traffic?
//! 6. [`pmtu`]: how large a datagram passes?
//! 7. [`quota`]: what may go while it is not active?
//! 8. [`trains`]: do datagrams arrive that leave as one train?
//!
//! None of them has a clock or allocates per packet once its buffers have grown.

pub mod constants;
pub mod ecn;
pub mod health;
pub mod loss_meter;
pub mod oneway;
pub mod pmtu;
pub mod quota;
pub mod ranges;
pub mod received;
pub mod replay;
pub mod rtt;
pub mod sent;
pub mod trains;
pub mod validation;
mod windowed;
