//! Name resolution: once for each fetch, with a check of every address.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::address::NetworkKind;
use crate::error::FetchError;
use crate::hosts::Target;

/// A resolver of host names.
///
/// Its answers are not trusted: see [`NetworkKind`]. Each fetch asks once, and connects only to addresses in that answer. So
/// an answer that changes between the check and the connection has no effect.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Resolves `host` to addresses, best first. Dropping the future cancels the look-up.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's resolver, with its `hosts` file and search domains.
///
/// A look-up cannot be interrupted: a cancelled one holds a thread of the runtime's blocking pool until the system
/// gives up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = tokio::net::lookup_host((host, 0)).await?;
        Ok(addresses.map(|address| address.ip()).collect())
    }
}

/// The addresses to which `target` may be connected. If one of its addresses is closed to it, none is returned: a
/// hostile name's other addresses are not trusted either.
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
        let (what, mend) = match NetworkKind::from_address(address) {
            NetworkKind::Public => continue,
            NetworkKind::Private(_) if target.allow_private_addresses => continue,
            NetworkKind::Private(what) => (
                what,
                " unless the operator's HTTP rules say `allow_private_addresses` for it",
            ),
            NetworkKind::Never(what) => (what, ""),
        };
        // Only the operator may see the address, not the plugin.
        tracing::warn!(host, %address, what, "refused to connect a plugin to an address");
        return Err(FetchError::Denied(format!(
            "host `{host}` leads to {what}, which is closed{mend}"
        )));
    }
    Ok(addresses)
}
