//! The engine, its functions for the prelude, and its loop: a task, then the promises that it left, then the next
//! task.

use std::{cell::OnceCell, rc::Rc};

use rquickjs::{
    Array, Context, Ctx, Error, Exception, FromJs, Function, IntoJs, Module, Object, Persistent,
    Promise, Result, Runtime, TypedArray, Value, promise::PromiseState,
};

use crate::{files::Refused, host, modules, raw, state::State};

/// Stack that programs may use before a RangeError, in bytes of linear memory: 8,000 plain calls. Every call also
/// uses the host's own stack, which the engine cannot see. Recursive functions fit into 8 of its 16 MiB. Nesting inside
/// the engine (JSON a hundred thousand deep) uses more, and ends at the host's limit.
const STACK: usize = if cfg!(target_family = "wasm") {
    2 * 1024 * 1024
} else {
    // A test's thread has no larger stack.
    512 * 1024
};

/// Node's part, in the order of evaluation: each file can `require` the earlier ones.
const PRELUDE: &[(&str, &str)] = &[
    ("internal/errors", include_str!("prelude/errors.js")),
    ("internal/inspect", include_str!("prelude/inspect.js")),
    ("events", include_str!("prelude/events.js")),
    ("path", include_str!("prelude/path.js")),
    ("buffer", include_str!("prelude/buffer.js")),
    ("util", include_str!("prelude/util.js")),
    ("internal/timers", include_str!("prelude/timers.js")),
    ("fs", include_str!("prelude/fs.js")),
    ("assert", include_str!("prelude/assert.js")),
    ("internal/streams", include_str!("prelude/streams.js")),
    ("process", include_str!("prelude/process.js")),
    ("console", include_str!("prelude/console.js")),
    ("readline", include_str!("prelude/readline.js")),
    ("os", include_str!("prelude/os.js")),
    ("internal/web", include_str!("prelude/web.js")),
    ("internal/main", include_str!("prelude/main.js")),
];

/// The end of a program, in the contract's terms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Completed,
    Exited(i32),
    Raised(Fault),
    Rejected(Fault),
}

/// A thrown value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) traceback: String,
}

/// The environment that a program runs in.
#[derive(Debug, Default)]
pub(crate) struct Program<'a> {
    pub(crate) code: &'a str,
    /// The first one is the program's name.
    pub(crate) arguments: Vec<String>,
}

/// An engine with the prelude in it, for one program or one notebook.
pub(crate) struct Engine {
    context: Context,
    hooks: Persistent<Object<'static>>,
    /// The functions that answer requests, if a plugin is loaded.
    plugin: OnceCell<Persistent<Object<'static>>>,
    state: Rc<State>,
}

