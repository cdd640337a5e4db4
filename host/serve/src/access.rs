//! Checks who may send requests, before any part of a body is read.
//!
//! Every page in a browser on the same machine can reach a service on the loopback address. Three checks keep pages out.
//! A page of another origin names itself in `Origin`. A page whose own name was resolved to a loopback address has that
//! name in `Host`. And no page can send a body with the type JSON without a preflight request, which the service does
//! not answer.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::{Method, StatusCode};

use crate::answer::Refusal;
use crate::config::{ServeConfig, ServeConfigError};
use crate::token::Token;

/// Refuses a configuration that would let everybody in, or whose token cannot be read. It checks nothing else.
pub fn check_access(config: &ServeConfig) -> Result<(), ServeConfigError> {
    Access::new(config).map(drop)
}

/// The checks of one service.
#[derive(Debug)]
pub(crate) struct Access {
    token: Option<Token>,
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

impl Access {
    /// Makes the checks of a configuration. Fails if it would let everybody in.
    pub(crate) fn new(config: &ServeConfig) -> Result<Self, ServeConfigError> {
        let token = match (&config.token_file, &config.token_env) {
            (Some(file), _) => Some(Token::from_file(file)),
            (None, Some(name)) => Some(Token::from_env(name)),
            (None, None) => None,
        }
        .transpose()?;
        if token.is_none() && !config.listen.ip().to_canonical().is_loopback() {
            return Err(ServeConfigError::Unprotected(config.listen));
        }
        let lower =
            |names: &BTreeSet<String>| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(Self {
            token,
            hosts: lower(&config.hosts),
            origins: lower(&config.origins),
        })
    }

    /// Checks the head of a request that came in at `local`. `open` routes need no token.
    pub(crate) fn check(&self, head: &Parts, local: SocketAddr, open: bool) -> Result<(), Refusal> {
        self.check_host(head, local)?;
        self.check_origin(head)?;
        if !open {
            self.check_token(head)?;
        }
        if head.method == Method::POST {
            check_content(head)?;
        }
        Ok(())
    }

    fn check_host(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        let refused = |what: String| Err(Refusal::new(StatusCode::FORBIDDEN, what));
        let mut given = head.headers.get_all(HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "send one `Host` header",
            ));
        };
        // Only requests to a proxy have an authority in their target.
        if head.uri.authority().is_some() {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "this is not a proxy: send only a path",
            ));
        }
        let Some(name) = host.to_str().ok().and_then(host_name) else {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "`Host` must be a host with an optional port",
            ));
        };
        if self.hosts.contains(&name) {
            return Ok(());
        }
        let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
        let local = local.ip().to_canonical();
        let known = match address {
            Ok(address) => {
                let address = address.to_canonical();
                address == local || (address.is_loopback() && local.is_loopback())
            }
            Err(_) => name == "localhost" && local.is_loopback(),
        };
        if known {
            return Ok(());
        }
        refused(format!(
            "`Host` is `{name}`, which is not a name of this service; if it is one, add it to serve.hosts"
        ))
    }

    fn check_origin(&self, head: &Parts) -> Result<(), Refusal> {
        for origin in head.headers.get_all(ORIGIN) {
            let known = origin
                .to_str()
                .is_ok_and(|origin| self.origins.contains(&origin.to_ascii_lowercase()));
            if !known {
                return Err(Refusal::new(
                    StatusCode::FORBIDDEN,
                    "pages of this `Origin` may not ask; if they may, add it to serve.origins",
                ));
            }
        }
        Ok(())
    }

    fn check_token(&self, head: &Parts) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let mut shown = head.headers.get_all(AUTHORIZATION).iter();
        let refused = |what: &str| Err(Refusal::new(StatusCode::UNAUTHORIZED, what));
        match (shown.next(), shown.next()) {
            (Some(header), None) if token.is_shown_by(header.as_bytes()) => Ok(()),
            (None, _) => refused(
                "send the token: `Authorization: Bearer TOKEN`, or http://any:TOKEN@HOST/ as the URL",
            ),
            _ => refused("this is not the token"),
        }
    }
}

/// Accepts only JSON without a content encoding. No page can send it without a preflight request, and nothing has to be
/// unpacked.
fn check_content(head: &Parts) -> Result<(), Refusal> {
    let refused = |what: &str| Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
    let kind = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return refused("send JSON with `Content-Type: application/json`");
    }
    if head
        .headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return refused("send the body as it is, without a `Content-Encoding`");
    }
    Ok(())
}

