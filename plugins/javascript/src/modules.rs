//! The modules that `import` finds: Node's own modules, modules that `compile` made, and files of the run. `require`
//! is in the prelude, and shares the compiled modules.

use std::{cell::RefCell, rc::Rc};

use rquickjs::{
    Ctx, Error, Exception, Function, Module, Object, Persistent, Promise, Result, Value,
    loader::{ImportAttributes, Loader, Resolver},
    module::{Declarations, Declared, Exports, ModuleDef},
    promise::PromiseState,
};

use crate::{
    files::{normalize, parent},
    raw,
    state::State,
};

/// The first byte of a compiled module: its kind.
const SCRIPT: u8 = b'c';
const MODULE: u8 = b'm';

/// The modules that a plugin and its host's requests are made of, by name.
const SDK: [(&str, &str); 6] = [
    (
        "rlf:index.js",
        include_str!("../../../sdk/javascript/lib/index.js"),
    ),
    (
        "rlf:definitions.js",
        include_str!("../../../sdk/javascript/lib/definitions.js"),
    ),
    (
        "rlf:gates.js",
        include_str!("../../../sdk/javascript/lib/gates.js"),
    ),
    (
        "rlf:trajectories.js",
        include_str!("../../../sdk/javascript/lib/trajectories.js"),
    ),
    (
        "rlf:requests.js",
        include_str!("../../../sdk/javascript/lib/requests.js"),
    ),
    (PLUGIN, include_str!("plugin.js")),
];

/// The module that answers the host's requests.
pub(crate) const PLUGIN: &str = "rlf:plugin.js";

/// The wrapper of a program in a separate file, as in Node. It is on the first line, so that lines keep their
/// numbers; the prelude subtracts its length from that line's columns.
pub(crate) const WRAPPER: [&str; 2] = [
    "(function (exports, require, module, __filename, __dirname) {",
    "\n})",
];

thread_local! {
    static HOOKS: RefCell<Option<Persistent<Object<'static>>>> = const { RefCell::new(None) };
}

/// The source of the modules of [`Required`].
pub(crate) fn set_hooks(hooks: Persistent<Object<'static>>) {
    HOOKS.set(Some(hooks));
}

/// The file name that a compiled module reports.
pub(crate) fn file_of(name: &str) -> String {
    let known = [".js", ".mjs", ".cjs"]
        .iter()
        .any(|end| name.ends_with(end));
    normalize(
        "/",
        &if known {
            name.to_owned()
        } else {
            format!("{name}.js")
        },
    )
}

/// Compiles as a CommonJS module, or as an ES module if only that parses.
pub(crate) fn compile(ctx: &Ctx<'_>, source: &str, file: &str) -> Result<Vec<u8>> {
    let [before, after] = WRAPPER;
    let wrapped = format!("{before}{source}{after}");
    let (kind, code) = match raw::compile(ctx, &wrapped, file, false) {
        Ok(code) => (SCRIPT, code),
        Err(Error::Exception) => {
            let first = ctx.catch();
            match raw::compile(ctx, source, file, true) {
                Ok(code) => (MODULE, code),
                Err(error) if looks_like_a_module(source) => return Err(error),
                Err(_) => {
                    ctx.catch();
                    return Err(ctx.throw(first));
                }
            }
        }
        Err(error) => return Err(error),
    };
    let mut bytes = vec![kind];
    bytes.extend(code);
    Ok(bytes)
}

/// True if a line begins with a statement of ES modules.
fn looks_like_a_module(source: &str) -> bool {
    source.lines().any(|line| {
        let line = line.trim_start();
        ["import ", "import{", "export ", "export{", "await "]
            .iter()
            .any(|word| line.starts_with(word))
    })
}

/// The value for `require`: the wrapped function of a CommonJS module, the namespace of an ES module, undefined for
/// none.
pub(crate) fn run<'js>(ctx: &Ctx<'js>, compiled: Option<&[u8]>) -> Result<Value<'js>> {
    match compiled.and_then(<[u8]>::split_first) {
        Some((&SCRIPT, code)) => raw::run_compiled(ctx, code),
        Some((&MODULE, code)) => {
            let (module, promise) = raw::load_module(ctx, code)?.eval()?;
            finished(ctx, &promise)?;
            Ok(module.namespace()?.into_value())
        }
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}