impl Engine {
    /// Builds the engine. It is never freed, because its contents refer to it, and an instance's end frees its memory
    /// anyway. An error is a bug in the prelude.
    pub(crate) fn new() -> std::result::Result<&'static Self, String> {
        let failed = |error: Error| format!("the engine cannot be made: {error}");
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_max_stack_size(STACK);
        let context = Context::full(&runtime).map_err(failed)?;
        let state = Rc::new(State::default());
        runtime.set_loader(modules::Find(state.clone()), modules::Load(state.clone()));
        let exiting = state.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || exiting.exit.get().is_some())));
        let hooks = context.with(|ctx| {
            prelude(&ctx, &state)
                .map(|hooks| Persistent::save(&ctx, hooks))
                .map_err(|error| describe(&ctx, error))
        })?;
        modules::set_hooks(hooks.clone());
        let tracked = hooks.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, handled| {
                let Ok(hooks) = tracked.clone().restore(&ctx) else {
                    return;
                };
                let told = hooks
                    .get::<_, Function>("rejection")
                    .and_then(|tell| tell.call::<_, ()>((promise, reason, handled)));
                if told.is_err() {
                    ctx.catch();
                }
            },
        )));
        Ok(Box::leak(Box::new(Self {
            context,
            hooks,
            plugin: OnceCell::new(),
            state,
        })))
    }

    /// Takes the configuration of `init`: the file of a plugin, under `plugin`. An error says what is wrong with it.
    pub(crate) fn configure(&self, config: &str) -> std::result::Result<(), String> {
        self.state.is_plugin.set(true);
        self.state.started.set(true);
        let wrong = self.with(|run| {
            run.hook::<_, ()>("plugin", ())
                .map_err(|error| run.fatal(error))?;
            let module = Module::import(&run.ctx, modules::PLUGIN);
            let module: Object = run.awaited(module)?;
            let loaded = (module.get::<_, Function>("load"))
                .and_then(|load| load.call::<_, Promise>((run.hooks.clone(), config)));
            let wrong: String = run.awaited(loaded)?;
            let module = Persistent::save(&run.ctx, module);
            self.plugin.set(module).map_err(|_| Ended::Completed)?;
            Ok(wrong)
        });
        match wrong {
            Ok(wrong) if wrong.is_empty() => Ok(()),
            Ok(wrong) => Err(wrong),
            Err(Ended::Raised(fault) | Ended::Rejected(fault)) => {
                Err(format!("{}: {}", fault.kind, fault.message))
            }
            Err(Ended::Exited(code)) => Err(format!("it called process.exit({code})")),
            Err(Ended::Completed) => Err("it was loaded twice".to_owned()),
        }
    }

    /// True if this engine has loaded a plugin, and answers requests.
    pub(crate) fn has_plugin(&self) -> bool {
        self.plugin.get().is_some()
    }

    /// Answers a request to the plugin. Returns how it ended, and the answer.
    pub(crate) fn request(&self, text: &str) -> (Ended, Option<String>) {
        let answer = self.with(|run| {
            let Some(plugin) = self.plugin.get() else {
                return Err(Ended::Completed);
            };
            let answer = (plugin.clone().restore(&run.ctx))
                .and_then(|plugin| plugin.get::<_, Function>("request"))
                .and_then(|request| request.call::<_, Promise>((text,)));
            run.awaited(answer)
        });
        match answer {
            Ok(answer) => (Ended::Completed, Some(answer)),
            Err(ended) => (ended, None),
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Runs a program from start to end.
    pub(crate) fn execute(&self, program: &Program<'_>) -> Ended {
        self.with(|run| {
            let name = program.arguments.first().map_or("main.js", String::as_str);
            let rest: Vec<String> = program.arguments.iter().skip(1).cloned().collect();
            let started = run.hook::<_, ()>("main", (program.code, name, rest));
            run.after(started)
        })
    }

    /// Runs a notebook's cell: returns how it ended, its value as text, and its displays, as pairs of media type and
    /// text.
    pub(crate) fn cell(
        &self,
        code: &str,
        name: &str,
    ) -> (Ended, Option<String>, Vec<(String, String)>) {
        self.state.exit.set(None);
        self.with(|run| {
            let began = run.hook::<_, ()>("cell", (code, name));
            let began = began.and_then(|()| raw::evaluate_cell(&run.ctx, code, name));
            let promise = began.and_then(|value| Promise::from_js(&run.ctx, value));
            self.state.started.set(promise.is_ok());
            let promise = match promise {
                Ok(promise) => promise,
                Err(error) => return (run.settle(Err(error)), None, Vec::new()),
            };
            // Its failure belongs to the cell and is not an unhandled rejection.
            let watched = run.hook::<_, ()>("watch", (promise.clone(),));
            let mut ended = run.settle(watched);
            let mut value = None;
            if let Some(settled) = promise.result::<Object>() {
                let shown = settled.and_then(|result| {
                    run.hook::<_, Option<String>>("value", (result.get::<_, Value>("value")?,))
                });
                match (shown, &ended) {
                    (Ok(text), Ended::Completed) => value = text,
                    (Err(error), Ended::Completed) => ended = run.fatal(error),
                    (Err(_), _) => _ = run.ctx.catch(),
                    _ => {}
                }
            }
            let displays = run.hook::<_, Vec<Vec<String>>>("displays", ());
            let pair = |mut pair: Vec<String>| Some((pair.pop()?, pair.pop()?));
            let displays = displays.unwrap_or_default().into_iter().filter_map(pair);
            (
                ended,
                value,
                displays.map(|(data, kind)| (kind, data)).collect(),
            )
        })
    }

    /// Compiles a module for `require` and `import`: a byte for its kind, and the engine's bytecode.
    pub(crate) fn compile(&self, name: &str, source: &str) -> std::result::Result<Vec<u8>, Fault> {
        self.with(|run| {
            let file = modules::file_of(name);
            let compiled = run
                .hook::<_, ()>("remember", (&*file, source))
                .and_then(|()| modules::compile(&run.ctx, source, &file));
            compiled.map_err(|error| run.fault(error, false))
        })
    }

    fn with<R>(&self, work: impl FnOnce(&Run<'_, '_>) -> R) -> R {
        self.context.with(|ctx| {
            let hooks = self.hooks.clone().restore(&ctx);
            let hooks = hooks.expect("they were saved in this very engine");
            work(&Run {
                ctx,
                hooks,
                state: &self.state,
            })
        })
    }
}

/// The entered engine.
struct Run<'js, 'a> {
    ctx: Ctx<'js>,
    hooks: Object<'js>,
    state: &'a State,
}

impl<'js> Run<'js, '_> {
    fn hook<A, R>(&self, name: &str, arguments: A) -> Result<R>
    where
        A: rquickjs::function::IntoArgs<'js>,
        R: FromJs<'js>,
    {
        self.hooks.get::<_, Function>(name)?.call(arguments)
    }

    /// Continues from the end of the program's text until all its pending work and the program have ended.
    fn after(&self, last: Result<()>) -> Ended {
        match self.settle(last) {
            Ended::Completed => match self.hook::<_, Option<i32>>("exitCode", ()) {
                Ok(None) => Ended::Completed,
                Ok(Some(code)) => Ended::Exited(code),
                Err(error) => self.fatal(error),
            },
            ended => ended,
        }
    }

    /// Runs until no pending work is left.
    fn settle(&self, mut last: Result<()>) -> Ended {
        loop {
            if let Err(error) = last {
                match self.fatal(error) {
                    // The program listens to `uncaughtException`.
                    Ended::Completed => {}
                    ended => return ended,
                }
            }
            last = match self.turn() {
                Ok(true) => Ok(()),
                Ok(false) => match self.hook::<_, bool>("beforeExit", ()) {
                    Ok(true) => Ok(()),
                    Ok(false) => return Ended::Completed,
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            };
        }
    }

    /// The value of a promise, as soon as it is settled. Tasks that are left then do not run. An error is the end of what
    /// was asked for.
    fn awaited<T: FromJs<'js>>(
        &self,
        promise: Result<Promise<'js>>,
    ) -> std::result::Result<T, Ended> {
        let ended = |error| self.fatal(error);
        let promise = promise.map_err(ended)?;
        self.hook::<_, ()>("watch", (promise.clone(),))
            .map_err(ended)?;
        loop {
            if let Some(result) = promise.result() {
                return result.map_err(ended);
            }
            match self.turn() {
                Ok(true) => {}
                Ok(false) if promise.state() != PromiseState::Pending => {}
                Ok(false) => {
                    let error = Exception::throw_message(
                        &self.ctx,
                        "it waits for a promise that nobody settles",
                    );
                    return Err(self.fatal(error));
                }
                Err(error) => match self.fatal(error) {
                    // The plugin listens to `uncaughtException`.
                    Ended::Completed => {}
                    ended => return Err(ended),
                },
            }
        }
    }

    /// Runs the pending promises, and then the next task; false if there is none.
    fn turn(&self) -> Result<bool> {
        loop {
            let ticks = self.hook::<_, bool>("ticks", ())?;
            let mut jobs = false;
            while self.ctx.execute_pending_job() {
                jobs = true;
                if self.state.exit.get().is_some() {
                    return Err(Error::Exception);
                }
            }
            if !ticks && !jobs {
                break;
            }
        }
        self.hook::<_, ()>("unhandled", ())?;
        self.hook("turn", ())
    }

    /// Ends the program with `error`, which goes to the program's own handler or, without one, to standard error.
    fn fatal(&self, error: Error) -> Ended {
        if let Some(code) = self.state.exit.get() {
            self.ctx.catch();
            return Ended::Exited(code);
        }
        let value = thrown(&self.ctx, error);
        let ended = match self.hook::<_, bool>("uncaught", (value.clone(),)) {
            Ok(true) => return Ended::Completed,
            Ok(false) => {
                let fault = self.describe(value, true);
                if self.state.started.get() {
                    Ended::Raised(fault)
                } else {
                    Ended::Rejected(fault)
                }
            }
            Err(error) => Ended::Raised(self.fault(error, true)),
        };
        // Listeners of `exit` may call `process.exit`.
        match self.hook::<_, Option<i32>>("exitCode", ()) {
            Err(_) if self.state.exit.get().is_some() => {
                Ended::Exited(self.state.exit.get().unwrap_or(1))
            }
            _ => ended,
        }
    }

    fn fault(&self, error: Error, print: bool) -> Fault {
        self.describe(thrown(&self.ctx, error), print)
    }

    fn describe(&self, value: Value<'js>, print: bool) -> Fault {
        let told = self.hook::<_, Vec<String>>("fatal", (value, print));
        let mut parts = told.unwrap_or_else(|error| {
            let text = describe(&self.ctx, error);
            vec!["Error".to_owned(), text.clone(), text]
        });
        let mut next = || {
            if parts.is_empty() {
                String::new()
            } else {
                parts.remove(0)
            }
        };
        Fault {
            kind: next(),
            message: next(),
            traceback: next(),
        }
    }
}

