//! The client: opened with HTTP rules, it makes the fetches for the calls of one plugin.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::CONTENT_ENCODING;
use http_body_util::Full;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;

use crate::connection::{Answer, connect, exchange};
use crate::error::{FetchError, HttpError, TimedOutBy};
use crate::hosts::{Hosts, Target};
use crate::redact::Redactor;
use crate::request::{Request, Response, prepare};
use crate::resolve::{Resolve, SystemResolver, checked_addresses};
use crate::rules::HttpRules;
use crate::secret::Secrets;

/// One plugin's access to the network. Cheap to clone; clones share the count of `max_concurrent`.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    rules: HttpRules,
    hosts: Hosts,
    secrets: Secrets,
    redactor: Redactor,
    /// `None` if no host uses https.
    tls: Option<TlsConnector>,
    resolver: Arc<dyn Resolve>,
    permits: Semaphore,
}

/// Shows hosts and the names of secrets, but no secret.
impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("hosts", &self.inner.hosts)
            .field("secrets", &self.inner.secrets)
            .finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Checks `rules`, and reads its secrets and the certificates for its hosts. The machine's resolver looks up names.
    pub fn open(rules: &HttpRules) -> Result<Self, HttpError> {
        Self::open_with(rules, Arc::new(SystemResolver))
    }

    /// Like [`open`](Self::open), but `resolver` looks up names. Its answers are checked like any others.
    pub fn open_with(rules: &HttpRules, resolver: Arc<dyn Resolve>) -> Result<Self, HttpError> {
        rules.check_limits()?;
        let hosts = Hosts::open(&rules.hosts)?;
        let secrets = Secrets::open(&rules.secrets, &hosts)?;
        let redactor = Redactor::new(&secrets)?;
        let authorities = rules.certificate_authorities.as_deref();
        let tls = hosts
            .any_https()
            .then(|| crate::tls::connector(authorities));
        let inner = Inner {
            hosts,
            secrets,
            redactor,
            tls: tls.transpose()?,
            resolver,
            permits: Semaphore::new(rules.max_concurrent as usize),
            rules: rules.clone(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Prepares the fetches of one call of the plugin. The call ends at `deadline`.
    pub fn call(&self, deadline: Instant) -> HttpCall {
        HttpCall {
            client: self.clone(),
            deadline,
            requests: AtomicU32::new(0),
        }
    }
}

/// The fetches of one call of a plugin. Each call has its own count.
#[derive(Debug)]
pub struct HttpCall {
    client: HttpClient,
    deadline: Instant,
    requests: AtomicU32,
}

impl HttpCall {
    /// Fetches once. It follows no redirect and retries nothing.
    ///
    /// Fetches of one call may run concurrently. Dropping the future closes the connection.
    pub fn fetch(&self, request: Request) -> BoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            self.count()?;
            let inner = &*self.client.inner;
            let (target, request) = prepare(request, &inner.rules, &inner.hosts, &inner.secrets)?;

            let deadline = tokio::time::Instant::from_std(self.deadline);
            let permit = timeout_at(deadline, inner.permits.acquire()).await;
            let Ok(Ok(_permit)) = permit else {
                return Err(FetchError::Unavailable(format!(
                    "the plugin's other fetches left no room before the deadline of the call (max_concurrent = {})",
                    inner.rules.max_concurrent
                )));
            };

            let start = tokio::time::Instant::now();
            let rules_end = start + inner.rules.timeout;
            let (until, by) = if rules_end < deadline {
                (rules_end, TimedOutBy::Rules)
            } else {
                (deadline, TimedOutBy::Deadline)
            };
            let timed_out = || FetchError::Timeout {
                host: target.host.clone(),
                waited: start.elapsed(),
                by,
            };
            if until <= start {
                return Err(timed_out());
            }
            let answered = timeout_at(until, inner.answer(&target, until, request)).await;
            let answer = answered.unwrap_or_else(|_| Err(timed_out()))?;
            inner.response(&target, answer)
        })
    }

    /// Number of fetches that the call has asked for.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    fn count(&self) -> Result<(), FetchError> {
        let most = self.client.inner.rules.max_requests_per_call;
        let add = |count: u32| Some(count.saturating_add(1));
        let before = self
            .requests
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        let used = before.unwrap_or(u32::MAX).saturating_add(1);
        if used > most {
            return Err(FetchError::exhausted(
                "the call has asked for too many fetches",
                "max_requests_per_call",
                u64::from(most),
                u64::from(used),
            ));
        }
        Ok(())
    }
}

impl Inner {
    async fn answer(
        &self,
        target: &Target,
        until: tokio::time::Instant,
        request: http::Request<Full<Bytes>>,
    ) -> Result<Answer, FetchError> {
        let addresses = checked_addresses(&*self.resolver, target).await?;
        let stream = connect(target, &addresses, until).await?;
        exchange(&self.rules, self.tls.as_ref(), target, stream, request).await
    }

    /// Prepares an answer for the plugin, without secrets.
    fn response(&self, target: &Target, answer: Answer) -> Result<Response, FetchError> {
        let Answer {
            status,
            headers,
            body,
        } = answer;
        let plain = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if self.secrets.any_for(&target.host)
            && !headers.get_all(CONTENT_ENCODING).iter().all(plain)
        {
            return Err(FetchError::Denied(format!(
                "`{}` answered in an encoding that was not asked for, in which secrets cannot be looked for",
                target.host
            )));
        }
        let text = |bytes: &[u8]| self.redactor.redact_text(bytes);
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| (text(name.as_ref()), text(value.as_bytes())));
        let headers = headers.collect();
        let body = self.redactor.redact(body);
        // A mark may be longer than the secret that it replaced.
        let (most, used) = (self.rules.max_response_bytes, body.len() as u64);
        if used > most {
            return Err(FetchError::exhausted(
                "the answer's body is too large without its secrets",
                "max_response_bytes",
                most,
                used,
            ));
        }
        Ok(Response {
            status,
            headers,
            body,
        })
    }
}
