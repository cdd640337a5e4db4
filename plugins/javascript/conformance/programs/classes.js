class Animal {
  #secret = 1;
  constructor(name) { this.name = name; }
  speak() { return `${this.name} makes a sound`; }
  static create(name) { return new this(name); }
}
class Dog extends Animal {
  speak() { return `${super.speak()}: woof`; }
  get [Symbol.toStringTag]() { return 'Doggo'; }
}
const rex = Dog.create('Rex');
console.log(rex.speak());
console.log(rex, new Animal('Tom'), Animal, Dog, [Animal], class {}, function named() {}, () => {}, async () => {}, function* g() {});
console.log(rex instanceof Animal, Object.getPrototypeOf(rex) === Dog.prototype);