/// The thrown value, taken from the engine; errors of the binding become JavaScript's.
fn thrown<'js>(ctx: &Ctx<'js>, error: Error) -> Value<'js> {
    if !error.is_exception() {
        _ = Exception::throw_message(ctx, &error.to_string());
    }
    ctx.catch()
}

/// Describes an error in the prelude itself, where no other code can report it.
fn describe(ctx: &Ctx<'_>, error: Error) -> String {
    let value = thrown(ctx, error);
    match value.as_exception() {
        Some(exception) => exception.to_string(),
        None => format!("{value:?}"),
    }
}

/// Evaluates the prelude; returns the object that it gives to [`Engine`].
fn prelude<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Object<'js>> {
    let native = natives(ctx, state)?;
    let builtins = Object::new(ctx.clone())?;
    let known = builtins.clone();
    let require = Function::new(ctx.clone(), move |name: String| known.get::<_, Value>(name))?;
    let mut exports = Object::new(ctx.clone())?;
    for (name, source) in PRELUDE {
        let text = format!("(function (native, require, module) {{{source}\n}})");
        let function = raw::evaluate(ctx, &text, &format!("node:{name}"))?;
        let function = Function::from_js(ctx, function)?;
        let module = Object::new(ctx.clone())?;
        module.set("exports", Object::new(ctx.clone())?)?;
        function.call::<_, ()>((native.clone(), require.clone(), module.clone()))?;
        builtins.set(*name, module.get::<_, Value>("exports")?)?;
        exports = module.get("exports")?;
    }
    Ok(exports)
}

