/** Dice, and what is done with them. */
import { Failure, Image, Observation, data, init, tool } from 'rlf';

let house = 'nobody';

init(({ owner = 'the bank' }) => {
  house = owner;
});

/**
 * Rolls dice and returns the sum.
 *
 * @tool
 * @param {integer} count How many dice, 1 to 100.
 * @param {integer} [sides=6] - Sides of each.
 * @param {Context} context
 */
export function roll(count, sides = 6, context) {
  if (count < 1 || count > 100) throw new Failure('roll 1 to 100 dice');
  return count * sides + context.turn;
}

/**
 * Rolls several times.
 * @tool many
 * @pure
 * @param {integer[]} counts
 * @param {'high'|'low'} [order="high"] Which come first.
 * @param {?{name: string, age?: number}} [player]
 * @returns {{sum: number}}
 */
export const rollMany = async (counts, order = 'high', player) => {
  await new Promise((resolve) => { setTimeout(resolve, 1000); });
  return { sum: counts.reduce((a, b) => a + b, 0), order, player: player?.name };
};

/** @tool */
export function crash() {
  return undefinedVariable;
}

tool({
  name: 'owner',
  description: 'Says whom the house belongs to.',
  parameters: { type: 'object', properties: { polite: { type: 'boolean' } } },
  deterministic: true,
}, ({ polite }) => (polite ? `It belongs to ${house}.` : house));

/** @tool */
export function show() {
  const words = [...data('words')].map(([path, bytes]) => `${path}: ${new TextDecoder().decode(bytes)}`);
  return new Observation([words.join(' '), new Image(new Uint8Array([1, 2, 3]), 'image/png')], { metrics: { words: words.length } });
}
