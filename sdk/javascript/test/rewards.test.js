import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { load } from '../lib/testing.js';

const plugin = await load(fileURLToPath(new URL('plugins/right.js', import.meta.url)));

test('rewards give terms, and an error excludes one trajectory only', async () => {
  const [good, bad, excluded] = await plugin.grade({ reference: ['Paris'] }, [
    { answer: 'Paris', calls: [{ name: 'roll' }], outcomes: [{ ended: 'failed' }] },
    { answer: null },
    { answer: 'crash' },
  ]);
  assert.deepEqual(good, { right: 1, calls: 1, rank: 1 });
  assert.deepEqual(bad, { right: 0, calls: 0, rank: 0 });
  assert.match(excluded.message, /RangeError: no effort/);
});
