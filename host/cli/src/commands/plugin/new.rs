//! `rlf-host plugin new`: makes a new plugin: a working example to start from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;

use crate::arguments::{NewKind, NewLanguage, NewPlugin};

/// The text in a template that becomes the plugin's name.
const NAME: &str = "NAME";
/// The text in a template that becomes the folder of the SDK.
const SDK: &str = "SDK";

/// Names of the shipped interpreters. A new plugin of that name would replace one.
const INTERPRETERS: [&str; 3] = ["python", "python-science", "javascript"];
/// Lowercase words of Python or JavaScript that cannot name a function.
const KEYWORDS: &str = "\
    and as assert async await break case catch class const continue debugger def default del \
    delete do elif else enum except export extends false finally for from function global if \
    import in instanceof is lambda let new nonlocal not null or pass raise return static super \
    switch this throw true try typeof var void while with yield";

/// Lowercase names of Python's built-in functions and standard modules (3.11), and of the SDK: a file or a function of that
/// name would hide one that the file itself, or Python, needs.
const PYTHON_NAMES: &str = "\
    abc abs aifc aiter all anext antigravity any argparse array ascii ast asynchat asyncio asyncore \
    atexit audioop base64 bdb bin binascii bisect bool breakpoint builtins bytearray bytes bz2 calendar \
    callable cgi cgitb chr chunk classmethod cmath cmd code codecs codeop collections colorsys compile \
    compileall complex concurrent configparser contextlib contextvars copy copyreg copyright credits \
    crypt csv ctypes curses dataclasses datetime dbm decimal delattr dict difflib dir dis distutils \
    divmod doctest email encodings ensurepip enum enumerate errno eval exec exit faulthandler fcntl \
    filecmp fileinput filter float fnmatch format fractions frozenset ftplib functools gc genericpath \
    getattr getopt getpass gettext glob globals graphlib grp gzip hasattr hash hashlib heapq help hex \
    hmac html http id idlelib imaplib imghdr imp importlib input inspect int io ipaddress isinstance \
    issubclass iter itertools json keyword len lib2to3 license linecache list locale locals logging lzma \
    mailbox mailcap map marshal math max memoryview mimetypes min mmap modulefinder msilib msvcrt \
    multiprocessing netrc next nis nntplib nt ntpath nturl2path numbers object oct opcode open operator \
    optparse ord os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib \
    posix posixpath pow pprint print profile property pstats pty pwd py_compile pyclbr pydoc pydoc_data \
    pyexpat queue quit quopri random range re readline repr reprlib resource reversed rlcompleter round \
    runpy sched secrets select selectors set setattr shelve shlex shutil signal site slice smtpd smtplib \
    sndhdr socket socketserver sorted spwd sqlite3 sre_compile sre_constants sre_parse ssl stat \
    staticmethod statistics str string stringprep struct subprocess sum sunau super symtable sys \
    sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit \
    tkinter token tokenize tomllib trace traceback tracemalloc tty tuple turtle turtledemo type types \
    typing unicodedata unittest urllib uu uuid vars venv warnings wave weakref webbrowser winreg \
    winsound wsgiref xdrlib xml xmlrpc zip zipapp zipfile zipimport zlib zoneinfo rlf";