/// Checks that a module without `await` ran to its end.
fn finished<'js>(ctx: &Ctx<'js>, promise: &Promise<'js>) -> Result<()> {
    match promise.state() {
        PromiseState::Resolved => Ok(()),
        PromiseState::Rejected => promise
            .result::<Value>()
            .map_or(Ok(()), |end| end.map(|_| ())),
        PromiseState::Pending => Err(Exception::throw_message(
            ctx,
            "require() cannot be used on an ES module with top-level await: use import()",
        )),
    }
}

/// Resolves the name in an `import`.
pub(crate) struct Find(pub(crate) Rc<State>);

impl Resolver for Find {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if self.0.compiled.borrow().contains_key(name) {
            return Ok(format!("compiled:{name}"));
        }
        if self.0.is_plugin.get() {
            let own = match name {
                "rlf" => Some("rlf:index.js".to_owned()),
                PLUGIN => Some(name.to_owned()),
                _ if base.starts_with("rlf:") => {
                    (name.strip_prefix("./")).map(|file| format!("rlf:{file}"))
                }
                _ => None,
            };
            if let Some(own) = own {
                return Ok(own);
            }
        }
        if hook(ctx, "isBuiltin")?.call((name,))? {
            return Ok(format!("node:{}", name.trim_start_matches("node:")));
        }
        let relative = name.starts_with('.') || name.starts_with('/');
        if relative {
            let path = normalize(parent(base), name);
            let files = self.0.files.borrow();
            for end in ["", ".js", ".mjs", ".cjs", ".json", "/index.js"] {
                let candidate = format!("{path}{end}");
                if files.read(&candidate).is_ok() {
                    return Ok(candidate);
                }
            }
        }
        let what = if relative { "module" } else { "package" };
        Err(Exception::throw_message(
            ctx,
            &format!("Cannot find {what} '{name}' imported from {base}"),
        ))
    }
}

/// Loads a module that [`Find`] found.
pub(crate) struct Load(pub(crate) Rc<State>);

impl Loader for Load {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if let Some((_, source)) = SDK.iter().find(|(known, _)| *known == name) {
            return Module::declare(ctx.clone(), name, *source);
        }
        if let Some(compiled) = name.strip_prefix("compiled:") {
            if let Some((&MODULE, code)) = self.0.compiled.borrow()[compiled].split_first() {
                return raw::load_module(ctx, code);
            }
        } else if name.starts_with('/') && !name.ends_with(".cjs") && !name.ends_with(".json") {
            let source = self.0.files.borrow().read(name).map(<[u8]>::to_vec);
            let source = String::from_utf8_lossy(&source.unwrap_or_default()).into_owned();
            if name.ends_with(".mjs") || looks_like_a_module(&source) {
                return Module::declare(ctx.clone(), name, source);
            }
        }
        Module::declare_def::<Required, _>(ctx.clone(), name)
    }
}

/// The result of `require` as an ES module: the result as `default`, and its keys.
struct Required;

impl Required {
    fn exports<'js>(module: &Module<'js, Declared>) -> Result<(Value<'js>, Vec<String>)> {
        let ctx = module.ctx();
        let name: String = module.name()?;
        let name = name.strip_prefix("compiled:").unwrap_or(&name);
        let exports: Value = hook(ctx, "require")?.call((name,))?;
        let mut keys = Vec::new();
        if let Some(object) = exports.as_object() {
            keys = object.keys().collect::<Result<Vec<String>>>()?;
        }
        keys.retain(|key| key != "default");
        Ok((exports, keys))
    }
}

impl ModuleDef for Required {
    fn declare(declared: &Declarations<'_>) -> Result<()> {
        let (_, keys) = Self::exports(declared.module())?;
        declared.declare("default")?;
        for key in keys {
            declared.declare(key)?;
        }
        Ok(())
    }

    fn evaluate<'js>(_ctx: &Ctx<'js>, exported: &Exports<'js>) -> Result<()> {
        let (exports, keys) = Self::exports(exported.module())?;
        if let Some(object) = exports.as_object() {
            for key in keys {
                let value: Value = object.get(&*key)?;
                exported.export(key, value)?;
            }
        }
        exported.export("default", exports)?;
        Ok(())
    }
}

fn hook<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
    let hooks = HOOKS.with_borrow(Clone::clone);
    let hooks = hooks.ok_or(Error::Unknown)?.restore(ctx)?;
    hooks.get(name)
}
