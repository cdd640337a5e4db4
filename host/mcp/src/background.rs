//! The thread on which servers are asked.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::error::McpError;

/// The thread on which all connections live, so that they outlive the runtime of any caller. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Background {
    handle: Handle,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    connections: Vec<Arc<Connection>>,
}

impl Background {
    pub(crate) fn start(connections: Vec<Arc<Connection>>) -> Result<Self, McpError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rlf-mcp")
            .enable_all()
            .build()
            .map_err(|error| McpError::Thread(error.to_string()))?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            connections,
        })
    }

    /// Runs a future to its end, from a thread that may block.
    pub(crate) fn block_on<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, McpError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        // The receiver waits below.
        self.handle
            .spawn(async move { _ = sender.send(future.await) });
        receiver
            .recv()
            .map_err(|error| McpError::Thread(error.to_string()))
    }

    /// Runs a future there. Dropping the returned one drops it. The error says that the thread is gone.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let mut task = AbortOnDrop(self.handle.spawn(future));
        (&mut task.0)
            .await
            .map_err(|error| format!("the call was given up: {error}"))
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let connections = std::mem::take(&mut self.connections);
        // No runtime may be dropped where futures run, so a thread of its own does it.
        let closing = std::thread::Builder::new()
            .name("rlf-mcp-end".to_owned())
            .spawn(move || {
                let closed = join_all(connections.iter().map(|connection| connection.close()));
                runtime.block_on(async {
                    _ = tokio::time::timeout(Duration::from_secs(5), closed).await;
                });
                runtime.shutdown_background();
            });
        if let Ok(closing) = closing {
            // A panic there has been reported, and nothing is left to do.
            _ = closing.join();
        }
    }
}
