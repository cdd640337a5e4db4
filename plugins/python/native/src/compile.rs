//! From sources to one WebAssembly module: CPython, zlib and bzip2 as static libraries, and our own C.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread::available_parallelism,
};

use anyhow::{Context, Result};

use crate::{
    commands::{command, output, run, run_logged},
    sources::{self, Archive, fetch},
};

const CLANG: &str = "clang-19";
const AR: &str = "llvm-ar-19";
const RANLIB: &str = "llvm-ranlib-19";
const NM: &str = "llvm-nm-19";
/// Flags for everything that becomes part of the module. Link-time optimisation sees CPython as a whole.
const OPTIMISE: &[&str] = &["-O3", "-flto=full", "-g0", "-DNDEBUG"];
/// Pools of 4 KiB lie closer together than those of 16 KiB that the radix tree comes with, so that a run, which needs one for
/// nearly every size of object, writes to fewer pages, and those in a row.
const POOLS: &str = "-DWITH_PYMALLOC_RADIX_TREE=0";
/// The host gives a program 16 MiB for its own stack; this is for what C code keeps in memory.
const STACK_BYTES: u32 = 12 << 20;

/// The folders of the build.
pub(crate) struct Work {
    root: PathBuf,
}

impl Work {
    pub(crate) fn new(root: &Path) -> Result<Self> {
        fs::create_dir_all(root)?;
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn downloads(&self) -> PathBuf {
        self.at("downloads")
    }

    fn source(&self) -> PathBuf {
        self.at("Python-3.13.5")
    }

    /// The standard library's sources.
    pub(crate) fn library(&self) -> PathBuf {
        self.source().join("Lib")
    }

    fn native_python(&self) -> PathBuf {
        self.at("native/python")
    }

    fn wasm(&self) -> PathBuf {
        self.at("wasm")
    }

    /// The C compiler for the module.
    fn clang(&self) -> Command {
        let mut clang = command(CLANG);
        clang.args(self.clang_arguments());
        clang
    }

    fn clang_arguments(&self) -> Vec<String> {
        vec![
            "--target=wasm32-wasip1".to_owned(),
            format!("--sysroot={}", self.at("sysroot/usr").display()),
            format!("-resource-dir={}", self.at("clang").display()),
            format!("-ffile-prefix-map={}=.", self.root.display()),
        ]
    }

    fn unpack(&self, archive: &Archive) -> Result<()> {
        let path = fetch(archive, &self.downloads())?;
        run(command("tar")
            .arg("-xf")
            .arg(path)
            .arg("-C")
            .arg(&self.root))
    }

    /// Downloads and unpacks everything, and applies our patches.
    pub(crate) fn get_sources(&self, patches: &[PathBuf]) -> Result<()> {
        remove(&self.source())?;
        for archive in [&sources::PYTHON, &sources::ZLIB, &sources::BZIP2] {
            self.unpack(archive)?;
        }
        for patch in patches {
            let mut apply = command("patch");
            apply
                .args(["--strip=1", "--silent", "--directory"])
                .arg(self.source());
            run(apply.arg("--input").arg(patch.canonicalize()?))?;
        }
        self.get_c_library()
    }

    /// Downloads what C needs beside the compiler.
    pub(crate) fn get_c_library(&self) -> Result<()> {
        for old in ["sysroot", "clang"] {
            remove(&self.at(old))?;
        }
        self.unpack_wasi_libc()?;
        self.make_resource_folder()
    }

    /// A Debian package is an archive with the files in an archive.
    fn unpack_wasi_libc(&self) -> Result<()> {
        let package = fetch(&sources::WASI_LIBC, &self.downloads())?;
        let sysroot = self.at("sysroot");
        fs::create_dir_all(&sysroot)?;
        run(command(AR)
            .current_dir(&sysroot)
            .arg("x")
            .arg(package)
            .arg("data.tar.xz"))?;
        run(command("tar")
            .current_dir(&sysroot)
            .args(["-xf", "data.tar.xz"]))
    }

    /// Clang looks for its runtime library in a folder of another name than Debian gives it.
    fn make_resource_folder(&self) -> Result<()> {
        let theirs = PathBuf::from(output(command(CLANG).arg("-print-resource-dir"))?);
        let runtime = runtime_library(&theirs)?;
        let ours = self.at("clang/lib/wasm32-unknown-wasip1");
        fs::create_dir_all(&ours)?;
        symlink(theirs.join("include"), self.at("clang/include"))?;
        symlink(runtime, ours.join("libclang_rt.builtins.a"))?;
        Ok(())
    }

    /// A CPython for this machine, which the build of the other one runs. Which modules it has does not matter.
    pub(crate) fn build_native_python(&self) -> Result<()> {
        let folder = self.at("native");
        remove(&folder)?;
        fs::create_dir_all(&folder)?;
        let mut configure = command("../Python-3.13.5/configure");
        configure
            .current_dir(&folder)
            .env("PKG_CONFIG_LIBDIR", "/nonexistent");
        configure.args([
            "--without-ensurepip",
            "--disable-test-modules",
            "OPT=-O1 -g0 -DNDEBUG",
            "MODULE_BUILDTYPE=static",
        ]);
        configure.args([
            "py_cv_module__tkinter=n/a",
            "py_cv_module__ssl=n/a",
            "py_cv_module__hashlib=n/a",
        ]);
        configure.args([
            "py_cv_module__curses=n/a",
            "py_cv_module__curses_panel=n/a",
            "py_cv_module_readline=n/a",
        ]);
        configure.args([
            "py_cv_module__sqlite3=n/a",
            "py_cv_module__dbm=n/a",
            "py_cv_module__gdbm=n/a",
            "py_cv_module__ctypes=n/a",
        ]);
        run_logged(&mut configure, &self.at("native-configure.log"))?;
        run_logged(make(&folder).arg("python"), &self.at("native-make.log"))
    }

    /// zlib and bzip2.
    fn build_libraries(&self) -> Result<()> {
        const ZLIB: &[&str] = &[
            "adler32", "compress", "crc32", "deflate", "infback", "inffast", "inflate", "inftrees",
            "trees", "uncompr", "zutil",
        ];
        const BZIP2: &[&str] = &[
            "blocksort",
            "huffman",
            "crctable",
            "randtable",
            "compress",
            "decompress",
            "bzlib",
        ];
        for (folder, archive, names) in [
            ("zlib-1.3.1", "libz.a", ZLIB),
            ("bzip2-1.0.8", "libbz2.a", BZIP2),
        ] {
            let folder = self.at(folder);
            for name in names {
                let mut clang = self.clang();
                clang
                    .current_dir(&folder)
                    .args(OPTIMISE)
                    .args(["-w", "-c"])
                    .arg(format!("{name}.c"));
                run(&mut clang)?;
            }
            let mut ar = command(AR);
            ar.current_dir(&folder).arg("rcsD").arg(archive);
            run(ar.args(names.iter().map(|name| format!("{name}.o"))))?;
        }
        Ok(())
    }

    /// CPython as static libraries.
    pub(crate) fn build_python(&self) -> Result<()> {
        self.build_libraries()?;
        let folder = self.wasm();
        remove(&folder)?;
        fs::create_dir_all(&folder)?;
        let compiler = format!("{CLANG} {}", self.clang_arguments().join(" "));
        let (zlib, bzip2) = (self.at("zlib-1.3.1"), self.at("bzip2-1.0.8"));
        let mut configure = command("../Python-3.13.5/configure");
        configure
            .current_dir(&folder)
            .env("CC", &compiler)
            .env("CPP", format!("{compiler} -E"))
            .env("AR", AR)
            .env("RANLIB", RANLIB)
            .env("OPT", "-O3 -g0 -DNDEBUG")
            .env(
                "CONFIG_SITE",
                self.source().join("Tools/wasm/config.site-wasm32-wasi"),
            )
            // Nothing of this machine's libraries is for the module.
            .env("PKG_CONFIG_LIBDIR", "/nonexistent")
            .env_remove("PKG_CONFIG_PATH")
            .env("ZLIB_CFLAGS", format!("-I{}", zlib.display()))
            .env("ZLIB_LIBS", format!("-L{} -lz", zlib.display()))
            .env("BZIP2_CFLAGS", format!("-I{}", bzip2.display()))
            .env("BZIP2_LIBS", format!("-L{} -lbz2", bzip2.display()))
            .env("HOSTRUNNER", "/bin/false")
            .args([
                "--host=wasm32-wasip1",
                "--build=x86_64-pc-linux-gnu",
                "--with-suffix=.wasm",
                "--with-pymalloc",
                // As on Linux. CPython would choose another, because it takes WebAssembly for a processor that needs
                // aligned words.
                "--with-hash-algorithm=siphash13",
            ])
            .args(["--disable-test-modules", "--without-ensurepip"])
            .arg(format!(
                "--with-build-python={}",
                self.native_python().display()
            ));
        run_logged(&mut configure, &self.at("wasm-configure.log"))?;
        let mut make = make(&folder);
        make.arg(format!("EXTRA_CFLAGS=-flto=full {POOLS}"));
        make.args(LIBRARIES);
        run_logged(&mut make, &self.at("wasm-make.log"))
    }

    /// Our C, with the bindings that `wit` asks for, CPython and the library `core` of pydantic: the module.
    pub(crate) fn link(
        &self,
        wit: &Path,
        sources: &Path,
        core: &Path,
        module: &Path,
    ) -> Result<()> {
        let objects = self.at("objects");
        remove(&objects)?;
        fs::create_dir_all(&objects)?;
        crate::bindings::generate(wit, &objects)?;
        let source = self.source();
        let mut linked = vec![objects.join("interpreter_plugin_component_type.o")];
        let mut compile = |name: &str, file: PathBuf, flags: &[&str]| -> Result<()> {
            let object = objects.join(format!("{name}.o"));
            let mut clang = self.clang();
            clang
                .args(["-std=c11", "-Wall", "-Wno-unused-parameter"])
                .args(flags);
            for folder in ["Include", "Include/internal", "Include/internal/mimalloc"] {
                clang.arg("-I").arg(source.join(folder));
            }
            clang.arg("-I").arg(self.wasm()).arg("-I").arg(&objects);
            run(clang.arg("-c").arg(file).arg("-o").arg(&object))?;
            linked.push(object);
            Ok(())
        };
        let ours = [OPTIMISE, &["-fno-strict-overflow", POOLS]].concat();
        for name in ["python", "interpreter", "files", "wasi", "dates", "errnos"] {
            compile(name, sources.join(name).with_extension("c"), &ours)?;
        }
        compile(
            "bindings",
            objects.join("interpreter_plugin.c"),
            &[OPTIMISE, &["-w"]].concat(),
        )?;
        let random = objects.join("random.c");
        fs::write(&random, random_for(core)?)?;
        compile("random", random, &["-O3", "-g0"])?;
        // Must not be understood as what it is, or its loops become calls of themselves.
        let plain = ["-O3", "-g0", "-fno-builtin", "-mbulk-memory"];
        compile("memory", sources.join("memory.c"), &plain)?;

        let mut link = self.clang();
        link.current_dir(self.wasm())
            .args(OPTIMISE)
            .args([
                "-nostartfiles",
                "-Wl,--lto-O3",
                "-Wl,--no-entry",
                "-Wl,--strip-all",
                "-Wl,--stack-first",
            ])
            .args(["-z", &format!("stack-size={STACK_BYTES}")])
            .args(linked)
            .arg(core.canonicalize()?)
            .args(LIBRARIES)
            .arg(self.at("zlib-1.3.1/libz.a"))
            .arg(self.at("bzip2-1.0.8/libbz2.a"))
            .args([
                "-lwasi-emulated-signal",
                "-lwasi-emulated-getpid",
                "-lwasi-emulated-process-clocks",
                "-lm",
                "-ldl",
            ]);
        run(link.arg("-o").arg(module))
    }
}

/// Our C that answers a module which was linked elsewhere.
pub(crate) struct Answers<'a> {
    pub(crate) wit: &'a Path,
    /// The C that it shares with the fast build.
    pub(crate) native: &'a Path,
    /// The C of its own.
    pub(crate) own: &'a Path,
    /// The first address that is not the other module's.
    pub(crate) base: u64,
    /// Functions that the other module imports.
    pub(crate) exports: Vec<String>,
    /// The file to write.
    pub(crate) module: &'a Path,
}

