//! SCION networks of the reference services. Needs root, and go to build the services once (`make scion`).

mod networks;
mod strict;
