function* fibonacci() { let [a, b] = [0, 1]; for (;;) { yield a; [a, b] = [b, a + b]; } }
const [first, second, , fourth, ...rest] = (function* take(n) { for (const value of fibonacci()) { if (n-- <= 0) return; yield value; } })(10);
console.log(first, second, fourth, rest);
const proxy = new Proxy({ a: 1 }, { get: (target, key) => (key in target ? target[key] : `no ${String(key)}`) });
console.log(proxy.a, proxy.b, proxy);
const { a = 5, ...others } = { b: 2, c: 3 };
console.log(a, others, [1, 2, 3].reduce((x, y) => x + y), Object.entries({ p: 1 }), 2 ** 10, 7 % 3, -7 % 3, 1 / 3, 0.1 + 0.2, 1e21, 2 ** 53);
label: for (const i of [1, 2]) for (const j of [1, 2]) { if (j === 2) continue label; console.log(i, j); }
console.log(typeof null, [] + {}, [] == false, null ?? 'd', ''?.length, parseInt('12px', 10), (25).toString(36), 255n ** 3n);
