//! Observes the training loops of a run: reports progress, evaluates at set steps, and asks the loop to stop after a
//! request of the user.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::split::Split;
use rlf_policy::{Model, SamplingParams};
use rlf_rollout::evaluate::Evaluation;
use rlf_rollout::statistics::Rate;
use rlf_train::metrics::{MetricsLine, names};
use rlf_train::observer::{NextStep, Observer, Seen, StepDone};
use rlf_train::phase::Phase;
use rlf_train::rollouts::BoxError;
use rlf_train::run::Metrics;
use serde_json::{Map, Value, json};

use crate::error::RunFailure;
use crate::interruption::Interruption;
use crate::own_weights::Progress;
use crate::parts::{RunParts, temperature};
use crate::reporter::{Moment, RunReporter};

/// The observer of a training run.
pub(crate) struct RunObserver {
    parts: Arc<RunParts>,
    reporter: Arc<dyn RunReporter>,
    interruption: Interruption,
    /// The moment at the end of SFT.
    after_sft: Moment,
    /// The step that was validated last, which may be shown again as the last one.
    validated: Option<(Phase, u64)>,
}

impl RunObserver {
    pub(crate) fn new(
        parts: Arc<RunParts>,
        reporter: Arc<dyn RunReporter>,
        interruption: Interruption,
    ) -> Self {
        Self {
            parts,
            reporter,
            interruption,
            after_sft: Moment::AfterSft,
            validated: None,
        }
    }

    /// Sets the moment at the end of SFT. In a control it is not [`Moment::AfterSft`].
    pub(crate) fn with_end_of_sft(mut self, after_sft: Moment) -> Self {
        self.after_sft = after_sft;
        self
    }

    /// Evaluates the test split and writes the result to the metrics as `moment`.
    pub(crate) async fn test(
        &mut self,
        moment: Moment,
        model: &Model,
        phase: Phase,
        step: u64,
        metrics: &mut Metrics,
    ) -> Result<Evaluation, RunFailure> {
        let eval = &self.parts.config.eval;
        self.measure(
            Some(moment),
            Split::Test,
            eval.tasks,
            eval.samples,
            model,
            phase,
            step,
            metrics,
        )
        .await
    }

    #[allow(clippy::too_many_arguments)] // Each is a different word in one sentence.
    async fn measure(
        &mut self,
        moment: Option<Moment>,
        split: Split,
        tasks: usize,
        samples: usize,
        model: &Model,
        phase: Phase,
        step: u64,
        metrics: &mut Metrics,
    ) -> Result<Evaluation, RunFailure> {
        self.reporter.evaluating(split.as_str());
        let tasks = self.parts.tasks.first(split, tasks);
        let params = SamplingParams {
            temperature: temperature(&self.parts.config),
            ..SamplingParams::default()
        };
        let (evaluation, _) = self
            .parts
            .evaluate(model, split, &tasks, samples, params, step)
            .await?;
        metrics.write(&evaluation_line(&evaluation, moment, phase, step))?;
        self.reporter.evaluated(moment, (phase, step), &evaluation);
        Ok(evaluation)
    }

