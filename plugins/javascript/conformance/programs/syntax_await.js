function f() {
  const x = await g();
}
