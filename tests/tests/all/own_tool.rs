//! The page `docs/own-tool.md`: what it says to write trains a policy that calls the tool.

use std::fs;
use std::path::Path;
use std::process::Command;

use rlf_tests::Experiment;

/// The contents of a file that the page names before a block.
fn file_of<'p>(page: &'p str, name: &str) -> &'p str {
    let block = page
        .split_once(&format!("`{name}`"))
        .and_then(|(_, after)| after.split_once("\n```"));
    let text = block
        .and_then(|(_, block)| block.split_once('\n'))
        .and_then(|(_, text)| text.split_once("\n```"));
    text.unwrap_or_else(|| panic!("the page has no block of {name}"))
        .0
}

#[test]
fn the_page_about_a_tool_of_your_own_trains_a_policy_that_calls_it() {
    let experiment = Experiment::calling();
    let start = experiment.train("start", &[]).checkpoint("latest");
    let page = fs::read_to_string(experiment.host().root().join("docs/own-tool.md"));
    let page = page.expect("the page is there");
    fs::create_dir_all(experiment.path("shop/plugins/price")).expect("can be made");
    for name in [
        "shop/plugins/price/price.py",
        "shop/plugins/price/plugin.toml",
        "shop/make_tasks.py",
        "shop/train.toml",
    ] {
        experiment.write(name, format!("{}\n", file_of(&page, name)));
    }
    let made = Command::new("python3")
        .arg("make_tasks.py")
        .current_dir(experiment.path("shop"))
        .status();
    assert!(made.expect("python3 is there").success());

    let run = experiment.run("shop-run");
    let (config, plugins) = (
        experiment.path("shop/train.toml"),
        experiment.path("shop/plugins"),
    );
    let shipped = experiment.host().plugins();
    let checkpoint = format!("model.checkpoint={}", start.display());
    let text = |path: &Path| path.to_str().expect("a plain name").to_owned();
    let mut arguments = vec!["train".to_owned(), text(&config)];
    for folder in [&plugins, shipped] {
        arguments.extend(["--plugins".to_owned(), text(folder)]);
    }
    arguments.extend(["--run".to_owned(), run.as_str().to_owned()]);
    for setting in [
        &checkpoint,
        "sft.steps=100",
        "sft.batch_size=16",
        "rl.steps=1",
        "rl.prompts_per_step=8",
        "rl.group_size=4",
        "eval.tasks=4",
        "eval.samples=1",
        "eval.validation_tasks=4",
    ] {
        arguments.extend(["--set".to_owned(), setting.to_owned()]);
    }
    experiment.host().run(&arguments).succeeded();
    // So short a training teaches to call the tool, and not yet to spell every item.
    let step = run.steps("rl").remove(0);
    let calls = &step["calls"]["price"];
    let reached = ["ok", "failed"].map(|ended| calls[ended].as_u64().unwrap_or(0));
    assert!(reached.iter().sum::<u64>() > 0, "{step}");

    // The answers are still right, and no verdict would notice what the calls did.
    let tasks = fs::read_to_string(experiment.path("shop/train.jsonl")).expect("was written");
    let misspelt = tasks.replace(r#"{"item": "#, r#"{"itme": "#);
    experiment.write("shop/train.jsonl", misspelt);
    arguments.push("--overwrite".to_owned());
    let refused = experiment.host().run(&arguments);
    assert_eq!(refused.code(), Some(1), "{refused}");
    for part in [
        "a call of price ended as invalid-arguments",
        "did you mean `item`?",
    ] {
        assert!(refused.stderr.contains(part), "{refused}");
    }
}
