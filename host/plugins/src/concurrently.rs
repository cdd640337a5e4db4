//! Some futures side by side, in the task that waits for them.
//!
//! The calls of a turn and the rewards of a group only wait for the sandbox's threads, so a task
//! for each would buy nothing; and dropping the one future stops them all.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// The outputs of all futures, in their order.
pub(crate) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    // Few at a time: polling every one that is not done costs less than a queue of wakers.
    poll_fn(|context| {
        let mut all_done = true;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *output = Some(done),
                    Poll::Pending => all_done = false,
                }
            }
        }
        if all_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::all;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn futures_run_side_by_side_and_answer_in_order() {
        let (first_sender, first) = oneshot::channel();
        let (second_sender, second) = oneshot::channel();
        // Each of the first two waits for what the next one does.
        let steps: Vec<std::pin::Pin<Box<dyn Future<Output = u32> + Send>>> = vec![
            Box::pin(async { first.await.unwrap() }),
            Box::pin(async {
                let got = second.await.unwrap();
                first_sender.send(got + 1).unwrap();
                got
            }),
            Box::pin(async {
                second_sender.send(1).unwrap();
                0
            }),
        ];
        assert_eq!(all(steps).await, [2, 1, 0]);
        assert_eq!(all(Vec::<std::future::Ready<()>>::new()).await, []);
    }
}
