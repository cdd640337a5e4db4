use super::*;

fn rl(text: &str) -> Result<(), String> {
    let config: RlConfig = toml::from_str(text).map_err(|e| e.to_string())?;
    config.validate().map_err(|e| e.to_string())
}

#[test]
fn defaults_are_valid() {
    assert_eq!(rl(""), Ok(()));
    assert_eq!(SftConfig::default().validate(), Ok(()));
    assert_eq!(CheckpointConfig::default().validate(), Ok(()));
}

#[test]
fn a_group_of_one_is_refused_where_a_group_is_compared() {
    let message = rl("group_size = 1").unwrap_err();
    assert!(
        message.contains("rl.group_size = 1") && message.contains("at least 2"),
        "{message}"
    );
    for alone in ["reinforce++", "remax", "ppo"] {
        let text = format!("group_size = 1\nalgorithm = \"{alone}\"");
        assert_eq!(rl(&text), Ok(()));
    }
    for algorithm in ["mt-grpo", "dr-grpo", "rloo", "reinforce++-baseline"] {
        let text = format!("algorithm = \"{algorithm}\"");
        assert_eq!(rl(&text), Ok(()));
        assert!(rl(&format!("group_size = 1\n{text}")).is_err());
    }
}

#[test]
fn a_cap_of_importance_weights_below_one_is_refused() {
    assert_eq!(rl("importance_cap = 1.0"), Ok(()));
    for cap in ["0.9", "inf", "nan"] {
        let message = rl(&format!("importance_cap = {cap}")).unwrap_err();
        assert!(message.contains("rl.importance_cap = "), "{message}");
    }
}

#[test]
fn a_staleness_that_needs_too_many_copies_is_refused_and_none_is_not_written_out() {
    for staleness in [0, 1, 16] {
        assert_eq!(rl(&format!("staleness = {staleness}")), Ok(()));
    }
    let message = rl("staleness = 17").unwrap_err();
    assert!(message.contains("`rl.staleness = 17`"), "{message}");
    let table = toml::Table::try_from(RlConfig::default()).unwrap();
    assert!(!table.contains_key("staleness"), "{table}");
}

#[test]
fn a_replay_buffer_is_for_algorithms_that_compare_with_the_group_alone() {
    let buffer = "replay_buffer = { groups_per_step = 4, max_age = 2 }";
    for algorithm in ["grpo", "mt-grpo", "dr-grpo", "rloo"] {
        assert_eq!(
            rl(&format!("algorithm = \"{algorithm}\"\n{buffer}")),
            Ok(())
        );
    }
    for algorithm in ["reinforce++", "reinforce++-baseline", "remax", "ppo"] {
        let message = rl(&format!("algorithm = \"{algorithm}\"\n{buffer}")).unwrap_err();
        assert!(message.contains("rl.replay_buffer"), "{message}");
        assert!(message.contains("`rloo`"), "{message}");
    }
    for (key, value) in [
        ("groups_per_step", 0),
        ("groups_per_step", 100_001),
        ("max_age", 0),
    ] {
        let message = rl(&format!("replay_buffer = {{ {key} = {value} }}")).unwrap_err();
        let wanted = format!("`rl.replay_buffer.{key} = {value}`");
        assert!(message.contains(&wanted), "{message}");
    }
}

#[test]
fn an_empty_group_is_refused_with_advice_that_helps() {
    let message = rl("group_size = 0\nalgorithm = \"reinforce++\"").unwrap_err();
    assert_eq!(message, "`rl.group_size = 0`: must be at least 1");
    let message = rl("group_size = 0").unwrap_err();
    assert!(message.contains("at least 2"), "{message}");
}

#[test]
fn truncated_sampling_is_refused_with_the_reason() {
    for (key, reason) in ABSENT_RL_KEYS {
        let message = rl(&format!("{key} = 1")).unwrap_err();
        assert!(message.contains(&format!("`{key}`")), "{message}");
        assert!(reason.contains("off-policy"), "{reason}");
    }
    assert_eq!(ABSENT_RL_KEYS.map(|(key, _)| key), ["top_p", "top_k"]);
}

#[test]
fn a_key_of_an_earlier_version_is_read_under_its_new_name() {
    let config: RlConfig = toml::from_str("max_dropped_groups = 0.25").unwrap();
    assert_eq!(config.max_dropped_share, 0.25);
}

