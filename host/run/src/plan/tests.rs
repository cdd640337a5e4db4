use std::path::PathBuf;

use rlf_policy::{Processor, PublishedShape};

use super::*;

fn shipped(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../configs").join(format!("{name}.toml"))
}

fn config(name: &str, settings: &[&str]) -> RunConfig {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    configuration(&shipped(name), &settings, true).unwrap()
}

fn on(config: &RunConfig, machine: &str, shape: PublishedShape) -> Plan {
    let options = PlanOptions {
        machine: PlannedMachine::named(machine).unwrap(),
        shape: Some(shape.config()),
        tokens_per_trajectory: None,
    };
    Plan::new(config, &options).unwrap()
}

/// A CPU with so much memory, whose speed is unknown.
fn cpu(memory: u64) -> PlanOptions {
    PlanOptions {
        machine: PlannedMachine {
            name: "a CPU".to_owned(),
            processor: Processor::Cpu,
            memory: Some(memory),
            speed: None,
        },
        shape: None,
        tokens_per_trajectory: None,
    }
}

/// Peaks of resident memory (VmHWM) of `rlf-host train configs/quickstart.toml` with these settings and a few steps, on two
/// cores. `rlf-bench memory` measures them again.
#[test]
fn a_plan_is_within_a_tenth_of_what_runs_on_the_cpu_took() {
    let small = [
        "model.init.num_attention_heads=8",
        "model.init.num_key_value_heads=4",
    ];
    let medium = [
        "model.init.vocab_size=2048",
        "model.init.hidden_size=256",
        "model.init.intermediate_size=768",
        "model.init.num_hidden_layers=4",
        "model.init.head_dim=32",
    ];
    let large = [
        "model.init.vocab_size=8192",
        "model.init.hidden_size=512",
        "model.init.intermediate_size=1536",
        "model.init.num_hidden_layers=8",
        "model.init.head_dim=64",
    ];
    // Without huge pages and with them.
    for (settings, measured) in [
        (vec![], [453, 497]),
        ([&small[..], &medium].concat(), [1_215, 1_255]),
        ([&small[..], &large].concat(), [4_480, 4_609]),
    ] {
        let mut config = config("quickstart", &settings);
        config.workers = Some(2);
        let plan = Plan::new(&config, &cpu(1 << 40)).unwrap();
        for measured in measured {
            let ratio = plan.memory.peak() as f64 / (f64::from(measured) * f64::from(1 << 20));
            assert!(
                (0.9..1.1).contains(&ratio),
                "{settings:?}: {ratio}, {plan:?}"
            );
        }
    }
}

#[test]
fn the_time_of_a_step_counts_every_round_of_refill() {
    let rollout = |refill: &str| {
        let config = config("hotpotqa-search", &["device=cuda", refill]);
        let times = on(&config, "h200", PublishedShape::Qwen3_0_6B).times;
        times.unwrap().rollout.unwrap()
    };
    let ratio = rollout("rl.refill=2") / rollout("rl.refill=0");
    assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
}

#[test]
fn shipped_configurations_fit_the_gpus_that_they_name() {
    let cuda = ["device=cuda", "precision=bf16"];
    for (name, machine, shape) in [
        ("hotpotqa-search", "h200", PublishedShape::Qwen3_4B),
        ("hotpotqa-search", "h100", PublishedShape::Qwen3_1_7B),
        ("search_r1_qwen3_4b", "h200", PublishedShape::Qwen3_4B),
        ("search_r1_qwen3_4b", "h100", PublishedShape::Qwen3_1_7B),
        ("ftrl_qwen3_8b", "h200", PublishedShape::Qwen3_8B),
        ("mbpp-code", "h200", PublishedShape::Qwen3_4B),
        ("mbpp-code", "h100", PublishedShape::Qwen3_1_7B),
        ("tau-retail", "h200", PublishedShape::Qwen3_4B),
        ("tau-retail", "h100", PublishedShape::Qwen3_1_7B),
        ("ftrl", "h200", PublishedShape::Qwen3_4B),
        ("ftrl", "h100", PublishedShape::Qwen3_1_7B),
    ] {
        let plan = on(&config(name, &cuda), machine, shape);
        let peak = plan.memory.peak();
        assert_eq!(
            plan.fits(),
            Some(true),
            "{name} on {machine}: {peak}: {:?}",
            plan.memory
        );
        assert!(plan.suggestions.is_empty());
    }
}

