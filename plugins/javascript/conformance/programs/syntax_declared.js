let total = 1;
function f() {
  return 1;
}
let total = 2;
