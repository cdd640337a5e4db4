/** Whether the answer is right, and how many calls it took. */

/** @reward */
export function NAME(task, trajectory) {
  // Each key is a term. The configuration weighs it: weights = { right = 1.0, brief = 0.1 }.
  const answer = (trajectory.answer ?? '').trim().toLowerCase();
  const accepted = task.acceptedAnswers().map((text) => text.trim().toLowerCase());
  return {
    right: accepted.includes(answer),
    brief: 1 / (1 + trajectory.calls().length),
  };
}