#[test]
fn configurations_for_two_cores_fit_eight_gigabytes() {
    for name in ["quickstart", "environments", "forge", "tool-library"] {
        let mut config = config(name, &[]);
        config.workers = Some(2);
        let plan = Plan::new(&config, &cpu(8 << 30)).unwrap();
        assert_eq!(plan.fits(), Some(true), "{name}: {:?}", plan.memory);
    }
}

#[test]
fn what_does_not_fit_gets_changes_and_what_they_save_together() {
    let settings = [
        "rl.activation_checkpointing=false",
        "engine.cache_tokens=262144",
    ];
    let plan = on(
        &config("hotpotqa-search", &settings),
        "h100",
        PublishedShape::Qwen3_4B,
    );
    assert_eq!(plan.fits(), Some(false));
    assert!(plan.suggestions.iter().all(|one| one.saves > 0));
    let saved: u64 = plan.suggestions.iter().map(|one| one.saves).sum();
    assert_eq!(plan.with_all, Some(plan.memory.peak() - saved));
    let names: Vec<String> = plan.suggestions.iter().map(ToString::to_string).collect();
    // What would train in another way comes last. Beside it, no recomputed activations and no smaller cache are needed.
    assert_eq!(names, ["precision = \"bf16\"", "model.lora.rank = 16"]);
    assert_eq!(plan.suggestions[0].effect, None);
    assert!(plan.suggestions[1].effect.is_some());
    assert!(plan.with_all <= plan.machine.memory);
    // They are settings, and the plan with all of them says the same.
    let mut all: Vec<&str> = settings.to_vec();
    all.extend(names.iter().map(String::as_str));
    let together = on(
        &config("hotpotqa-search", &all),
        "h100",
        PublishedShape::Qwen3_4B,
    );
    assert_eq!(Some(together.memory.peak()), plan.with_all);
}

#[test]
fn a_change_that_saves_nothing_at_first_comes_after_the_one_that_lets_it_save() {
    let config = config("search_r1_qwen3_4b", &[]);
    let plan = on(&config, "4090", PublishedShape::Qwen3_8B);
    let names: Vec<String> = plan.suggestions.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["model.lora.rank = 16", "engine.cache_tokens = 32768"]
    );
    assert!(plan.suggestions.iter().all(|one| one.saves > 0), "{plan:?}");
    assert!(plan.with_all <= plan.machine.memory);
}

#[test]
fn the_mildest_change_that_suffices_is_suggested() {
    let cuda = ["precision=bf16", "engine.cache_tokens=2097152"];
    let plan = on(
        &config("tau-retail", &cuda),
        "h100",
        PublishedShape::Qwen3_1_7B,
    );
    let [only] = &plan.suggestions[..] else {
        panic!("{:?}", plan.suggestions);
    };
    assert_eq!(only.to_string(), "engine.cache_tokens = 262144");
    assert!(plan.with_all <= plan.machine.memory);
}

#[test]
fn a_reference_policy_is_counted_only_with_a_kl_term() {
    let parts = |setting: &str| {
        let config = config("hotpotqa-search", &["precision=bf16", setting]);
        let plan = on(&config, "h200", PublishedShape::Qwen3_0_6B);
        let phases = plan.memory.phases.into_iter();
        let parts = phases.flat_map(|phase| phase.parts);
        let reference = parts.filter(|part| part.name == "reference policy");
        reference.map(|part| part.bytes).collect::<Vec<u64>>()
    };
    // Matrices in bf16 alone; norms and rotary positions in f32.
    let norms = 28 * 2_304 + 1_024;
    let copy = 4 * (norms + 40_960 * 128) + 2 * (596_049_920 - norms);
    assert_eq!(parts("rl.kl_coefficient=0.001"), [copy, copy]);
    assert_eq!(parts("rl.kl_coefficient=0.0"), [0; 0]);
}

