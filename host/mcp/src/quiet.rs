//! A transport that does not let a server flood this process. What nobody here reads is dropped as it arrives.

use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::ending::Ending;

/// Number of requests that a server may make within [`WINDOW`], such as pings. With more, the connection is closed.
const MAX_REQUESTS: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// A transport whose server makes few requests.
pub(crate) struct Quiet<T> {
    transport: T,
    window: Instant,
    requests: u32,
    ending: Ending,
}

impl<T> Quiet<T> {
    /// `ending` gets the reason if there are too many.
    pub(crate) fn new(transport: T, ending: Ending) -> Self {
        Self {
            transport,
            window: Instant::now(),
            requests: 0,
            ending,
        }
    }

    /// Counts a request. False if there are too many.
    fn may_ask(&mut self) -> bool {
        if self.window.elapsed() > WINDOW {
            self.window = Instant::now();
            self.requests = 0;
        }
        self.requests += 1;
        self.requests <= MAX_REQUESTS
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Quiet<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.receive().await?;
            match &message {
                JsonRpcMessage::Request(_) if !self.may_ask() => {
                    tracing::warn!(
                        "an MCP server made too many requests; its connection is closed"
                    );
                    let seconds = WINDOW.as_secs();
                    self.ending.set(format!(
                        "the server made more than {MAX_REQUESTS} requests of its own within {seconds} s"
                    ));
                    return None;
                }
                JsonRpcMessage::Notification(told)
                    if !matches!(
                        told.notification,
                        ServerNotification::ToolListChangedNotification(_)
                    ) => {}
                _ => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
