import fs, { existsSync } from 'node:fs';
import { join } from 'path';

export const exported = 1;
const value = await Promise.resolve(5);
console.log(value, typeof fs.readFileSync, existsSync === fs.existsSync, join('a', 'b'), typeof require, this);
const { inspect } = await import('util');
console.log(inspect({ a: 1 }));
await new Promise((resolve) => { setTimeout(resolve, 10); });
console.log('end');
