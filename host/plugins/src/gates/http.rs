//! `rlf:plugin/http`: the interface of fetches. [`rlf_http`] makes every decision.

use std::sync::Arc;

use futures_util::future::join_all;
use rlf_http::{FetchError, HttpCall, HttpClient, HttpError, HttpRules, Request, Value};
use rlf_sandbox::{OpenGate, State};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::rlf::plugin::types::Error;

#[allow(missing_docs, unreachable_pub, clippy::pedantic)] // generated
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package rlf:http-gate; world gate { import rlf:plugin/http@0.1.0; }",
        world: "rlf:http-gate/gate",
        imports: { default: async | trappable },
        with: { "rlf:plugin/types@0.1.0": crate::bindings::rlf::plugin::types },
    });
}

pub(super) use bindings::rlf::plugin::http as wit;

/// Access to the hosts that the grants name.
pub(crate) struct HttpGate {
    client: HttpClient,
}

impl HttpGate {
    pub(crate) fn open(rules: &HttpRules) -> Result<Self, HttpError> {
        Ok(Self {
            client: HttpClient::open(rules)?,
        })
    }
}

impl OpenGate for HttpGate {
    fn interface(&self) -> &'static str {
        "rlf:plugin/http"
    }

    fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        wit::add_to_linker::<State, HasHttp>(linker, |state| View(state))
    }
}

struct HasHttp;

impl HasData for HasHttp {
    type Data<'a> = View<'a>;
}

pub(super) struct View<'a>(pub(super) &'a mut State);

impl View<'_> {
    /// The fetches of this call, counted together.
    fn fetches(&mut self) -> Option<Arc<HttpCall>> {
        let client = self.0.gate::<HttpGate>()?.client.clone();
        let made = self.0.kept(|state| Arc::new(client.call(state.deadline())));
        Some(Arc::clone(made))
    }
}

impl wit::Host for View<'_> {
    async fn fetch(
        &mut self,
        requests: Vec<wit::Request>,
    ) -> Result<Vec<Result<wit::Response, Error>>> {
        let Some(fetches) = self.fetches() else {
            return Ok(requests
                .iter()
                .map(|_| Err(Error::Denied("no host is open to this plugin".into())))
                .collect());
        };
        let fetching = join_all(requests.into_iter().map(|request| {
            let fetches = Arc::clone(&fetches);
            async move { fetches.fetch(request_from_guest(request)).await }
        }));
        let answers = self.0.outside(fetching).await;
        Ok(answers
            .into_iter()
            .map(|answer| match answer {
                Ok(answer) => Ok(wit::Response {
                    status: answer.status,
                    headers: answer.headers,
                    body: answer.body,
                }),
                Err(error) => Err(error_to_guest(&error)),
            })
            .collect())
    }
}

fn request_from_guest(request: wit::Request) -> Request {
    Request {
        method: request.method,
        url: request.url,
        headers: request
            .headers
            .into_iter()
            .map(|(name, value)| {
                let value = match value {
                    wit::HeaderValue::Text(text) => Value::Text(text),
                    wit::HeaderValue::Secret(name) => Value::Secret(name),
                };
                (name, value)
            })
            .collect(),
        body: request.body,
    }
}

fn error_to_guest(error: &FetchError) -> Error {
    let text = error.to_string();
    match error {
        FetchError::Denied(_) => Error::Denied(text),
        FetchError::Invalid(_) => Error::InvalidArguments(text),
        FetchError::Exhausted { .. } => Error::Exhausted(text),
        FetchError::Unavailable(_) | FetchError::Timeout { .. } => Error::Unavailable(text),
    }
}
