function f() {
  if (true) {
    console.log(1);