#[test]
fn unknown_keys_are_refused() {
    assert!(rl("group_sizes = 8").unwrap_err().contains("group_sizes"));
    assert!(rl("[optimizer]\nlr = 1").unwrap_err().contains("lr"));
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for text in [
        "temperature = 0.0",
        "clip_low = 1.5",
        "clip_high = nan",
        "dual_clip = 1.0",
        "dual_clip = inf",
        "kl_coefficient = -1.0",
        "gamma = 0.0",
        "gae_lambda = 1.1",
        "gae_lambda = nan",
        "critic = {learning_rate = 0.0}",
        "critic = {loss_coefficient = 0.0}",
        "critic = {clip = -0.1}",
        "adaptive_kl = {}",
        "kl_coefficient = 0.1\nadaptive_kl = {target = 0.0}",
        "kl_coefficient = 0.1\nadaptive_kl = {horizon = 0.0}",
        "kl_in = \"reward\"\nalgorithm = \"remax\"",
        "kl_in = \"reward\"\nkl_coefficient = 0.1\nrefill = 1",
        "mini_batches = 0",
        "micro_batch_tokens = 0",
        "max_dropped_share = 2.0",
        "refill = 101",
        "refill = 1\nalgorithm = \"remax\"",
        "refill = 1\nalgorithm = \"ppo\"",
        "refill = 1\n[curriculum]",
        "algorithm = \"remax\"\noverlong = {max_tokens = 9, buffer = 3}",
        "overlong = {max_tokens = 9, buffer = 10}",
        "[guards]\nmax_excluded_share = 2.0",
        "[guards]\nmin_entropy = -1.0",
        "[guards]\nmax_idle_step = 3",
        "[optimizer]\nlearning_rate = 0.0",
        "[optimizer]\nbeta1 = 1.0",
        "[optimizer]\nmax_grad_norm = -1.0",
    ] {
        assert!(rl(text).is_err(), "{text} was accepted");
    }
}

#[test]
fn a_weight_of_the_prompt_is_from_0_to_1() {
    for (weight, accepted) in [
        (0.0, true),
        (1.0, true),
        (-0.1, false),
        (1.5, false),
        (f64::NAN, false),
    ] {
        let config = SftConfig {
            prompt_loss_weight: weight,
            ..SftConfig::default()
        };
        assert_eq!(config.validate().is_ok(), accepted, "{weight}");
    }
}

#[test]
fn weights_of_calls_are_from_0_to_1000() {
    for (weight, accepted) in [
        (0.0, true),
        (1000.0, true),
        (-0.1, false),
        (1000.1, false),
        (f64::NAN, false),
    ] {
        let of_names = SftConfig {
            tool_name_weight: weight,
            ..SftConfig::default()
        };
        let of_arguments = SftConfig {
            arguments_weight: weight,
            ..SftConfig::default()
        };
        for config in [of_names, of_arguments] {
            assert_eq!(config.validate().is_ok(), accepted, "{weight}");
        }
    }
}

#[test]
fn kl_goes_into_the_loss_or_into_the_reward_and_never_into_both() {
    let grpo = RlConfig {
        kl_coefficient: 0.1,
        ..RlConfig::default()
    };
    for (algorithm, kl_in, place) in [
        (Algorithm::Grpo, None, KlPlace::Loss),
        (Algorithm::Grpo, Some(KlPlace::Reward), KlPlace::Reward),
        (Algorithm::ReinforcePlusPlus, None, KlPlace::Reward),
        (Algorithm::Ppo, None, KlPlace::Reward),
        (Algorithm::Ppo, Some(KlPlace::Loss), KlPlace::Loss),
    ] {
        let config = RlConfig {
            algorithm,
            kl_in,
            ..grpo.clone()
        };
        assert_eq!(config.kl_place(), place);
        let loss = config.policy_loss(0.2);
        let (coefficient, estimator) = match place {
            KlPlace::Loss => (0.2, KlEstimator::K3),
            KlPlace::Reward => (0.0, KlEstimator::K1),
        };
        assert_eq!(loss.kl_coefficient, coefficient);
        assert_eq!(loss.kl_estimator, estimator);
    }
}