impl Work {
    /// Our C with the bindings that `wit` asks for, as a module whose memory is another's.
    pub(crate) fn link_answers(&self, answers: &Answers<'_>) -> Result<()> {
        const STACK_BYTES: u32 = 1 << 20;
        let objects = self.at("answers");
        remove(&objects)?;
        fs::create_dir_all(&objects)?;
        crate::bindings::generate(answers.wit, &objects)?;
        let mut linked = vec![objects.join("interpreter_plugin_component_type.o")];
        let sources = [
            answers.native.join("interpreter.c"),
            answers.native.join("files.c"),
            answers.native.join("wasi.c"),
            answers.native.join("memory.c"),
            answers.own.join("values.c"),
            answers.own.join("science.c"),
            objects.join("interpreter_plugin.c"),
        ];
        for source in sources {
            let object = objects
                .join(source.file_name().unwrap_or_default())
                .with_extension("o");
            let mut clang = self.clang();
            clang
                .args([
                    "-std=c11",
                    "-O2",
                    "-g0",
                    "-fno-builtin",
                    "-mbulk-memory",
                    "-w",
                ])
                // Its own `Python.h` comes first.
                .arg("-I")
                .arg(answers.own)
                .arg("-I")
                .arg(answers.native)
                .arg("-I")
                .arg(&objects);
            run(clang.arg("-c").arg(source).arg("-o").arg(&object))?;
            linked.push(object);
        }
        let mut link = self.clang();
        link.args(["-nostartfiles", "-Wl,--no-entry", "-Wl,--strip-debug"])
            .arg("-Wl,--import-memory")
            .arg(format!("-Wl,--global-base={}", answers.base))
            .args(["-z", &format!("stack-size={STACK_BYTES}")])
            .args(
                answers
                    .exports
                    .iter()
                    .map(|name| format!("-Wl,--export={name}")),
            )
            .args(linked);
        run(link.arg("-o").arg(answers.module))
    }
}