#[test]
fn staleness_takes_copies_of_the_weights_and_decodes_beside_updates() {
    let plan = |staleness: &str| {
        let settings = ["precision=bf16", "rl.kl_coefficient=0.0", staleness];
        let config = config("hotpotqa-search", &settings);
        on(&config, "h200", PublishedShape::Qwen3_0_6B)
    };
    let (in_turn, ahead) = (plan("rl.staleness=0"), plan("rl.staleness=2"));
    let copy = 4 * (596_049_920 + 40_960 * 128) + 2 * (596_049_920 - 28 * 2_304 - 1_024);
    let [rollout, update] = &in_turn.memory.phases[..] else {
        panic!("{:?}", in_turn.memory);
    };
    let [evaluation, both] = &ahead.memory.phases[..] else {
        panic!("{:?}", ahead.memory);
    };
    assert_eq!(evaluation.bytes(), rollout.bytes() + 2 * copy);
    assert_eq!(both.bytes(), rollout.bytes() + update.bytes() + 2 * copy);
    let times = |plan: &Plan| {
        let times = plan.times.unwrap();
        let (rollout, update) = (times.rollout.unwrap(), times.update.unwrap());
        (rollout, update, times.rl_step.unwrap())
    };
    let (rollout, update, step) = times(&in_turn);
    assert_eq!(step, rollout + update);
    let (rollout, update, step) = times(&ahead);
    assert_eq!(step, rollout.max(update));
}

#[test]
fn shorter_trajectories_take_less_time_and_no_less_of_what_is_certain() {
    let config = config("hotpotqa-search", &["precision=bf16"]);
    let plan = |tokens| {
        let options = PlanOptions {
            machine: PlannedMachine::named("h200").unwrap(),
            shape: Some(PublishedShape::Qwen3_4B.config()),
            tokens_per_trajectory: tokens,
        };
        Plan::new(&config, &options).unwrap()
    };
    let (longest, short) = (plan(None), plan(Some(1_000)));
    assert_eq!(
        (longest.lengths.tokens, longest.lengths.written),
        (4096, 2560)
    );
    assert_eq!((short.lengths.tokens, short.lengths.written), (1000, 999));
    let times = |plan: &Plan| plan.times.unwrap();
    assert!(times(&short).rollout < times(&longest).rollout);
    assert!(times(&short).update < times(&longest).update);
    assert_eq!(times(&short).sft, None);
}

#[test]
fn an_external_engine_decodes_in_memory_and_time_of_its_own() {
    let more = ["precision=bf16", "external_engine.url=http://127.0.0.1:1"];
    let plan = |settings: &[&str]| {
        let config = config("hotpotqa-search", settings);
        on(&config, "h200", PublishedShape::Qwen3_4B)
    };
    let (own, external) = (plan(&more[..1]), plan(&more));
    assert!(external.memory.peak() < own.memory.peak());
    for phase in &external.memory.phases {
        for part in &phase.parts {
            assert!(!part.name.contains("cache"), "{phase:?}");
        }
    }
    assert_eq!(external.times.unwrap().rollout, None);
    assert!(own.times.unwrap().rollout.is_some());
}

#[test]
fn models_are_counted_only_if_a_plugin_was_granted_them() {
    let model = "models.judge={policy={of_run=\"start\"}}";
    let granted = "plugins.judge.models=[\"judge\"]";
    let are_bounds = |settings: &[&str]| {
        let plan = Plan::new(&config("quickstart", settings), &cpu(1 << 40)).unwrap();
        let parts = plan.memory.always.into_iter();
        let of_models = parts.filter(|part| part.name.ends_with("models that plugins ask"));
        of_models.map(|part| part.is_bound).collect::<Vec<bool>>()
    };
    assert_eq!(are_bounds(&[model]), [false; 0]);
    assert_eq!(are_bounds(&[model, granted]), [false, true]);
}

#[test]
fn a_model_that_cannot_be_read_is_named_and_not_counted() {
    let unread = |checkpoint: &str| {
        let model = format!("models.judge={{policy={{{checkpoint}}}}}");
        let settings = [&model, "plugins.judge.models=[\"judge\"]"];
        let plan = Plan::new(&config("quickstart", &settings), &cpu(1 << 40)).unwrap();
        plan.memory.not_counted
    };
    assert_eq!(unread("of_run=\"start\""), [""; 0]);
    let [one] = &unread("checkpoint=\"none\"")[..] else {
        panic!("one is named");
    };
    assert!(
        one.starts_with("models.judge.policy: ") && one.contains("configs/none: reading"),
        "{one}"
    );
}