/// A file of a new plugin: its name and its text.
type File = (String, &'static str);

pub(super) fn run(new: &NewPlugin) -> anyhow::Result<ExitCode> {
    let name = checked_name(new)?;
    let parent = new.folder.clone().unwrap_or_default();
    let folder = parent.join(&new.name);
    if folder.exists() {
        bail!(
            "{} exists already; choose another name, or another folder with --in DIR",
            folder.display()
        );
    }
    let sdk = match (&new.sdk, new.lang) {
        (Some(folder), _) => Some(folder.clone()),
        (None, lang) => sdk_beside_the_program(lang),
    };
    if let Some(sdk) = &sdk
        && !sdk.is_dir()
    {
        bail!("--sdk: there is no folder {}", sdk.display());
    }
    if sdk.is_none() && new.lang == NewLanguage::Rust {
        bail!(
            "the SDK is not beside this program; name sdk/rust of a clone of rlf-host with --sdk DIR"
        );
    }
    let sdk = sdk.map_or_else(
        || match new.lang {
            NewLanguage::JavaScript => "sdk/javascript".to_owned(),
            _ => "sdk/python of rlf-host".to_owned(),
        },
        shown,
    );
    for (file, text) in files(new.lang, new.kind, &name) {
        let path = folder.join(file);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            fs::write(&path, text.replace(NAME, &name).replace(SDK, &sdk))
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        say!("  {}", path.display());
    }
    say!("\n{}", style("next:").bold());
    for command in next(new, &folder, &name) {
        say!("  {command}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The name inside the files. A Python module cannot have a `-`, and a server's name begins with a capital.
fn checked_name(new: &NewPlugin) -> anyhow::Result<String> {
    let name = &new.name;
    let is_word = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name
                .bytes()
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic())
    };
    if !(1..=64).contains(&name.len()) || !is_word(&name.replace('-', "_")) {
        bail!("{name:?} cannot name a plugin: write a letter, and then letters, digits, _ or -");
    }
    if INTERPRETERS.contains(&name.as_str()) {
        bail!(
            "{name:?} is the name of an interpreter that ships with rlf-host, which the plugin would replace; choose another name"
        );
    }
    if KEYWORDS.split(' ').any(|word| word == name) && new.lang != NewLanguage::Rust {
        bail!("{name:?} is a word of the language and cannot name a function; choose another name");
    }
    match (new.lang, new.kind) {
        (NewLanguage::Python, _) if PYTHON_NAMES.split(' ').any(|taken| taken == name) => {
            bail!(
                "{name:?} is a name of Python's own, which the file would hide; choose another name"
            )
        }
        (NewLanguage::Python, _) if name.contains('-') => {
            bail!(
                "{name:?} cannot be a Python module: write {:?}",
                name.replace('-', "_")
            )
        }
        (NewLanguage::JavaScript, _) if name.contains('-') => {
            bail!(
                "{name:?} cannot name a function: write {:?}",
                name.replace('-', "_")
            )
        }
        (NewLanguage::JavaScript, NewKind::Environment) => {
            bail!("an environment is written in Python or in Rust: add --lang python")
        }
        (NewLanguage::Python, NewKind::Environment) => {
            let (first, rest) = name.split_at(1);
            Ok(format!("{}{rest}", first.to_uppercase()))
        }
        _ => Ok(name.clone()),
    }
}

/// The files of a plugin.
fn files(lang: NewLanguage, kind: NewKind, name: &str) -> Vec<File> {
    let file = |name: &str, text| (name.to_owned(), text);
    let python = |text, test| {
        vec![
            (format!("{name}.py"), text),
            (format!("test_{name}.py"), test),
        ]
    };
    let rust = |kind: &'static str, text| {
        vec![
            file(
                "Cargo.toml",
                include_str!("../../../templates/rust/Cargo.toml.txt"),
            ),
            file("plugin.toml", kind),
            file("src/lib.rs", text),
        ]
    };
    let javascript = |text, test| {
        vec![
            (format!("{name}.js"), text),
            (format!("{name}.test.js"), test),
            file(
                "package.json",
                include_str!("../../../templates/javascript/package.json"),
            ),
        ]
    };
    let leading = |files: Vec<File>, manifest: Option<File>| -> Vec<File> {
        let agent = file("agent.toml", include_str!("../../../templates/agent.toml"));
        files.into_iter().chain(manifest).chain([agent]).collect()
    };
    let gates = file("plugin.toml", "gates = [\"model\", \"tools\"]\n");
    match (lang, kind) {
        (NewLanguage::JavaScript, NewKind::Agent) => {
            let files = javascript(
                include_str!("../../../templates/javascript/agent.js"),
                include_str!("../../../templates/javascript/agent.test.js"),
            );
            leading(files, Some(gates))
        }
        (NewLanguage::Python, NewKind::Agent) => {
            let files = python(
                include_str!("../../../templates/python/agent.py"),
                include_str!("../../../templates/python/test_agent.py"),
            );
            leading(files, Some(gates))
        }
        (NewLanguage::Rust, NewKind::Agent) => {
            let files = rust(
                "kind = \"tool\"\ndescription = \"Leads trajectories.\"\ngates = [\"model\", \"tools\"]\n",
                include_str!("../../../templates/rust/agent.rs"),
            );
            leading(files, None)
        }
        (NewLanguage::JavaScript, NewKind::Reward) => javascript(
            include_str!("../../../templates/javascript/reward.js"),
            include_str!("../../../templates/javascript/reward.test.js"),
        ),
        (NewLanguage::JavaScript, _) => javascript(
            include_str!("../../../templates/javascript/tool.js"),
            include_str!("../../../templates/javascript/tool.test.js"),
        ),
        (NewLanguage::Python, NewKind::Tool) => python(
            include_str!("../../../templates/python/tool.py"),
            include_str!("../../../templates/python/test_tool.py"),
        ),
        (NewLanguage::Python, NewKind::Reward) => python(
            include_str!("../../../templates/python/reward.py"),
            include_str!("../../../templates/python/test_reward.py"),
        ),
        (NewLanguage::Python, NewKind::Environment) => vec![
            (
                format!("{name}.py"),
                include_str!("../../../templates/python/environment.py"),
            ),
            file(
                "scenarios.json",
                include_str!("../../../templates/python/scenarios.json"),
            ),
        ],
        (NewLanguage::Rust, NewKind::Tool) => rust(
            "kind = \"tool\"\ndescription = \"Counts the words of a text.\"\n",
            include_str!("../../../templates/rust/tool.rs"),
        ),
        (NewLanguage::Rust, NewKind::Reward) => rust(
            "kind = \"reward\"\ndescription = \"Whether the answer is right, and how many calls it took.\"\n",
            include_str!("../../../templates/rust/reward.rs"),
        ),
        (NewLanguage::Rust, NewKind::Environment) => rust(
            "kind = \"environment\"\ndescription = \"A count that a model changes.\"\n",
            include_str!("../../../templates/rust/environment.rs"),
        ),
    }
}

/// The commands to type next.
fn next(new: &NewPlugin, folder: &Path, name: &str) -> Vec<String> {
    let plugins =
        (new.folder.as_ref()).map_or_else(|| ".".into(), |folder| folder.display().to_string());
    let folder = folder.display();
    let call = match new.kind {
        NewKind::Tool => {
            let tool = match new.lang {
                NewLanguage::Python | NewLanguage::JavaScript => name,
                NewLanguage::Rust => "count",
            };
            format!(
                "rlf-host plugin call {name} {tool} '{{\"text\": \"a red fox\", \"longest\": 1}}' --plugins {plugins}"
            )
        }
        NewKind::Reward => format!(
            "rlf-host plugin grade {name} --answer Paris --reference Paris --plugins {plugins}"
        ),
        NewKind::Environment if new.lang == NewLanguage::Python => {
            return vec![
                format!("rlf-host env check {folder}/{name}.py"),
                format!("rlf-host env try {folder}/{name}.py"),
            ];
        }
        NewKind::Environment => format!("rlf-host env try {name} --plugins {plugins}"),
        NewKind::Agent => format!(
            "rlf-host plugin grant {name} --gate model --gate tools --config {folder}/agent.toml --plugins {plugins}"
        ),
    };
    let mut commands = match new.lang {
        NewLanguage::Python | NewLanguage::JavaScript => vec![call],
        NewLanguage::Rust => vec![
            "rustup target add wasm32-wasip2        # once per machine".to_owned(),
            format!("cargo test --manifest-path {folder}/Cargo.toml"),
            format!("rlf-host plugin build {folder}"),
            call,
        ],
    };
    if new.kind == NewKind::Agent {
        commands.push(format!(
            "rlf-host train CONFIG --plugins {plugins}        # a CONFIG with the tables of {folder}/agent.toml"
        ));
    }
    commands
}

/// The SDK in the clone that the program was built in: `target/release/rlf-host`.
fn sdk_beside_the_program(lang: NewLanguage) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    let folder = match lang {
        NewLanguage::Python => "sdk/python",
        NewLanguage::JavaScript => "sdk/javascript",
        NewLanguage::Rust => "sdk/rust",
    };
    let sdk = program.ancestors().nth(3)?.join(folder);
    sdk.is_dir().then_some(sdk)
}

fn shown(sdk: PathBuf) -> String {
    sdk.canonicalize().unwrap_or(sdk).display().to_string()
}
