import { Terms } from 'rlf';

/** @reward */
export function right(task, trajectory) {
  return task.acceptedAnswers().includes(trajectory.answer);
}

/** @reward */
export async function effort(task, trajectory) {
  if (trajectory.answer === 'crash') throw new RangeError('no effort');
  return new Terms({ calls: trajectory.calls().length })
    .metric('failed', trajectory.outcomes().filter(({ ended }) => ended !== 'ok').length);
}

/** @reward rank group */
export function ranked(task, group) {
  const lengths = group.map(({ answer }) => answer?.length ?? 0);
  return lengths.map((length) => lengths.filter((other) => other < length).length);
}
