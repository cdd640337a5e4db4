//! HTTP, for plugins to which the operator opens the gate `http`.
//!
//! A plugin asks for the gate in `plugin.toml` (`gates = ["http"]`); the operator decides which hosts it may reach,
//! how much it may send and how long it may take. A plugin names secrets and never holds them: the host inserts a
//! secret only in requests to the host that it is bound to.

pub use crate::bindings::http::rlf::plugin::http::{HeaderValue, Request, Response};

use crate::Error;

/// Makes the requests side by side; one result for each, in order. Redirects are not followed.
pub fn fetch(requests: &[Request]) -> Vec<Result<Response, Error>> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::http::rlf::plugin::http::fetch(requests);
    #[cfg(not(target_family = "wasm"))]
    requests.iter().map(crate::stand_in::answer).collect()
}

/// Makes one request.
pub fn fetch_one(request: Request) -> Result<Response, Error> {
    fetch(&[request])
        .pop()
        .unwrap_or_else(|| Err(Error::Internal("the host gave no answer".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_native_test_answers_for_the_network() {
        let request = Request {
            method: "GET".to_owned(),
            url: "https://example.com/a".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        assert!(matches!(fetch_one(request.clone()), Err(Error::Denied(_))));
        testing::answer_with(|request| {
            Ok(Response {
                status: 200,
                headers: Vec::new(),
                body: request.url.clone().into_bytes(),
            })
        });
        assert_eq!(fetch_one(request).unwrap().body, b"https://example.com/a");
    }
}
