//! Turns an author's functions into the exports of a component.

mod environment;

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings;
use crate::tool::Entry;
use crate::{CallContext, Error, Grading, Observation, Score, Task, ToolDefinition, Trajectory};

pub use environment::{EnvironmentPlugin, Environments};

thread_local! {
    // Built once, after `init`, so that the snapshot contains them and calls only look names up.
    static DEFINITIONS: RefCell<Option<Vec<ToolDefinition>>> = const { RefCell::new(None) };
}

/// A plugin of tools, as [`plugin!`](crate::plugin) makes it.
pub trait ToolPlugin {
    #[doc(hidden)]
    const TOOLS: &'static [Entry];

    #[doc(hidden)]
    fn run_init(config: &str) -> Result<(), Error>;

    /// Reads the configuration, runs the author's `init` and builds the tools' definitions.
    fn init(config: &str) -> Result<(), Error> {
        Self::run_init(config)?;
        let definitions = define(Self::TOOLS)?;
        DEFINITIONS.with_borrow_mut(|kept| *kept = Some(definitions));
        Ok(())
    }

    /// The tools' definitions; none before `init` if they depend on it.
    fn list_tools() -> Vec<ToolDefinition> {
        DEFINITIONS.with_borrow(|kept| match kept {
            Some(definitions) => definitions.clone(),
            None => define(Self::TOOLS).unwrap_or_default(),
        })
    }

    /// Makes one call of the tool with this name.
    fn call(name: &str, arguments: &str, context: &CallContext) -> Result<Observation, Error> {
        let position = DEFINITIONS.with_borrow_mut(|kept| {
            if kept.is_none() {
                *kept = Some(define(Self::TOOLS)?);
            }
            Ok(kept
                .iter()
                .flatten()
                .position(|definition| definition.name == name))
        })?;
        match position {
            Some(position) => (Self::TOOLS[position].call)(arguments, context),
            None => Err(Error::NotFound(format!("no tool named `{name}`"))),
        }
    }
}

fn define(tools: &[Entry]) -> Result<Vec<ToolDefinition>, Error> {
    tools.iter().map(|tool| (tool.definition)()).collect()
}

/// A plugin that is a reward, as [`plugin!`](crate::plugin) makes it.
pub trait RewardPlugin {
    /// Reads the configuration and runs the author's `init`.
    fn init(config: &str) -> Result<(), Error>;

    /// One result per trajectory, in order.
    fn grade(
        task: &Task,
        group: &[Trajectory],
        grading: &Grading,
    ) -> Result<Vec<Result<Score, Error>>, Error>;
}

/// Gives a plugin the generated export traits.
#[doc(hidden)]
pub struct Tools<P>(PhantomData<P>);

/// Gives a reward the generated export traits.
#[doc(hidden)]
pub struct Rewards<P>(PhantomData<P>);

impl<P: ToolPlugin> bindings::lifecycle::exports::rlf::plugin::lifecycle::Guest for Tools<P> {
    fn init(config: String) -> Result<(), Error> {
        P::init(&config)
    }
}

impl<P: ToolPlugin> bindings::tool::exports::rlf::plugin::tool::Guest for Tools<P> {
    fn list_tools() -> Vec<ToolDefinition> {
        P::list_tools()
    }

    fn call(name: String, arguments: String, context: CallContext) -> Result<Observation, Error> {
        P::call(&name, &arguments, &context)
    }
}

impl<P: RewardPlugin> bindings::lifecycle::exports::rlf::plugin::lifecycle::Guest for Rewards<P> {
    fn init(config: String) -> Result<(), Error> {
        P::init(&config)
    }
}

impl<P: RewardPlugin> bindings::reward::exports::rlf::plugin::reward::Guest for Rewards<P> {
    fn grade(
        task: Task,
        group: Vec<Trajectory>,
        grading: Grading,
    ) -> Result<Vec<Result<Score, Error>>, Error> {
        P::grade(&task, &group, &grading)
    }
}

