//! The addresses that a name may lead to.
//!
//! A name in the rules is only a promise: the owner of its DNS zone can point it at this machine, at its neighbours or
//! at a cloud's metadata. So every address is looked up here, and an address that is not known to be public is treated
//! as not public. The tables follow the IANA special-purpose address registries for IPv4 and IPv6, as of 2026.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkKind {
    /// The internet.
    Public,
    /// This machine or a network of its owner. Only hosts with `allow_private_addresses` may lead there. The text
    /// describes it, for example `a loopback address`.
    Private(&'static str),
    /// Always closed: an address without a server for plugins, or with credentials of the machine.
    Never(&'static str),
}

use NetworkKind::{Never, Private};

const METADATA: NetworkKind = Never("a cloud's metadata address");
const DOCUMENTATION: NetworkKind = Never("a documentation address");

/// Network, length of its prefix, and kind. The first network that contains an address decides.
const V4: &[([u8; 4], u32, NetworkKind)] = &[
    // Metadata services within networks that may be opened, or that are public.
    ([100, 100, 100, 200], 32, METADATA),
    ([168, 63, 129, 16], 32, METADATA),
    ([0, 0, 0, 0], 8, Never("an address of no host")),
    ([10, 0, 0, 0], 8, Private("a private address")),
    ([100, 64, 0, 0], 10, Private("a carrier's private address")),
    ([127, 0, 0, 0], 8, Private("a loopback address")),
    // It includes 169.254.169.254, where most clouds have their metadata.
    ([169, 254, 0, 0], 16, Never("a link-local address")),
    ([172, 16, 0, 0], 12, Private("a private address")),
    ([192, 0, 0, 0], 24, Never("an address of IETF protocols")),
    ([192, 0, 2, 0], 24, DOCUMENTATION),
    ([192, 88, 99, 0], 24, Never("a 6to4 relay")),
    ([192, 168, 0, 0], 16, Private("a private address")),
    ([198, 18, 0, 0], 15, Never("a benchmark address")),
    ([198, 51, 100, 0], 24, DOCUMENTATION),
    ([203, 0, 113, 0], 24, DOCUMENTATION),
    ([224, 0, 0, 0], 4, Never("a multicast address")),
    // It includes 255.255.255.255, the broadcast address.
    ([240, 0, 0, 0], 4, Never("a reserved address")),
];

/// Like [`V4`]. Addresses that only carry an IPv4 address are handled before, by [`embedded`].
const V6: &[([u16; 8], u32, NetworkKind)] = &[
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, METADATA),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, METADATA),
    ([0; 8], 128, Never("an address of no host")),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Private("a loopback address")),
    ([0; 8], 96, Never("an IPv4-compatible address")),
    (
        [0x64, 0xff9b, 1, 0, 0, 0, 0, 0],
        48,
        Never("a local translation (NAT64) address"),
    ),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Never("a Teredo address")),
    (
        [0x2001, 0, 0, 0, 0, 0, 0, 0],
        23,
        Never("an address of IETF protocols"),
    ),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, DOCUMENTATION),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Never("a 6to4 address")),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, DOCUMENTATION),
    (
        [0xfc00, 0, 0, 0, 0, 0, 0, 0],
        7,
        Private("a unique-local address"),
    ),
    (
        [0xfe80, 0, 0, 0, 0, 0, 0, 0],
        10,
        Never("a link-local address"),
    ),
    (
        [0xfec0, 0, 0, 0, 0, 0, 0, 0],
        10,
        Never("a site-local address"),
    ),
    (
        [0xff00, 0, 0, 0, 0, 0, 0, 0],
        8,
        Never("a multicast address"),
    ),
    // The only addresses assigned to networks so far.
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, NetworkKind::Public),
];

impl NetworkKind {
    /// Looks up `address`. An IPv6 address that carries an IPv4 address is of the kind of the latter.
    pub fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::from_v4(v4),
            IpAddr::V6(v6) => embedded(v6).map_or_else(|| Self::from_v6(v6), Self::from_v4),
        }
    }

    fn from_v4(address: Ipv4Addr) -> Self {
        let bits = address.to_bits();
        let inside = |network: [u8; 4], length: u32| {
            (bits ^ u32::from_be_bytes(network)).leading_zeros() >= length
        };
        let found = V4
            .iter()
            .find(|(network, length, _)| inside(*network, *length));
        found.map_or(Self::Public, |(_, _, reach)| *reach)
    }

    fn from_v6(address: Ipv6Addr) -> Self {
        let bits = address.to_bits();
        let inside = |network: [u16; 8], length: u32| {
            (bits ^ Ipv6Addr::from(network).to_bits()).leading_zeros() >= length
        };
        let found = V6
            .iter()
            .find(|(network, length, _)| inside(*network, *length));
        found.map_or(Never("an address of no known network"), |(_, _, reach)| {
            *reach
        })
    }
}

/// True if `address` is on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    NetworkKind::from_address(address) == NetworkKind::Public
}

/// The IPv4 address at which a packet to `address` ends. The machine itself translates `::ffff:0:0/96`. A translator of
/// the network translates `64:ff9b::/96`, through which IPv6-only networks reach all of IPv4.
///
/// Other forms that carry an IPv4 address (6to4, Teredo, IPv4-compatible, translators with their own prefix) are
/// obsolete or local. They are closed, whatever they carry.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    matches!(
        [a, b, c, d, e, f],
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0]
    )
    .then(|| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}
