//! Makes one module of two that share a memory: a Python that asks for WASI, and our C, which answers it.
//!
//! Both were linked by themselves. Our C imports its memory, and its data lies behind the pages that the Python's memory
//! begins with. An import of either module whose name the other exports becomes a call. What is left of our C's imports
//! are the imports of the result, and the exports of our C are its exports.

use std::{collections::HashMap, convert::Infallible};

use anyhow::{Context, Result, bail, ensure};
use wasm_encoder::{
    CodeSection, CustomSection, DataSection, ElementSection, ExportKind, ExportSection,
    FunctionSection, GlobalSection, ImportSection, MemorySection, MemoryType, Module, TableSection,
    TagSection, TypeSection,
    reencode::{self, Reencode},
};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

/// The module from which our C imports functions of the Python.
const PYTHON: &str = "python";
/// Name of the exported memory.
const MEMORY: &str = "memory";
/// Bytes of a page of memory.
const PAGE_BYTES: u64 = 1 << 16;

/// The functions that a module imports from others, as pairs of module and name, in order.
pub(crate) fn imports(module: &[u8]) -> Result<Vec<(String, String)>> {
    Ok(Input::read(module)?.imports)
}

/// Size of the memory that a module begins with, in bytes.
pub(crate) fn memory_bytes(module: &[u8]) -> Result<u64> {
    Ok(Input::read(module)?.pages * PAGE_BYTES)
}

/// Links `ours` to `python`. `answers` maps an import of the Python to the export of `ours` that answers it.
pub(crate) fn merge(
    python: &[u8],
    ours: &[u8],
    answers: impl Fn(&str, &str) -> String,
) -> Result<Vec<u8>> {
    let (python, ours) = (Input::read(python)?, Input::read(ours)?);
    // That of ours only fills its part of the memory with zeros, which a new memory has.
    ensure!(!python.starts, "the Python has a start function");
    let mut kept = ImportSection::new();
    let left: Vec<_> = ours.imports.iter().filter(|(m, _)| m != PYTHON).collect();
    let own = u32::try_from(left.len())?;
    let place = |input: &Input<'_>, first: u32, name: &str| -> Result<u32> {
        let found = input.functions.get(name).copied();
        let index =
            found.with_context(|| format!("the other module exports no function {name}"))?;
        let defined = index.checked_sub(u32::try_from(input.imports.len())?);
        Ok(first + defined.with_context(|| format!("{name} is itself imported"))?)
    };
    let (first_of_python, first_of_ours) = (own, own + python.defined);
    let mut of_python = Renumber::default();
    for (module, name) in &python.imports {
        let answer = answers(module, name);
        of_python
            .functions
            .push(place(&ours, first_of_ours, &answer)?);
    }
    of_python.first_function = first_of_python;
    let mut of_ours = Renumber {
        types: python.types,
        globals: python.globals,
        tables: python.tables,
        first_function: first_of_ours,
        ..Renumber::default()
    };
    let mut number = 0;
    for (module, name) in &ours.imports {
        of_ours.functions.push(if module == PYTHON {
            place(&python, first_of_python, name)?
        } else {
            number += 1;
            number - 1
        });
    }

    let mut merged = Parts::default();
    merged.add(&python, &mut of_python)?;
    merged.add(&ours, &mut of_ours)?;
    for import in ours.import_types(&mut of_ours)? {
        kept.import(
            &import.0,
            &import.1,
            wasm_encoder::EntityType::Function(import.2),
        );
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: ours.pages.max(python.pages),
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export(MEMORY, ExportKind::Memory, 0);
    let mut names: Vec<_> = ours.functions.iter().collect();
    names.sort();
    for (name, _) in names {
        // Those that only answer the Python's imports are nobody else's.
        if !of_python
            .functions
            .contains(&place(&ours, first_of_ours, name)?)
        {
            exports.export(name, ExportKind::Func, place(&ours, first_of_ours, name)?);
        }
    }
    let mut module = Module::new();
    module
        .section(&merged.types)
        .section(&kept)
        .section(&merged.functions)
        .section(&merged.tables)
        .section(&memories)
        .section(&merged.tags)
        .section(&merged.globals)
        .section(&exports)
        .section(&merged.elements)
        .section(&merged.code)
        .section(&merged.data);
    for (name, data) in &ours.custom {
        module.section(&CustomSection {
            name: (*name).into(),
            data: (*data).into(),
        });
    }
    Ok(module.finish())
}

