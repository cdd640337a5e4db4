//! A name leads only to public addresses, unless the operator allows private ones for it. It never leads to link-local
//! addresses, metadata, or addresses that carry others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use rlf_http::{HostRule, HttpClient, HttpRules, NetworkKind, is_public};

use crate::names::Names;
use crate::server::{Answer, Server};
use crate::{MAX_WAIT, denied, get, rules};

/// Addresses that `allow_private_addresses` opens.
const PRIVATE: &[&str] = &[
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.168.0.0",
    "192.168.255.255",
    "::1",
    "fc00::",
    "fd12:3456::1",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    // The same inside an IPv6 address: mapped, and through a translator.
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "64:ff9b::127.0.0.1",
    "64:ff9b::192.168.1.1",
];

/// Addresses that nothing opens.
const NEVER: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "0.255.255.255",
    // Metadata services of clouds.
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "fd00:ec2::254",
    "fd20:ce::254",
    "169.254.0.0",
    "169.254.255.255",
    "192.0.0.0",
    "192.0.0.192",
    "192.0.0.255",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.255",
    "224.0.0.0",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.254",
    "255.255.255.255",
    "::",
    // IPv4-compatible, and the translated form that only hosts use.
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:0:8.8.8.8",
    "::ffff:0.0.0.0",
    "::ffff:169.254.169.254",
    "::ffff:255.255.255.255",
    "64:ff9b::169.254.169.254",
    "64:ff9b::0.0.0.0",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
    "64:ff9b:0:0:0:1:808:808",
    "100::1",
    "2001::1",
    "2001:0:808:808::1",
    "2001:2::1",
    "2001:10::1",
    "2001:1ff:ffff::1",
    "2001:db8::1",
    // 6to4 of 127.0.0.1, of 169.254.169.254 and of 8.8.8.8.
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "3fff::1",
    "3fff:fff:ffff::1",
    "4000::1",
    "5f00::1",
    "fe80::1",
    "febf:ffff::1",
    "fec0::1",
    "feff::1",
    "ff02::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];

/// The first and last addresses next to the closed networks.
const PUBLIC: &[&str] = &[
    "1.0.0.0",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2000::1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2003::1",
    "2606:4700::1111",
    "3ffe:ffff::1",
    "3fff:1000::1",
];

fn address(text: &&str) -> IpAddr {
    text.parse().unwrap()
}

/// Fetches from a name that leads to `addresses`. Each of them must be refused.
async fn refused(addresses: Vec<IpAddr>, allow_private_addresses: bool) {
    let rule = HostRule {
        allow_private_addresses,
        scheme: rlf_http::Scheme::Http,
        ..HostRule::default()
    };
    let rules = HttpRules {
        hosts: [("evil.test".to_owned(), rule)].into(),
        ..HttpRules::default()
    };
    let names = Names::in_turn([addresses.clone()]);
    let client = HttpClient::open_with(&rules, Arc::new(names)).unwrap();
    let answered = client
        .call(Instant::now() + MAX_WAIT)
        .fetch(get("http://evil.test/"))
        .await;
    let reason = denied(answered);
    assert!(reason.starts_with("host `evil.test` leads to "), "{reason}");
    // The plugin must not learn the addresses of the operator's names.
    for address in addresses {
        assert!(!reason.contains(&address.to_string()), "{reason}");
    }
}

#[tokio::test]
async fn names_lead_to_no_closed_address() {
    for closed in PRIVATE.iter().chain(NEVER).map(address) {
        refused(vec![closed], false).await;
    }
    for closed in NEVER.iter().map(address) {
        refused(vec![closed], true).await;
    }
}

#[tokio::test]
async fn one_closed_address_among_public_ones_refuses_the_name() {
    let public = address(&"8.8.8.8");
    for closed in PRIVATE.iter().chain(NEVER).map(address) {
        refused(vec![public, closed], false).await;
        refused(vec![closed, public], false).await;
    }
}

#[tokio::test]
async fn the_machines_own_resolver_is_checked_too() {
    let server = Server::start(Answer::ok("", "here")).await;
    let mut rules = rules(server.port);
    let mut rule = rules.hosts["api.test"].clone();
    let url = format!("http://localhost:{}/", server.port);
    for allowed in [true, false] {
        rule.allow_private_addresses = allowed;
        rules.hosts.insert("localhost".to_owned(), rule.clone());
        let client = HttpClient::open(&rules).unwrap();
        let answer = client
            .call(Instant::now() + MAX_WAIT)
            .fetch(get(&url))
            .await;
        if allowed {
            assert_eq!(answer.unwrap().body, b"here");
        } else {
            let reason = denied(answer);
            assert!(reason.contains("leads to a loopback address"), "{reason}");
        }
    }
}

#[test]
fn every_closed_range_ends_where_the_registries_say() {
    for (texts, is_expected) in [
        (
            PRIVATE,
            (|reach| matches!(reach, NetworkKind::Private(_))) as fn(NetworkKind) -> bool,
        ),
        (NEVER, |reach| matches!(reach, NetworkKind::Never(_))),
        (PUBLIC, |reach| reach == NetworkKind::Public),
    ] {
        for text in texts {
            let reach = NetworkKind::from_address(address(text));
            assert!(is_expected(reach), "{text}: {reach:?}");
        }
    }
}

/// The same rule by the standard library, as far as it has one.
fn is_public_by_std(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || [[100, 100, 100, 200], [168, 63, 129, 16]].contains(&[a, b, c, d]))
}

/// Any address, often one near a border of the table.
fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    let borders = NEVER.iter().chain(PRIVATE).chain(PUBLIC);
    let borders: Vec<Ipv4Addr> = borders.filter_map(|text| text.parse().ok()).collect();
    let near = (prop::sample::select(borders), -2_i32..=2)
        .prop_map(|(address, by)| address.to_bits().wrapping_add_signed(by));
    prop_oneof![near, any::<u32>()].prop_map(Ipv4Addr::from_bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_embedded_address_is_public_only_where_it_would_be_alone(v4 in any_v4(), other: u64) {
        let public = is_public_by_std(v4);
        let [high, low] = [(v4.to_bits() >> 16) as u16, v4.to_bits() as u16];
        let at_the_end = |prefix: [u16; 6]| {
            let [a, b, c, d, e, f] = prefix;
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, high, low))
        };
        prop_assert_eq!(is_public(v4.into()), public);
        prop_assert_eq!(is_public(v4.to_ipv6_mapped().into()), public);
        prop_assert_eq!(is_public(at_the_end([0x64, 0xff9b, 0, 0, 0, 0])), public);

        let [p, q, r, s] = [48, 32, 16, 0].map(|shift| (other >> shift) as u16);
        for closed in [
            v4.to_ipv6_compatible().into(),
            at_the_end([0x64, 0xff9b, 1, p, q, r]),
            at_the_end([0, 0, 0, 0, 0xffff, 0]),
            IpAddr::V6(Ipv6Addr::new(0x2002, high, low, 0, p, q, r, s)),
            // Teredo: the server's address first, the client's inverted at the end.
            IpAddr::V6(Ipv6Addr::new(0x2001, 0, high, low, p, q, r, s)),
            at_the_end([0x2001, 0, p, q, r, s]),
        ] {
            prop_assert!(!is_public(closed), "{}", closed);
        }
    }
}