#[test]
fn an_estimator_whose_gradient_is_0_on_average_is_refused_in_the_loss() {
    let message = rl("kl_estimator = \"k1\"").unwrap_err();
    assert!(
        message.contains("rl.kl_estimator = k1") && message.contains("`kl_in = \"reward\"`"),
        "{message}"
    );
    for accepted in [
        "kl_estimator = \"k2\"",
        "kl_estimator = \"k1\"\nkl_in = \"reward\"",
        "kl_estimator = \"k1\"\nalgorithm = \"ppo\"",
        "kl_estimator = \"k3\"\nalgorithm = \"reinforce++\"",
    ] {
        let with_kl = format!("kl_coefficient = 0.1\n{accepted}");
        assert_eq!(rl(&with_kl), Ok(()), "{accepted}");
    }
}

#[test]
fn settings_that_nothing_uses_are_refused_with_what_uses_them() {
    for (unused, used_by) in [
        ("gae_lambda = 0.95", "algorithm = \"ppo\""),
        ("critic = {clip = 0.5}", "algorithm = \"ppo\""),
        ("kl_in = \"reward\"", "kl_coefficient = 0.001"),
        ("kl_estimator = \"k2\"", "kl_coefficient = 0.001"),
    ] {
        let message = rl(unused).unwrap_err();
        let key = unused.split(' ').next().unwrap();
        assert!(
            message.starts_with(&format!("`rl.{key} = ")) && message.contains("leave"),
            "{message}"
        );
        assert_eq!(rl(&format!("{used_by}\n{unused}")), Ok(()), "{unused}");
    }
    // Written out, the defaults are no mistake.
    assert_eq!(rl("gae_lambda = 1.0\ncritic = {clip = 0.2}"), Ok(()));
}

#[test]
fn the_learning_rate_of_rl_has_a_default_of_its_own_beside_other_keys_too() {
    let rate = |text: &str| {
        let config: RlConfig = toml::from_str(text).unwrap();
        config.optimizer.learning_rate
    };
    for (text, wanted) in [
        ("", 1e-6),
        ("[optimizer]\nwarmup_steps = 5", 1e-6),
        ("[optimizer]\nlearning_rate = 3e-4", 3e-4),
    ] {
        assert_eq!(rate(text), wanted, "{text}");
    }
    assert_eq!(SftConfig::default().optimizer.learning_rate, 1e-5);
    // Every key of the table is read, and written back.
    let config = RlConfig {
        optimizer: OptimizerConfig {
            learning_rate: 2e-6,
            warmup_steps: 3,
            schedule: Schedule::Cosine,
            final_share: 0.2,
            weight_decay: 0.3,
            beta1: 0.4,
            beta2: 0.5,
            epsilon: 0.6,
            max_grad_norm: 0.7,
        },
        ..RlConfig::default()
    };
    let written = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<RlConfig>(&written).unwrap(), config);
}

#[test]
fn new_keys_are_not_written_while_they_have_their_defaults() {
    let written = toml::to_string(&RlConfig::default()).unwrap();
    for key in [
        "kl_in",
        "kl_estimator",
        "adaptive_kl",
        "gae_lambda",
        "critic",
    ] {
        assert!(!written.contains(key), "{key}: {written}");
    }
    let text = "algorithm = \"ppo\"\nkl_coefficient = 0.1\nadaptive_kl = {}\n[critic]\nclip = 0.5";
    let config: RlConfig = toml::from_str(text).unwrap();
    config.validate().unwrap();
    let written = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<RlConfig>(&written).unwrap(), config);
}

#[test]
fn a_curriculum_is_off_by_default_and_refuses_values_that_mean_nothing() {
    assert_eq!(RlConfig::default().curriculum, None);
    let written = toml::to_string(&RlConfig::default()).unwrap();
    assert!(!written.contains("curriculum"), "{written}");
    assert_eq!(rl("[curriculum]"), Ok(()));
    assert_eq!(rl("[curriculum]\nfloor = 1.0"), Ok(()));
    for (setting, why) in [
        ("floor = 0.0", "never be tried again"),
        ("floor = 1.5", "at most 1"),
        ("floor = nan", "at most 1"),
        ("prior_success = 0.0", "above 0 and below 1"),
        ("prior_success = 1.0", "above 0 and below 1"),
        ("prior_weight = 0.0", "number of trajectories"),
        ("prior_weight = inf", "number of trajectories"),
        ("half_life = -1.0", "number of steps"),
        ("half_life = 1e9", "number of steps"),
        ("half_lives = 3.0", "unknown field"),
    ] {
        let message = rl(&format!("[curriculum]\n{setting}")).unwrap_err();
        assert!(message.contains(why), "{setting}: {message}");
    }
}