#[test]
fn a_change_that_a_run_would_refuse_is_not_suggested() {
    let variants = |more: &[&str]| {
        let settings = [&["rl.kl_coefficient=0.001"], more].concat();
        let all = changes::changes(&config("hotpotqa-search", &settings), Processor::Cuda);
        let mut all = all.into_iter();
        let without_kl = all.find(|change| change.key == "rl.kl_coefficient");
        without_kl.unwrap().variants.len()
    };
    assert_eq!(variants(&[]), 1);
    assert_eq!(variants(&["rl.adaptive_kl={}"]), 0);
}

#[test]
fn each_forward_pass_of_an_update_takes_its_time() {
    let update = |settings: &[&str]| {
        let all = [&["rl.kl_coefficient=0.0"], settings].concat();
        let plan = on(
            &config("hotpotqa-search", &all),
            "h200",
            PublishedShape::Qwen3_4B,
        );
        plan.times.unwrap().update.unwrap()
    };
    let none = update(&[]);
    let one = update(&["rl.kl_coefficient=0.001"]);
    assert!(one > none, "{one} and {none}");
    assert_eq!(update(&["rl.importance_cap=2.0"]), one);
    assert_eq!(update(&["rl.algorithm=ppo"]), one);
}

#[test]
fn a_missing_checkpoint_is_named_with_its_key() {
    let path = shipped("hotpotqa-search");
    let settings = ["model.checkpoint=nowhere".to_owned()];
    let config = configuration(&path, &settings, false).unwrap();
    let error = Plan::new(&config, &cpu(1 << 30)).unwrap_err().to_string();
    assert!(
        error.starts_with("model.checkpoint: ") && error.contains("nowhere"),
        "{error}"
    );
}

#[test]
fn a_cache_whose_size_is_open_is_halved_until_it_fits_and_at_most_to_eight_contexts() {
    let context = 4096;
    let with = |machine: &str, settings: &[&str]| {
        let settings: Vec<&str> = settings.iter().copied().chain(["precision=bf16"]).collect();
        on(
            &config("hotpotqa-search", &settings),
            machine,
            PublishedShape::Qwen3_0_6B,
        )
    };
    assert_eq!(with("h200", &[]).cache_tokens(), 64 * context);
    let smaller = with("4090", &[]);
    assert!((8 * context..64 * context).contains(&smaller.cache_tokens()));
    assert_eq!(smaller.fits(), Some(true));
    // A size of the user's stays.
    let own = with("4090", &["engine.cache_tokens=262144"]);
    assert_eq!(
        (own.cache_tokens(), own.fits()),
        (64 * context, Some(false))
    );
    // The smallest one, if none fits.
    let large = config("hotpotqa-search", &["precision=bf16"]);
    let large = on(&large, "4090", PublishedShape::Qwen3_8B);
    assert_eq!(
        (large.cache_tokens(), large.fits()),
        (8 * context, Some(false))
    );
    let keys: Vec<&str> = large.suggestions.iter().map(|one| one.key).collect();
    assert!(!keys.contains(&"engine.cache_tokens"), "{keys:?}");
}

#[test]
fn a_change_of_both_phases_is_suggested_if_neither_saves_alone() {
    let settings = [
        "precision=bf16",
        "sft.batch_size=512",
        "sft.micro_batch_tokens=64000",
        "rl.micro_batch_tokens=64000",
        "sft.activation_checkpointing=false",
        "rl.activation_checkpointing=false",
    ];
    let config = config("quickstart", &settings);
    let plan = on(&config, "4090", PublishedShape::Qwen3_0_6B);
    let names: Vec<String> = plan.suggestions.iter().map(ToString::to_string).collect();
    let both = [
        "sft.micro_batch_tokens = 8000",
        "rl.micro_batch_tokens = 8000",
    ];
    assert_eq!(names, both);
    assert!(plan.with_all <= plan.machine.memory);
}

