//! Name resolution: once for each fetch, with every address checked.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::address::Reach;
use crate::error::FetchError;
use crate::hosts::Target;

/// Resolver of host names.
///
/// What it answers is not trusted: see [`Reach`]. Each fetch asks once and connects to nothing but
/// what was answered then, so that an answer which changes between a check and its use changes
/// nothing.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of `host`, best first. Dropping the future gives the look-up up.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's resolver, with its `hosts` file and its search domains.
///
/// It has no way to be interrupted: a look-up that is given up holds a thread of the runtime's
/// blocking pool until the system's own patience ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = tokio::net::lookup_host((host, 0)).await?;
        Ok(addresses.map(|address| address.ip()).collect())
    }
}

/// The addresses that `target` may be connected at: all of its addresses, or none if one of them
/// is closed to it. Half an answer of a hostile name is not trusted either.
pub(crate) async fn checked_addresses(
    resolver: &dyn Resolve,
    target: &Target,
) -> Result<Vec<IpAddr>, FetchError> {
    let host = &target.host;
    let addresses = match target.address {
        Some(address) => vec![address],
        None => resolver.resolve(host).await.map_err(|error| {
            tracing::debug!(host, %error, "a name cannot be resolved");
            FetchError::Unavailable(format!("the name `{host}` cannot be resolved"))
        })?,
    };
    if addresses.is_empty() {
        return Err(FetchError::Unavailable(format!(
            "the name `{host}` has no address"
        )));
    }
    for &address in &addresses {
        let (what, mend) = match Reach::from_address(address) {
            Reach::Public => continue,
            Reach::Private(_) if target.allow_private_addresses => continue,
            Reach::Private(what) => (
                what,
                " unless the operator's HTTP rules say `allow_private_addresses` for it",
            ),
            Reach::Never(what) => (what, ""),
        };
        // The address is the operator's to know, not the plugin's.
        tracing::warn!(host, %address, what, "refused to connect a plugin to an address");
        return Err(FetchError::Denied(format!(
            "host `{host}` leads to {what}, which is closed{mend}"
        )));
    }
    Ok(addresses)
}