/// Facts about a module that are needed before it is encoded again.
struct Input<'a> {
    module: &'a [u8],
    imports: Vec<(String, String)>,
    /// Functions that it exports, by name.
    functions: HashMap<String, u32>,
    /// Numbers of its types, functions with a body, globals and tables.
    types: u32,
    defined: u32,
    globals: u32,
    tables: u32,
    /// Pages that its memory has at least, its own or an imported one.
    pages: u64,
    /// It has a function that runs first.
    starts: bool,
    /// Sections that say what type of component it is.
    custom: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Input<'a> {
    fn read(module: &'a [u8]) -> Result<Self> {
        let mut input = Self {
            module,
            imports: Vec::new(),
            functions: HashMap::new(),
            types: 0,
            defined: 0,
            globals: 0,
            tables: 0,
            pages: 0,
            starts: false,
            custom: Vec::new(),
        };
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        input.types += u32::try_from(group?.types().len())?;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        match import.ty {
                            TypeRef::Func(_) => {
                                let name = (import.module.to_owned(), import.name.to_owned());
                                input.imports.push(name);
                            }
                            TypeRef::Memory(memory) => input.pages = memory.initial,
                            other => bail!("it imports {}: {other:?}", import.name),
                        }
                    }
                }
                Payload::FunctionSection(section) => input.defined = section.count(),
                Payload::TableSection(section) => input.tables = section.count(),
                Payload::MemorySection(section) => {
                    for memory in section {
                        input.pages = memory?.initial;
                    }
                }
                Payload::GlobalSection(section) => input.globals = section.count(),
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            input.functions.insert(export.name.to_owned(), export.index);
                        }
                    }
                }
                Payload::CustomSection(section) if section.name().starts_with("component-type") => {
                    input.custom.push((section.name(), section.data()));
                }
                Payload::StartSection { .. } => input.starts = true,
                Payload::DataCountSection { .. } => bail!("its instructions refer to data"),
                _ => {}
            }
        }
        Ok(input)
    }

    /// The imports that stay, with the numbers of their types.
    fn import_types(&self, numbers: &mut Renumber) -> Result<Vec<(String, String, u32)>> {
        let mut kept = Vec::new();
        for payload in Parser::new(0).parse_all(self.module) {
            if let Payload::ImportSection(section) = payload? {
                for import in section.into_imports() {
                    let import = import?;
                    if let (TypeRef::Func(ty), true) = (import.ty, import.module != PYTHON) {
                        let ty = numbers
                            .type_index(ty)
                            .map_err(|error| anyhow::anyhow!("{error}"))?;
                        kept.push((import.module.to_owned(), import.name.to_owned(), ty));
                    }
                }
            }
        }
        Ok(kept)
    }
}

/// The numbers that the parts of one module have in the result.
#[derive(Default)]
struct Renumber {
    /// The functions that it imports.
    functions: Vec<u32>,
    /// Its first function with a body.
    first_function: u32,
    /// Numbers of types, globals and tables before its own.
    types: u32,
    globals: u32,
    tables: u32,
}

type Numbered = std::result::Result<u32, reencode::Error<Infallible>>;

impl Reencode for Renumber {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Numbered {
        let imported = self.functions.len() as u32;
        let found = self.functions.get(index as usize).copied();
        Ok(found.unwrap_or_else(|| self.first_function + (index - imported)))
    }

    fn type_index(&mut self, index: u32) -> Numbered {
        Ok(self.types + index)
    }

    fn global_index(&mut self, index: u32) -> Numbered {
        Ok(self.globals + index)
    }

    fn table_index(&mut self, index: u32) -> Numbered {
        Ok(self.tables + index)
    }
}

/// The sections of the result that have parts of both modules.
#[derive(Default)]
struct Parts {
    types: TypeSection,
    functions: FunctionSection,
    tables: TableSection,
    tags: TagSection,
    globals: GlobalSection,
    elements: ElementSection,
    code: CodeSection,
    data: DataSection,
}

impl Parts {
    /// Appends the parts of a module.
    fn add(&mut self, input: &Input<'_>, numbers: &mut Renumber) -> Result<()> {
        for payload in Parser::new(0).parse_all(input.module) {
            let done = match payload? {
                Payload::TypeSection(section) => {
                    numbers.parse_type_section(&mut self.types, section)
                }
                Payload::FunctionSection(section) => {
                    numbers.parse_function_section(&mut self.functions, section)
                }
                Payload::TableSection(section) => {
                    numbers.parse_table_section(&mut self.tables, section)
                }
                Payload::TagSection(section) => {
                    ensure!(self.tags.is_empty(), "both modules have tags");
                    numbers.parse_tag_section(&mut self.tags, section)
                }
                Payload::GlobalSection(section) => {
                    numbers.parse_global_section(&mut self.globals, section)
                }
                Payload::ElementSection(section) => {
                    numbers.parse_element_section(&mut self.elements, section)
                }
                Payload::CodeSectionEntry(body) => {
                    numbers.parse_function_body(&mut self.code, body)
                }
                Payload::DataSection(section) => {
                    numbers.parse_data_section(&mut self.data, section)
                }
                _ => Ok(()),
            };
            done.map_err(|error| anyhow::anyhow!("encoding a section again: {error}"))?;
        }
        Ok(())
    }
}
