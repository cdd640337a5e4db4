//! The modules of one crate, read from its files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::tokens::{self, Kind, Token};

/// Keywords that are followed by the name of an item.
const ITEMS: [&str; 10] = [
    "const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union", "macro",
];

/// Keywords and marks that begin an item; anything else after an attribute is a field, a variant or a statement.
const BEGIN_ITEM: [&str; 17] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "macro_rules",
    "mod",
    "pub",
    "static",
    "struct",
    "trait",
    "type",
    "union",
    "unsafe",
    "use",
    "macro",
];

/// A module.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Names from the crate's root down; the root's path is empty.
    pub(super) path: Vec<String>,
    /// The file that it is written in.
    pub(super) file: PathBuf,
    /// Names of the items that it defines, including child modules.
    pub(super) items: BTreeSet<String>,
    /// Names that it imports, with their paths as written.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Paths of its glob imports.
    pub(super) globs: Vec<Vec<String>>,
    /// Paths that its code names, including imports, each with a line.
    pub(super) named: Vec<(Vec<String>, usize)>,
}

impl Module {
    /// `crate::a::b`
    pub(super) fn name(&self) -> String {
        std::iter::once("crate")
            .chain(self.path.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("::")
    }
}

/// All modules of the crate whose root file is `root`, without test modules. The root is the first.
pub(super) fn read(root: &Path) -> Result<Vec<Module>> {
    let folder = root.parent().unwrap_or(root);
    let mut modules = Vec::new();
    read_file(root, folder, &[], &mut modules)?;
    Ok(modules)
}

/// Reads `file`, whose child modules are in `folder`.
fn read_file(file: &Path, folder: &Path, path: &[String], modules: &mut Vec<Module>) -> Result<()> {
    let source = fs::read_to_string(file)
        .with_context(|| format!("the module file {} cannot be read", file.display()))?;
    let tokens = tokens::split(&source);
    for child in parse(&tokens, file, folder, path, modules) {
        let (file, folder) = child.place();
        read_file(&file, &folder, &child.path, modules)?;
    }
    Ok(())
}

/// A child module in a separate file.
struct Child {
    path: Vec<String>,
    /// The folder for children of the module that declares it.
    folder: PathBuf,
    /// The file, if an attribute names it.
    file: Option<PathBuf>,
}

impl Child {
    /// The child's file, and the folder for its own children.
    fn place(&self) -> (PathBuf, PathBuf) {
        let own = self
            .folder
            .join(self.path.last().map_or("", String::as_str));
        if let Some(file) = &self.file {
            return (file.clone(), file.parent().unwrap_or(file).to_owned());
        }
        let file = own.with_extension("rs");
        if file.is_file() {
            (file, own)
        } else {
            (own.join("mod.rs"), own)
        }
    }
}

/// Parses the tokens of one file into the module `path` and the modules written inside it.
fn parse(
    tokens: &[Token],
    file: &Path,
    folder: &Path,
    path: &[String],
    modules: &mut Vec<Module>,
) -> Vec<Child> {
    let mut parser = Parser {
        tokens,
        at: 0,
        file,
        modules,
        children: Vec::new(),
    };
    parser.module(path, folder);
    parser.children
}

struct Parser<'source> {
    tokens: &'source [Token],
    at: usize,
    file: &'source Path,
    modules: &'source mut Vec<Module>,
    children: Vec<Child>,
}