/// The functions that the prelude calls on this side.
fn natives<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    macro_rules! provide {
        ($name:literal, |$ctx:ident, $state:ident $(, $argument:ident: $type:ty)*| $body:expr) => {{
            let shared = state.clone();
            let function = Function::new(ctx.clone(), move |$ctx: Ctx<'js> $(, $argument: $type)*| {
                let $state = &*shared;
                _ = $state;
                _ = &$ctx;
                $body
            })?;
            native.set($name, function.with_name($name)?)?;
        }};
    }
    provide!("write", |ctx, state, fd: u8, data: Value<'js>| {
        // An asynchronous function can continue after `process.exit`.
        if state.exit.get().is_some() {
            return Err(raw::throw_uncatchable(&ctx));
        }
        let fd = if fd == 2 { 2 } else { 1 };
        match data.as_string() {
            Some(text) => host::write(fd, text.to_string()?.as_bytes()),
            None => host::write(fd, &raw::bytes(&TypedArray::from_value(data)?)?),
        }
        Ok(())
    });
    provide!("exit", |ctx, state, code: i32| {
        state.exit.set(Some(code));
        Err::<(), _>(raw::throw_uncatchable(&ctx))
    });
    provide!("started", |ctx, state| state.started.set(true));
    provide!("now", |ctx, state| host::monotonic_now() as f64 / 1e6);
    provide!("sleep", |ctx, state, ms: f64| host::sleep(
        (ms * 1e6) as u64
    ));
    provide!("random", |ctx, state| (state.random() >> 11) as f64
        / (1_u64 << 53) as f64);
    provide!("stdin", |ctx, state| {
        let data = std::mem::take(&mut *state.stdin.borrow_mut());
        TypedArray::<u8>::new(ctx, data)
    });
    provide!("encode", |ctx, state, text: rquickjs::String<'js>| {
        TypedArray::<u8>::new(ctx, text.to_string()?)
    });
    provide!("decode", |ctx,
                        state,
                        data: TypedArray<'js, u8>,
                        fatal: bool| {
        let data = raw::bytes(&data)?;
        match std::str::from_utf8(&data) {
            Ok(text) => text.into_js(&ctx),
            Err(_) if fatal => Ok(Value::new_null(ctx)),
            Err(_) => String::from_utf8_lossy(&data).into_js(&ctx),
        }
    });
    provide!("promiseState", |ctx, state, promise: Promise<'js>| {
        let parts = Array::new(ctx.clone())?;
        match promise.state() {
            PromiseState::Pending => parts.set(0, "pending")?,
            PromiseState::Resolved => {
                parts.set(0, "resolved")?;
                parts.set(1, promise.result::<Value>().transpose()?)?;
            }
            PromiseState::Rejected => {
                parts.set(0, "rejected")?;
                if let Some(Err(Error::Exception)) = promise.result::<Value>() {
                    parts.set(1, ctx.catch())?;
                }
            }
        }
        Ok::<_, Error>(parts)
    });
    provide!("proxyTarget", |ctx, state, value: Object<'js>| {
        raw::proxy_target(&value).unwrap_or(Value::new_undefined(ctx))
    });
    provide!("script", |ctx, state, source: String, name: String| {
        raw::evaluate(&ctx, &source, &name)
    });
    provide!("declares", |ctx, state, source: String, name: String| {
        Module::declare(ctx, name, source).map(|_| ())
    });
    provide!("module", |ctx, state, source: String, name: String| {
        let (_, promise) = Module::declare(ctx, name, source)?.eval()?;
        Ok::<_, Error>(promise)
    });
    provide!("compiled", |ctx, state, name: String| {
        let compiled = state.compiled.borrow().get(&name).cloned();
        modules::run(&ctx, compiled.as_deref())
    });
    files(ctx, state, &native)?;
    for_plugins(ctx, state, &native)?;
    Ok(native)
}