/// C that gives a Rust library its random numbers. The library's packages import WASI's `random_get` each by a symbol of its own.
fn random_for(library: &Path) -> Result<String> {
    let symbols = output(
        command(NM)
            .args(["--quiet", "--undefined-only", "--just-symbol-name"])
            .arg(library),
    )?;
    let mut text = "#include <stdint.h>\n\n\
                    int32_t __imported_wasi_snapshot_preview1_random_get(int32_t, int32_t);\n"
        .to_owned();
    let names = symbols.lines().filter(|name| name.contains("random_get"));
    for (at, name) in names.enumerate() {
        text += &format!(
            "\nint32_t random_{at}(int32_t, int32_t) __asm__(\"{name}\");\n\
             int32_t random_{at}(int32_t bytes, int32_t length) {{\n    \
             return __imported_wasi_snapshot_preview1_random_get(bytes, length);\n}}\n"
        );
    }
    Ok(text)
}

/// The archives that CPython's makefile makes.
const LIBRARIES: &[&str] = &[
    "libpython3.13.a",
    "Modules/_decimal/libmpdec/libmpdec.a",
    "Modules/_hacl/libHacl_Hash_SHA2.a",
    "Modules/expat/libexpat.a",
];

fn make(folder: &Path) -> Command {
    let mut make = command("make");
    let jobs = available_parallelism().map_or(1, usize::from);
    make.current_dir(folder).arg(format!("-j{jobs}"));
    make
}

fn runtime_library(resources: &Path) -> Result<PathBuf> {
    let known = [
        "wasi/libclang_rt.builtins-wasm32.a",
        "wasm32-unknown-wasip1/libclang_rt.builtins.a",
    ];
    let mut paths = known
        .map(|name| resources.join("lib").join(name))
        .into_iter();
    paths.find(|path| path.exists()).with_context(|| {
        format!(
            "clang's runtime library for WebAssembly is not below {}: on Debian or Ubuntu `apt-get install libclang-rt-19-dev-wasm32`",
            resources.display()
        )
    })
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}