/// The host of a `Host` header in lower case, with the brackets of an address; `None` if it is not a host.
fn host_name(header: &str) -> Option<String> {
    let authority: http::uri::Authority = header.parse().ok()?;
    let port = authority.as_str().len() - authority.host().len();
    // No credentials, and nothing except a port after the name.
    let plain = authority.as_str().starts_with(authority.host())
        && (port == 0 || authority.port_u16().is_some());
    let host = authority.host().trim_end_matches('.');
    (plain && !host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "correct-horse-battery-staple";

    fn head(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri("/run_code");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn config(text: &str) -> ServeConfig {
        rlf_config::parse(text, "c.toml").unwrap()
    }

    fn status(access: &Access, head: &Parts, local: &str) -> u16 {
        let checked = access.check(head, local.parse().unwrap(), false);
        checked.map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_loopback_goes_without_a_token() {
        for listen in [
            "0.0.0.0:80",
            "[::]:80",
            "192.168.1.5:80",
            "[::ffff:10.0.0.1]:80",
        ] {
            let error = Access::new(&config(&format!("listen = \"{listen}\""))).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("`serve.token_file`"), "{error}");
        }
        for listen in [
            "127.0.0.1:80",
            "127.1.2.3:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert!(Access::new(&config(&format!("listen = \"{listen}\""))).is_ok());
        }
    }

    #[test]
    fn names_that_lead_here_by_other_ways_are_refused() {
        let access = Access::new(&config("hosts = [\"Sandbox.Example.com\"]")).unwrap();
        let asked =
            |host: &str, local: &str| status(&access, &head("GET", &[("host", host)]), local);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:9",
            "[::1]:8080",
            "sandbox.example.com",
            "sandbox.example.com.:80",
        ] {
            assert_eq!(asked(host, "127.0.0.1:8080"), 200, "{host}");
        }
        for host in [
            "evil.example.com",
            "localhost.evil.com",
            "10.0.0.1",
            "169.254.169.254",
        ] {
            assert_eq!(asked(host, "127.0.0.1:8080"), 403, "{host}");
        }
        for host in ["user@localhost", "localhost:x", "", "a/b"] {
            assert_eq!(asked(host, "127.0.0.1:8080"), 400, "{host}");
        }
        // A service that is bound to every address knows a connection by the address it came in at.
        assert_eq!(asked("10.0.0.1:80", "10.0.0.1:80"), 200);
        assert_eq!(asked("localhost", "10.0.0.1:80"), 403);
        assert_eq!(status(&access, &head("GET", &[]), "127.0.0.1:1"), 400);
        let twice = head("GET", &[("host", "localhost"), ("host", "localhost")]);
        assert_eq!(status(&access, &twice, "127.0.0.1:1"), 400);
    }

    #[test]
    fn pages_may_ask_only_from_listed_origins() {
        let access = Access::new(&config("origins = [\"https://lab.example.com\"]")).unwrap();
        let asked = |origin: &str| {
            status(
                &access,
                &head("GET", &[("host", "localhost"), ("origin", origin)]),
                "127.0.0.1:1",
            )
        };
        assert_eq!(asked("https://lab.example.com"), 200);
        for origin in [
            "null",
            "http://lab.example.com",
            "https://lab.example.com.evil.com",
            "http://localhost",
        ] {
            assert_eq!(asked(origin), 403, "{origin}");
        }
    }

    #[test]
    fn bodies_are_json_by_their_type() {
        let access = Access::new(&ServeConfig::default()).unwrap();
        let asked = |more: &[(&str, &str)]| {
            let headers = [&[("host", "localhost")], more].concat();
            status(&access, &head("POST", &headers), "127.0.0.1:1")
        };
        assert_eq!(asked(&[("content-type", "application/json")]), 200);
        assert_eq!(
            asked(&[("content-type", "Application/JSON; charset=utf-8")]),
            200
        );
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "",
        ] {
            assert_eq!(asked(&[("content-type", kind)]), 415, "{kind}");
        }
        assert_eq!(asked(&[]), 415);
        let packed = [
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ];
        assert_eq!(asked(&packed), 415);
    }

    #[test]
    fn with_a_token_nothing_but_it_will_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TOKEN).unwrap();
        let mut config = config("listen = \"0.0.0.0:80\"");
        config.token_file = Some(file.path().to_owned());
        let access = Access::new(&config).unwrap();
        let asked = |shown: &[&str]| {
            let mut headers = vec![("host", "10.0.0.1")];
            headers.extend(shown.iter().map(|shown| ("authorization", *shown)));
            status(&access, &head("GET", &headers), "10.0.0.1:80")
        };
        let right = format!("Bearer {TOKEN}");
        assert_eq!(asked(&[&right]), 200);
        assert_eq!(asked(&[]), 401);
        assert_eq!(asked(&["Bearer correct-horse-battery-stapl"]), 401);
        assert_eq!(asked(&[&right, "Bearer x"]), 401);
        let open = head("GET", &[("host", "10.0.0.1")]);
        assert!(
            access
                .check(&open, "10.0.0.1:80".parse().unwrap(), true)
                .is_ok()
        );
    }
}