/// Makes this crate a plugin: `plugin!(tools: [first, second])`, `plugin!(reward: name)` or `plugin!(environment:
/// Session)`, each preceded by `init: function` if it has one.
///
/// Declares a type `Plugin`, which native tests call through [`testing`](crate::testing), and, in a
/// build for WebAssembly, the component's exports. Once per crate.
#[macro_export]
macro_rules! plugin {
    (init: $init:path, tools: [$($tool:ident),+ $(,)?] $(,)?) => {
        $crate::plugin!(@tools (|config| $crate::lifecycle::initialise($init, config)) $($tool),+);
    };
    (tools: [$($tool:ident),+ $(,)?] $(,)?) => {
        $crate::plugin!(@tools ($crate::lifecycle::refuse_configuration) $($tool),+);
    };
    (init: $init:path, reward: $reward:ident $(,)?) => {
        $crate::plugin!(@reward (|config| $crate::lifecycle::initialise($init, config)) $reward);
    };
    (reward: $reward:ident $(,)?) => {
        $crate::plugin!(@reward ($crate::lifecycle::refuse_configuration) $reward);
    };
    (init: $init:path, environment: $session:ty $(,)?) => {
        $crate::plugin!(
            @environment
            (|config| {
                $crate::lifecycle::initialise_environment::<
                    <$session as $crate::environment::Environment>::Shared,
                    _,
                    _,
                >($init, config)
            })
            ($crate::lifecycle::shared)
            $session
        );
    };
    (environment: $session:ty $(,)?) => {
        $crate::plugin!(
            @environment
            ($crate::lifecycle::refuse_configuration)
            (|| ::std::result::Result::Ok(&()))
            $session
        );
    };
    (@tools ($init:expr) $($tool:ident),+) => {
        /// This crate's tools, as the host sees them.
        pub struct Plugin;

        impl $crate::ToolPlugin for Plugin {
            const TOOLS: &'static [$crate::tool::Entry] = &[$($crate::tool::Entry::for_tool::<$tool>()),+];

            fn run_init(config: &str) -> ::std::result::Result<(), $crate::Error> {
                let init: fn(&str) -> ::std::result::Result<(), $crate::Error> = $init;
                init(config)
            }
        }

        #[cfg(target_family = "wasm")]
        const _: () = {
            type Exported = $crate::Tools<Plugin>;
            $crate::bindings::lifecycle::export!(Exported with_types_in $crate::bindings::lifecycle);
            $crate::bindings::tool::export!(Exported with_types_in $crate::bindings::tool);
        };
    };
    (@reward ($init:expr) $reward:ident) => {
        /// This crate's reward, as the host sees it.
        pub struct Plugin;

        impl $crate::RewardPlugin for Plugin {
            fn init(config: &str) -> ::std::result::Result<(), $crate::Error> {
                let init: fn(&str) -> ::std::result::Result<(), $crate::Error> = $init;
                init(config)
            }

            fn grade(
                task: &$crate::Task,
                group: &[$crate::Trajectory],
                grading: &$crate::Grading,
            ) -> ::std::result::Result<
                ::std::vec::Vec<::std::result::Result<$crate::Score, $crate::Error>>,
                $crate::Error,
            > {
                <$reward as $crate::reward::Reward>::grade(task, group, grading)
            }
        }

        #[cfg(target_family = "wasm")]
        const _: () = {
            type Exported = $crate::Rewards<Plugin>;
            $crate::bindings::lifecycle::export!(Exported with_types_in $crate::bindings::lifecycle);
            $crate::bindings::reward::export!(Exported with_types_in $crate::bindings::reward);
        };
    };
    (@environment ($init:expr) ($shared:expr) $session:ty) => {
        /// This crate's environment, as the host sees it.
        // Not public: otherwise the session, a part of its interface, would have to be public too.
        struct Plugin;

        // Natively only tests use it, and through it all functions of a session.
        const _: Plugin = Plugin;

        impl $crate::EnvironmentPlugin for Plugin {
            type Session = $session;

            fn init(config: &str) -> ::std::result::Result<(), $crate::Error> {
                let init: fn(&str) -> ::std::result::Result<(), $crate::Error> = $init;
                init(config)
            }

            fn shared() -> ::std::result::Result<
                &'static <$session as $crate::environment::Environment>::Shared,
                $crate::Error,
            > {
                let shared: fn() -> ::std::result::Result<
                    &'static <$session as $crate::environment::Environment>::Shared,
                    $crate::Error,
                > = $shared;
                shared()
            }
        }

        #[cfg(target_family = "wasm")]
        const _: () = {
            type Exported = $crate::Environments<Plugin>;
            $crate::bindings::lifecycle::export!(Exported with_types_in $crate::bindings::lifecycle);
            $crate::bindings::environment::export!(Exported with_types_in $crate::bindings::environment);
        };
    };
}
