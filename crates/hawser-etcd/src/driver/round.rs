//! A round with etcd (step 2): the member's lease lasts on, or a new one is taken; at the least etcd has answered.

use std::time::Duration;

use hawser_config::PublicKey;
use hawser_core::units::Time;

use crate::client::{Client, Fault, LeaseId, Registered, Write};
use crate::keys::MemberName;
use crate::namesake::Namesake;

/// What is written with a lease, and for whom. Owned data.
pub struct Registration {
    pub name: MemberName,
    pub key: PublicKey,
    pub lease: Duration,
    pub writes: Vec<Write>,
}

/// A round that succeeded.
pub struct Round {
    /// What etcd had then is known once the watch has answered.
    pub begun: Time,
    pub lease: Option<LeaseId>,
    pub outcome: Outcome,
}

/// What came of writing the member.
pub enum Outcome {
    /// It was there.
    Renewed,
    /// It is there now.
    Written,
    /// Somebody else has its name.
    Taken(Namesake),
    /// It is not: etcd may be full, or refuse this user. What it tells is good all the same.
    Refused(Fault),
}

/// `is_own`: the member is in etcd, as far as is known. It may have been deleted, or an older program may have written
/// over it.
pub async fn round(
    client: Client,
    lease: Option<LeaseId>,
    is_own: bool,
    Registration { name, key, lease: length, writes }: Registration,
    begun: Time,
) -> Result<Round, Fault> {
    if let Some(lease) = lease.filter(|_| is_own) {
        // A server whose disk hangs has the leader renew, which asks nobody: a read shows that it has all that is there.
        let (left, _) = tokio::try_join!(client.keep_alive(lease), client.now())?;
        if !left.is_zero() {
            return Ok(Round { begun, lease: Some(lease), outcome: Outcome::Renewed });
        }
    }
    // One that is over is none.
    let old = lease.filter(|_| !is_own);
    let registered = match client.register(&name, &key, length, writes).await {
        Err(fault) => {
            client.now().await?;
            return Ok(Round { begun, lease: old, outcome: Outcome::Refused(fault) });
        }
        Ok(registered) => registered,
    };
    if let Some(old) = old {
        // After the new one, so that nobody takes the member for gone; it ends by itself, too.
        let _ = client.leave(old).await;
    }
    Ok(match registered {
        Registered::As(lease) => Round { begun, lease: Some(lease), outcome: Outcome::Written },
        Registered::Taken(namesake) => Round { begun, lease: None, outcome: Outcome::Taken(namesake) },
    })
}
