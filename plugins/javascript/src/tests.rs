use crate::{
    engine::{Ended, Engine, Program},
    host::native::printed,
};

fn run(code: &str) -> (Ended, String, String) {
    let engine = Engine::new().unwrap();
    let ended = engine.execute(&Program {
        code,
        arguments: Vec::new(),
    });
    let (out, err) = printed();
    (ended, out, err)
}

#[test]
#[ignore = "runs the program in RLF_JS, to look at"]
fn adhoc() {
    let path = std::env::var("RLF_JS").unwrap();
    let (ended, out, err) = run(&std::fs::read_to_string(path).unwrap());
    print!("{out}");
    println!("--- stderr\n{err}--- {ended:?}");
}
