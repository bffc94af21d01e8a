//! wireguard-go (placeholder for build order).
