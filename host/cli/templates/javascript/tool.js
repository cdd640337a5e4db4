/** Counts the words of a text. */
import { Failure } from 'rlf';

/**
 * Counts the words of a text and returns the longest ones.
 *
 * @tool
 * @pure
 * @param {string} text The text.
 * @param {integer} [longest=3] How many of the longest words to return, 1 to 10.
 */
export function NAME(text, longest = 3) {
  // The model reads the name, the comment and a schema made from its types.
  if (longest < 1 || longest > 10) {
    // The model reads this, and can correct its call. Any other error is a bug.
    throw new Failure('longest is 1 to 10');
  }
  const words = text.split(/\s+/).filter((word) => word !== '');
  const byLength = [...new Set(words)].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
  return { words: words.length, longest: byLength.slice(0, longest) };
}