#[test]
fn activations_are_computed_again_only_where_the_run_fits_in_no_other_way() {
    let cache = "engine.cache_tokens=3072";
    let planned = |memory: u64, settings: &[&str]| {
        let settings: Vec<&str> = settings.iter().copied().chain([cache]).collect();
        Plan::new(&config("quickstart", &settings), &cpu(memory)).unwrap()
    };
    let ample = planned(1 << 40, &[]);
    assert!(ample.recomputed.is_empty());
    let short = ample.memory.peak() - 1;
    let plan = planned(short, &[]);
    let [sft, rl] = [
        "sft.activation_checkpointing",
        "rl.activation_checkpointing",
    ];
    assert_eq!((plan.fits(), plan.recomputed), (Some(true), vec![sft, rl]));
    let plan = planned(short, &["sft.micro_batch_tokens=512"]);
    assert_eq!((plan.fits(), plan.recomputed), (Some(true), vec![rl]));
    // The user's word counts.
    let plan = planned(short, &["sft.activation_checkpointing=false"]);
    assert_eq!((plan.fits(), plan.recomputed), (Some(false), vec![]));
    // It is not enough, but needs the least.
    let plan = planned(200 << 20, &[]);
    assert_eq!((plan.fits(), plan.recomputed), (Some(false), vec![sft, rl]));
}

#[test]
fn a_prompt_that_a_group_shares_is_read_once() {
    let hours = |settings: &[&str]| {
        let cuda: Vec<&str> = settings.iter().copied().chain(["precision=bf16"]).collect();
        let plan = on(
            &config("ftrl_qwen3_8b", &cuda),
            "h200",
            PublishedShape::Qwen3_8B,
        );
        plan.times.unwrap().rollout.unwrap() / 3600.0
    };
    // The same trajectories, in groups of 16 and of 2.
    let [large, small] = [
        hours(&["rl.prompts_per_step=512", "rl.group_size=16"]),
        hours(&["rl.prompts_per_step=4096", "rl.group_size=2"]),
    ];
    assert!(2.0 * large < small, "{large} {small}");
}

#[test]
fn a_policy_that_is_only_played_has_no_moments_and_room_for_a_larger_cache() {
    let trained = config("hotpotqa-search", &["precision=bf16"]);
    let shape = PublishedShape::Qwen3_4B;
    assert_eq!(on(&trained, "4090", shape).fits(), Some(false));
    let mut played = trained;
    (played.sft, played.rl) = (None, None);
    let plan = on(&played, "4090", shape);
    let names: Vec<&str> = plan.memory.always.iter().map(|part| part.name).collect();
    assert!(!names.contains(&"moments of the optimiser"), "{names:?}");
    let phases: Vec<&str> = plan.memory.phases.iter().map(|phase| phase.name).collect();
    assert_eq!(phases, ["rollout and evaluation"]);
}

#[test]
fn models_with_the_same_checkpoint_are_counted_once_and_replayed_groups_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    std::fs::create_dir(&base).unwrap();
    let shape = config("quickstart", &[]).shape(512).unwrap().unwrap();
    let json = serde_json::to_string(&shape).unwrap();
    std::fs::write(base.join("config.json"), json).unwrap();
    let weights = |models: &[(&str, &str)]| -> u64 {
        let mut settings: Vec<String> = (models.iter())
            .map(|(name, more)| {
                let base = base.display();
                format!("models.{name}={{policy={{checkpoint='{base}'{more}}}}}")
            })
            .collect();
        let granted: Vec<String> = models.iter().map(|(name, _)| format!("'{name}'")).collect();
        settings.push(format!("plugins.judge.models=[{}]", granted.join(",")));
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let plan = Plan::new(&config("quickstart", &settings), &cpu(1 << 40)).unwrap();
        let mut parts = plan.memory.always.into_iter();
        let part = parts.find(|part| part.name == "weights of models that plugins ask");
        part.unwrap().bytes
    };
    let one = weights(&[("a", "")]);
    assert_eq!(
        weights(&[("a", ""), ("b", ", context=128, max_tokens=8")]),
        one
    );

    let buffer = "rl.replay_buffer={groups_per_step=5, max_age=3}";
    let plan = Plan::new(&config("quickstart", &[buffer]), &cpu(1 << 40)).unwrap();
    let mut parts = plan.memory.always.into_iter();
    let part = parts
        .find(|part| part.name == "groups that may train again")
        .unwrap();
    // 15 groups of 8 trajectories with up to 384 tokens.
    assert_eq!(part.bytes, 15 * 8 * 384 * 8);
}