    /// Makes the evaluations that are due after a step. Returns the success on the validation split, if it was measured.
    async fn evaluate(&mut self, done: StepDone<'_>) -> Result<Option<f64>, RunFailure> {
        let (phase, step, last) = (done.phase, done.step, done.is_last());
        let parts = Arc::clone(&self.parts);
        let every = parts.config.eval.every;
        // RL's curve begins at the end of SFT.
        let due = last || phase == Phase::Rl && step.is_multiple_of(every);
        // In a control, plugins ask the weights with which RL began.
        let progress = (self.after_sft != Moment::Control).then_some(match phase {
            Phase::Sft => Progress::Sft { is_over: last },
            Phase::Rl => Progress::Rl { steps: step },
        });
        let is_named =
            progress.is_some_and(|progress| parts.own_weights.needs_weights_of(progress));
        if !(due || is_named) {
            return Ok(None);
        }
        // A step may be played ahead.
        let _turn = parts.turn.lock().await;
        if let Some(progress) = progress {
            let run = &parts.config.output;
            (parts.own_weights).advance(run, progress, Some(done.model))?;
        }
        let mut success = None;
        if every > 0 && due && self.validated != Some((phase, step)) {
            let tasks = parts.config.eval.validation_tasks;
            let evaluation = self.measure(
                None,
                Split::Validation,
                tasks,
                1,
                done.model,
                phase,
                step,
                done.metrics,
            );
            success = evaluation.await?.sampled.mean;
            self.validated = Some((phase, step));
        }
        if last {
            let moment = if phase == Phase::Sft {
                self.after_sft
            } else {
                Moment::AfterRl
            };
            self.test(moment, done.model, phase, step, done.metrics)
                .await?;
        }
        Ok(success)
    }
}

#[async_trait]
impl Observer for RunObserver {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        if let Some(line) = done.line {
            self.reporter.stepped(line, done.steps);
        }
        let rl = self.parts.config.rl.as_ref();
        if let Some(rl) = rl.filter(|rl| done.phase == Phase::Rl && done.steps < rl.steps) {
            self.reporter.ended_early(done.step, rl.steps, rl.patience);
        }
        let interruption = self.interruption.clone();
        let evaluated = interruption.unless_abandoned(self.evaluate(done)).await;
        let Some(validated) = evaluated.transpose()? else {
            return Ok(NextStep::Abandon.into());
        };
        let next = if self.stops_run() {
            NextStep::Interrupt
        } else {
            NextStep::Continue
        };
        Ok(Seen { next, validated })
    }

    fn stops_run(&self) -> bool {
        self.interruption.requests() > 0
    }

    async fn step_abandoned(&self) {
        self.interruption.abandoned().await;
    }
}

/// An evaluation as a line of the metrics.
fn evaluation_line(
    evaluation: &Evaluation,
    moment: Option<Moment>,
    phase: Phase,
    step: u64,
) -> MetricsLine {
    let by_kind = |rates: &BTreeMap<String, Rate>| -> Value {
        rates
            .iter()
            .map(|(kind, rate)| (kind.clone(), json!(rate.mean)))
            .collect::<Map<_, _>>()
            .into()
    };
    let by_k = |values: &BTreeMap<usize, f64>| -> Value {
        values
            .iter()
            .map(|(k, value)| (k.to_string(), json!(value)))
            .collect::<Map<_, _>>()
            .into()
    };
    let mut line = MetricsLine::new(phase, step).value(names::SPLIT, json!(evaluation.split));
    if let Some(moment) = moment {
        line = line.value(names::MOMENT, json!(moment.as_str()));
    }
    line.value(names::EVAL_GREEDY, json!(evaluation.greedy.mean))
        .number("eval/greedy_low", evaluation.greedy.low)
        .number("eval/greedy_high", evaluation.greedy.high)
        .value(names::EVAL_SAMPLED, json!(evaluation.sampled.mean))
        .number(names::EVAL_SAMPLED_LOW, evaluation.sampled.low)
        .number(names::EVAL_SAMPLED_HIGH, evaluation.sampled.high)
        .value("eval/greedy_by_kind", by_kind(&evaluation.greedy_by_kind))
        .value(
            names::EVAL_SAMPLED_BY_KIND,
            by_kind(&evaluation.sampled_by_kind),
        )
        .value("eval/pass_at_k", by_k(&evaluation.pass_at_k))
        .value("eval/pass_hat_k", by_k(&evaluation.pass_hat_k))
        .value("eval/reward", json!(evaluation.reward))
        .value(names::EVAL_TERMS, json!(evaluation.terms))
        .number("eval/calls", evaluation.calls)
        .number("eval/excluded", evaluation.excluded)
        .count("eval/tasks", evaluation.sampled.tasks)
        .count("eval/samples", evaluation.samples)
}
