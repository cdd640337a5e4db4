//! Resolvers whose answers a test sets.

use std::io;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use rlf_http::Resolve;

/// Gives its answers in turn, repeats the last one, and counts the questions.
pub(crate) struct Names {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Names {
    pub(crate) fn all(address: IpAddr) -> Self {
        Self::in_turn([vec![address]])
    }

    pub(crate) fn in_turn(answers: impl IntoIterator<Item = Vec<IpAddr>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self {
            answers: Mutex::new(answers),
            asked: AtomicUsize::new(0),
        }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 {
            answers.pop().unwrap()
        } else {
            answers[0].clone()
        })
    }
}

/// Never answers.
pub(crate) struct Silent;

#[async_trait]
impl Resolve for Silent {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

/// Knows no name, and records the largest number of simultaneous look-ups.
#[derive(Default)]
pub(crate) struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Busy {
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Resolve for Busy {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        // Lets other look-ups start.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.now.fetch_sub(1, Ordering::Relaxed);
        Ok(Vec::new())
    }
}
