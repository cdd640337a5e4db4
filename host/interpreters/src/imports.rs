//! The packages that a Python program imports, seen without running it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::program::File;

/// Calls that import the module in their first argument.
const CALLS: [&str; 2] = ["import_module(", "__import__("];

/// The top-level names of the modules that `code` says that it imports. It is a look at the text: a statement inside a string
/// counts too, and a name that the program computes is not seen.
fn imports(code: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let statements = code.lines().flat_map(|line| line.split([';', ':']));
    for statement in statements {
        let statement = statement.trim_start();
        if let Some(modules) = statement.strip_prefix("import ") {
            found.extend(modules.split(',').map(top_level));
        } else if let Some(module) = statement.strip_prefix("from ") {
            found.insert(top_level(module));
        }
    }
    for call in CALLS {
        for (at, _) in code.match_indices(call) {
            let argument = code[at + call.len()..].trim_start();
            if let Some(module) = argument.strip_prefix(['"', '\'']) {
                found.insert(top_level(module));
            }
        }
    }
    found.remove("");
    found
}

/// The packages that a program imports. The modules that lie beside it count as its own code.
pub fn imported<'a>(code: &'a str, files: &'a [File]) -> BTreeSet<&'a str> {
    let is_module = |file: &&File| {
        let extension = Path::new(&file.path).extension();
        extension.is_some_and(|extension| extension == "py")
    };
    let beside = files.iter().filter(is_module);
    let beside = beside.filter_map(|file| std::str::from_utf8(&file.data).ok());
    std::iter::once(code)
        .chain(beside)
        .flat_map(imports)
        .collect()
}

/// `a` of `a.b as c`.
fn top_level(module: &str) -> &str {
    let module = module.trim_start();
    let end = module.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &module[..end.unwrap_or(module.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<&str> {
        imports(code).into_iter().collect()
    }

    #[test]
    fn statements_of_every_form_are_seen() {
        let code = "import os, numpy.linalg as la\nfrom pandas import DataFrame\nif True: import sympy\n\
                    try:\n\timport scipy; from .own import x\nexcept ImportError: pass\n";
        assert_eq!(found(code), ["numpy", "os", "pandas", "scipy", "sympy"]);
    }

    #[test]
    fn calls_that_import_are_seen() {
        let code =
            "importlib.import_module('sklearn.svm'); m = __import__(\"numpy\")\n__import__(name)\n";
        assert_eq!(found(code), ["numpy", "sklearn"]);
    }

    #[test]
    fn other_text_is_no_import() {
        assert!(found("important = 1\nfromage = 2\nprint('é')\nimport \nfrom\n").is_empty());
    }
}