impl<'source> Parser<'source> {
    /// Reads the body of the module `path`, up to its closing brace or the end of the file.
    fn module(&mut self, path: &[String], folder: &Path) {
        let index = self.modules.len();
        self.modules.push(Module {
            path: path.to_vec(),
            file: self.file.to_owned(),
            ..Module::default()
        });
        let mut depth = 0_usize;
        let mut named_file = None;
        while self.at < self.tokens.len() {
            if self.mark('#') {
                let attribute = self.attribute();
                if only_tests(attribute) {
                    self.skip_item();
                } else if let [name, _, text] = attribute
                    && name.kind == Kind::Word("path".to_owned())
                    && let Kind::Text(text) = &text.kind
                {
                    let beside = self.file.parent().unwrap_or(self.file);
                    named_file = Some(beside.join(text));
                }
                continue;
            }
            match &self.tokens[self.at].kind {
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') if depth == 0 => return,
                Kind::Mark('}') => depth -= 1,
                Kind::Word(word) if word == "use" && !self.after_path() => {
                    self.at += 1;
                    self.import(index, depth == 0);
                    continue;
                }
                Kind::Word(word) if word == "mod" && self.word_at(self.at + 1).is_some() => {
                    self.child(index, path, folder, named_file.take());
                    continue;
                }
                Kind::Word(word) if word == "macro_rules" => {
                    if let Some(name) = self.word_at(self.at + 2) {
                        let name = name.to_owned();
                        self.modules[index].items.insert(name);
                    }
                }
                Kind::Word(word) if depth == 0 && ITEMS.contains(&word.as_str()) => {
                    if let Some(name) = self.word_at(self.at + 1) {
                        let name = name.to_owned();
                        self.modules[index].items.insert(name);
                    }
                }
                Kind::Word(_) if !self.after_path() => self.inline_path(index),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads `mod name;` or `mod name { .. }`.
    fn child(&mut self, parent: usize, path: &[String], folder: &Path, file: Option<PathBuf>) {
        let name = self.word_at(self.at + 1).unwrap_or_default().to_owned();
        self.modules[parent].items.insert(name.clone());
        let mut child = path.to_vec();
        child.push(name.clone());
        self.at += 2;
        if self.mark('{') {
            self.at += 1;
            self.module(&child, &folder.join(name));
            self.at += 1;
        } else {
            self.children.push(Child {
                path: child,
                folder: folder.to_owned(),
                file,
            });
        }
    }

    /// Reads the tree after `use`.
    fn import(&mut self, module: usize, of_the_module: bool) {
        let mut leaves = Vec::new();
        self.import_tree(&mut Vec::new(), &mut leaves);
        let module = &mut self.modules[module];
        for (path, name, line) in leaves {
            if name == "*" {
                if of_the_module {
                    module.globs.push(path.clone());
                }
            } else if of_the_module {
                module.imports.insert(name, path.clone());
            }
            module.named.push((path, line));
        }
    }

    fn import_tree(
        &mut self,
        path: &mut Vec<String>,
        leaves: &mut Vec<(Vec<String>, String, usize)>,
    ) {
        let kept = path.len();
        while let Some(token) = self.tokens.get(self.at) {
            let line = token.line;
            match &token.kind {
                Kind::Path => self.at += 1,
                Kind::Word(word) => {
                    // `a::{self}` is `a`.
                    if word != "self" || path.is_empty() {
                        path.push(word.clone());
                    }
                    self.at += 1;
                    if self
                        .tokens
                        .get(self.at)
                        .is_some_and(|next| next.kind == Kind::Path)
                    {
                        continue;
                    }
                    let mut name = path.last().cloned().unwrap_or_default();
                    if self.word_at(self.at) == Some("as") {
                        self.word_at(self.at + 1)
                            .unwrap_or_default()
                            .clone_into(&mut name);
                        self.at += 2;
                    }
                    leaves.push((path.clone(), name, line));
                    break;
                }
                Kind::Mark('*') => {
                    self.at += 1;
                    leaves.push((path.clone(), "*".to_owned(), line));
                    break;
                }
                Kind::Mark('{') => {
                    self.at += 1;
                    while self.at < self.tokens.len() && !self.mark('}') {
                        self.import_tree(path, leaves);
                        if self.mark(',') {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                _ => break,
            }
        }
        path.truncate(kept);
        // Not an import, for example a macro's variable: it is skipped, so that reading always ends.
        if let Some(token) = self.tokens.get(self.at)
            && !matches!(token.kind, Kind::Mark('}' | ',' | ';'))
        {
            self.at += 1;
        }
    }

    /// Records the path that begins here, `a::b`, and stops at its last word.
    fn inline_path(&mut self, module: usize) {
        let line = self.tokens[self.at].line;
        let mut path = Vec::new();
        while let Some(word) = self.word_at(self.at) {
            path.push(word.to_owned());
            let next = self.tokens.get(self.at + 1).map(|token| &token.kind);
            if next != Some(&Kind::Path) || self.word_at(self.at + 2).is_none() {
                break;
            }
            self.at += 2;
        }
        if path.len() > 1 {
            self.modules[module].named.push((path, line));
        }
    }

    /// Reads `#[..]` or `#![..]`; returns the tokens between the brackets.
    fn attribute(&mut self) -> &'source [Token] {
        self.at += 1;
        if self.mark('!') {
            self.at += 1;
        }
        if !self.mark('[') {
            return &[];
        }
        let start = self.at + 1;
        self.skip_group();
        self.tokens.get(start..self.at - 1).unwrap_or_default()
    }

    /// Skips the item, field or statement after an attribute.
    fn skip_item(&mut self) {
        while self.mark('#') {
            self.attribute();
        }
        let item = self
            .word_at(self.at)
            .is_some_and(|word| BEGIN_ITEM.contains(&word));
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                Kind::Mark('{') => {
                    self.skip_group();
                    return;
                }
                Kind::Mark('(' | '[') => self.skip_group(),
                Kind::Mark('}' | ')' | ']') => return,
                Kind::Mark(';') => {
                    self.at += 1;
                    return;
                }
                Kind::Mark(',') if !item => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips a bracketed group.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.kind {
                Kind::Mark('(' | '[' | '{') => depth += 1,
                Kind::Mark(')' | ']' | '}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    fn mark(&self, mark: char) -> bool {
        self.tokens
            .get(self.at)
            .is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    fn word_at(&self, at: usize) -> Option<&str> {
        match &self.tokens.get(at)?.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// True if the token here continues a path, or a method call.
    fn after_path(&self) -> bool {
        self.at > 0 && matches!(self.tokens[self.at - 1].kind, Kind::Path | Kind::Mark('.'))
    }
}

/// True if an attribute restricts its item to test builds.
fn only_tests(attribute: &[Token]) -> bool {
    let is = |at: usize, word: &str| matches!(&attribute.get(at), Some(Token { kind: Kind::Word(other), .. }) if other == word);
    is(0, "cfg") && (1..attribute.len()).any(|at| is(at, "test") && !(at >= 2 && is(at - 2, "not")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str) -> (Vec<Module>, Vec<Child>) {
        let mut modules = Vec::new();
        let tokens = tokens::split(source);
        let children = parse(
            &tokens,
            Path::new("src/lib.rs"),
            Path::new("src"),
            &[],
            &mut modules,
        );
        (modules, children)
    }

    fn named(source: &str) -> Vec<String> {
        let (modules, _) = parsed(source);
        modules[0]
            .named
            .iter()
            .map(|(path, _)| path.join("::"))
            .collect()
    }

    #[test]
    fn a_tree_of_imports_is_taken_apart() {
        assert_eq!(
            named("use crate::{a, b::{self, C as D}, e::*}; use self::f;"),
            ["crate::a", "crate::b", "crate::b::C", "crate::e", "self::f"]
        );
        let (modules, _) = parsed("pub use crate::{b::{self, C as D}, e::*};");
        assert_eq!(modules[0].imports["b"], ["crate", "b"]);
        assert_eq!(modules[0].imports["D"], ["crate", "b", "C"]);
        assert_eq!(modules[0].globs, [["crate", "e"]]);
    }

    #[test]
    fn paths_in_code_are_found_and_imports_of_functions_too() {
        assert_eq!(
            named("fn f(x: super::a::B) { use super::c; crate::d::e::<T>(x.g::<u8>()); 1 }"),
            ["super::a::B", "super::c", "crate::d::e"]
        );
        assert_eq!(
            named("macro_rules! m { () => { $crate::a::b() } }"),
            ["crate::a::b"]
        );
        assert_eq!(named("pub(in crate::a) fn f() {}"), ["crate::a"]);
    }

    #[test]
    fn tests_comments_and_strings_name_nothing() {
        assert_eq!(
            named(
                "#[cfg(test)] mod tests { use crate::a; }\n#[cfg(all(test, unix))] use crate::b;\n\
                 // crate::c::d\n/// [crate::e::f]\nconst S: &str = \"crate::g::h\";\n\
                 struct T { #[cfg(test)] x: crate::i::J, y: crate::k::L }"
            ),
            ["crate::k::L"]
        );
        assert_eq!(named("#[cfg(not(test))] use crate::a;"), ["crate::a"]);
    }

    #[test]
    fn modules_inside_a_file_and_in_files_of_their_own_are_told_apart() {
        let (modules, children) =
            parsed("mod a { mod b; use super::x; } mod c; #[path = \"e.rs\"] mod d;");
        assert_eq!(modules.len(), 2);
        assert_eq!(modules[1].name(), "crate::a");
        let places: Vec<_> = children
            .iter()
            .map(|child| (child.path.join("::"), child.place().0))
            .collect();
        assert_eq!(places[0], ("a::b".to_owned(), "src/a/b/mod.rs".into()));
        assert_eq!(places[1], ("c".to_owned(), "src/c/mod.rs".into()));
        assert_eq!(places[2], ("d".to_owned(), "src/e.rs".into()));
    }
}