/// The part of [`natives`] for plugins.
fn for_plugins<'js>(ctx: &Ctx<'js>, state: &Rc<State>, native: &Object<'js>) -> Result<()> {
    let thrown = |ctx: &Ctx<'js>, error: String| Exception::throw_message(ctx, &error);
    let shared = state.clone();
    let place = move |path: String, source: String| {
        // The files of a plugin are bounded by the host, and have plain names.
        _ = shared.files.borrow_mut().place(&path, source.as_bytes());
    };
    native.set("place", Function::new(ctx.clone(), place)?)?;
    let entries = move |ctx: Ctx<'js>, slot: String| {
        let entries = host::entries(&slot).map_err(|error| thrown(&ctx, error))?;
        let pairs = entries.into_iter();
        let pairs = pairs.map(|(path, size)| vec![path, size.to_string()]);
        Ok::<Vec<_>, Error>(pairs.collect())
    };
    native.set("entries", Function::new(ctx.clone(), entries)?)?;
    let data = move |ctx: Ctx<'js>, slot: String, path: String, size: f64| {
        let data = host::data(&slot, &path, size as u64).map_err(|error| thrown(&ctx, error))?;
        TypedArray::<u8>::new(ctx, data)
    };
    native.set("data", Function::new(ctx.clone(), data)?)?;
    let ask = |kind: String, requests: String| host::ask(&kind, &requests);
    native.set("ask", Function::new(ctx.clone(), ask)?)
}

/// The part of [`natives`] for files: each function returns a result, or an error code as a string.
fn files<'js>(ctx: &Ctx<'js>, state: &Rc<State>, native: &Object<'js>) -> Result<()> {
    macro_rules! provide {
        ($name:literal, |$ctx:ident, $files:ident $(, $argument:ident: $type:ty)*| $body:expr) => {{
            let shared = state.clone();
            let function = Function::new(ctx.clone(), move |$ctx: Ctx<'js> $(, $argument: $type)*| {
                #[allow(unused_mut)]
                let mut $files = shared.files.borrow_mut();
                answer(&$ctx, $body)
            })?;
            native.set($name, function)?;
        }};
    }
    provide!("read", |ctx, files, path: String| {
        (files.read(&path)).map(|data| TypedArray::<u8>::new(ctx.clone(), data))
    });
    provide!("save", |ctx,
                      files,
                      path: String,
                      data: TypedArray<'js, u8>,
                      append: bool| {
        let data = raw::bytes(&data)?;
        files.write(&path, &data, append).map(Ok)
    });
    provide!("remove", |ctx, files, path: String| files
        .remove(&path)
        .map(Ok));
    provide!("removeFolder", |ctx, files, path: String| {
        files.remove_folder(&path).map(Ok)
    });
    provide!("makeFolder", |ctx, files, path: String, parents: bool| {
        files.make_folder(&path, parents).map(Ok)
    });
    provide!("list", |ctx, files, path: String| files.list(&path).map(Ok));
    // A file's size, -1 for a folder.
    provide!("size", |ctx, files, path: String| {
        let size = files.size(&path);
        size.map(|size| Ok(size.map_or(-1.0, |bytes| bytes as f64)))
    });
    Ok(())
}

fn answer<'js, T: IntoJs<'js>>(
    ctx: &Ctx<'js>,
    outcome: std::result::Result<Result<T>, Refused>,
) -> Result<Value<'js>> {
    match outcome {
        Ok(value) => value?.into_js(ctx),
        Err(refused) => refused.code().into_js(ctx),
    }
}
