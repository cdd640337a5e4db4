//! Splits a snapshot into its code and the image of its memory, so that snapshots of one interpreter share compiled code.
//!
//! The code is the component again, but the core module with the memory imports it. The image is a core module that makes
//! the memory, fills it and exports it. It is imported by the component. Linked, both are the component that was split. Snapshots
//! that differ only in their memory have the same code, byte for byte. Compiling the image costs little, since it has no
//! function.

use std::convert::Infallible;

use wasm_encoder::reencode::{self, Reencode, ReencodeComponent, component_utils};
use wasm_encoder::{
    Component, ComponentAliasSection, ComponentImportSection, ComponentTypeRef, CoreTypeSection,
    DataCountSection, DataSection, Encode, EntityType, ExportKind, ExportSection, InstanceSection,
    MemorySection, MemoryType, Module, ModuleArg, ModuleType, RawSection,
};
use wasmparser::{
    BinaryReader, ComponentAliasSectionReader, DataKind, DataSectionReader, ImportSectionReader,
    Instance, InstanceSectionReader, MemorySectionReader, Result, TypeRef,
};

use super::segments::{self, DATA, DATA_COUNT, MODULE, constant, sections};

/// Name under which the code of a component imports the image of its memory.
pub(crate) const IMAGE: &str = "rlf-image";
/// Name of the memory that an image exports.
const MEMORY_NAME: &str = "memory";

/// Minimum size of an image that is worth a file of its own, in bytes.
const MIN_IMAGE_BYTES: usize = 1 << 20;

/// Ids of a module's sections.
const CUSTOM: u8 = 0;
const TYPE: u8 = 1;
const IMPORT: u8 = 2;
const MEMORY: u8 = 5;
const START: u8 = 8;

/// Ids of a component's sections.
const CORE_INSTANCE: u8 = 2;
const CORE_TYPE: u8 = 3;
const ALIAS: u8 = 6;

/// A component in two parts.
pub(crate) struct Split {
    /// A component that imports the image.
    pub(crate) code: Vec<u8>,
    /// A core module that exports the memory.
    pub(crate) image: Vec<u8>,
}

/// Splits a component that is a snapshot. Returns `None` if it has no large memory, or if its form does not allow a
/// split: then it stays whole.
pub(crate) fn split(component: &[u8]) -> Option<Split> {
    try_split(component).ok().flatten()
}

fn try_split(component: &[u8]) -> Result<Option<Split>, Reencoded> {
    let parts = sections(component)?;
    // The split adds a core type, and would change the numbers of others. Components that tools make have none.
    if parts.iter().any(|(id, _)| *id == CORE_TYPE) {
        return Ok(None);
    }
    let mut largest: Option<(u32, OwnMemory<'_>)> = None;
    let modules = parts.iter().filter(|(id, _)| *id == MODULE);
    // Modules to which the memory is passed on may want a part of its size to be known.
    let mut known_pages = 0;
    for (index, (_, module)) in (0..).zip(modules) {
        known_pages = known_pages.max(imported_pages(module)?);
        if let Some(memory) = OwnMemory::read(module)?
            && memory.bytes
                > largest
                    .as_ref()
                    .map_or(MIN_IMAGE_BYTES, |(_, found)| found.bytes)
        {
            largest = Some((index, memory));
        }
    }
    let Some((holder, memory)) = largest else {
        return Ok(None);
    };
    let imported = MemoryType {
        // The whole size differs from snapshot to snapshot.
        minimum: known_pages.min(memory.shape.minimum),
        ..memory.shape
    };
    Ok(Some(Split {
        code: code_component(&parts, holder, imported)?,
        image: memory.image(),
    }))
}

/// The largest initial size among the memories that a module imports, in pages.
fn imported_pages(module: &[u8]) -> Result<u64> {
    let mut pages = 0;
    for (id, body) in sections(module)? {
        if id == IMPORT {
            let imports = ImportSectionReader::new(BinaryReader::new(body, 0))?;
            for import in imports.into_imports() {
                if let TypeRef::Memory(memory) = import?.ty {
                    pages = pages.max(memory.initial);
                }
            }
        }
    }
    Ok(pages)
}

/// The memory of a core module that has exactly one.
struct OwnMemory<'a> {
    shape: MemoryType,
    /// The data that is placed into it, and where.
    placed: Vec<(u32, &'a [u8])>,
    /// Length of that data.
    bytes: usize,
}

impl<'a> OwnMemory<'a> {
    /// Reads the memory of a module. Returns `None` if the module has no memory, several or an unusual one, or if
    /// something could happen between making the memory and filling it.
    fn read(module: &'a [u8]) -> Result<Option<Self>> {
        let mut shape = None;
        let mut placed = Vec::new();
        let mut bytes = 0;
        for (id, body) in sections(module)? {
            let reader = BinaryReader::new(body, 0);
            match id {
                IMPORT => {
                    for import in ImportSectionReader::new(reader)?.into_imports() {
                        let import = import?;
                        if import.module == IMAGE || matches!(import.ty, TypeRef::Memory(_)) {
                            return Ok(None);
                        }
                    }
                }
                MEMORY => {
                    let memories = MemorySectionReader::new(reader)?;
                    let memories = memories.into_iter().collect::<Result<Vec<_>>>()?;
                    let [memory] = memories[..] else {
                        return Ok(None);
                    };
                    if memory.memory64 || memory.shared || memory.page_size_log2.is_some() {
                        return Ok(None);
                    }
                    shape = Some(MemoryType {
                        minimum: memory.initial,
                        maximum: memory.maximum,
                        memory64: false,
                        shared: false,
                        page_size_log2: None,
                    });
                }
                START => return Ok(None),
                DATA => {
                    for data in DataSectionReader::new(reader)? {
                        let data = data?;
                        match &data.kind {
                            DataKind::Active {
                                memory_index: 0,
                                offset_expr,
                            } => {
                                let Some(place) = constant(offset_expr)? else {
                                    return Ok(None);
                                };
                                bytes += data.data.len();
                                placed.push((place, data.data));
                            }
                            // Those that stay keep their numbers only if they come first.
                            DataKind::Passive if placed.is_empty() => {}
                            _ => return Ok(None),
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(shape.map(|shape| Self {
            shape,
            placed,
            bytes,
        }))
    }

    /// A module that makes the memory and fills it.
    fn image(&self) -> Vec<u8> {
        let mut memories = MemorySection::new();
        memories.memory(self.shape);
        let mut exports = ExportSection::new();
        exports.export(MEMORY_NAME, ExportKind::Memory, 0);
        let mut module = Module::new();
        module.section(&memories).section(&exports);
        let mut module = module.finish();
        // Megabytes, which are copied once.
        module.push(DATA);
        segments::placed(&self.placed)
            .as_slice()
            .encode(&mut module);
        module
    }
}

/// The component of these sections, in which core module number `holder` imports its memory, of the given type.
fn code_component(
    parts: &[(u8, &[u8])],
    holder: u32,
    memory: MemoryType,
) -> Result<Vec<u8>, Reencoded> {
    let mut image = ModuleType::new();
    image.export(MEMORY_NAME, EntityType::Memory(memory));
    let mut types = CoreTypeSection::new();
    types.ty().module(&image);
    let mut imports = ComponentImportSection::new();
    imports.import(IMAGE, ComponentTypeRef::Module(0));
    // The image is module 0 and its instance is core instance 0. All others move up by one.
    let mut instances = InstanceSection::new();
    instances.instantiate(0, [] as [(&str, ModuleArg); 0]);
    let mut component = Component::new();
    component
        .section(&types)
        .section(&imports)
        .section(&instances);

    let mut moved = MovedUp { holder };
    let mut modules = 0..;
    for &(id, data) in parts {
        let reader = BinaryReader::new(data, 0);
        match id {
            MODULE if modules.next() == Some(holder) => {
                let data = &code_module(data, memory)?;
                component.section(&RawSection { id, data });
            }
            CORE_INSTANCE => {
                let mut section = InstanceSection::new();
                moved.parse_instance_section(&mut section, InstanceSectionReader::new(reader)?)?;
                component.section(&section);
            }
            ALIAS => {
                let mut section = ComponentAliasSection::new();
                let aliases = ComponentAliasSectionReader::new(reader)?;
                moved.parse_component_alias_section(&mut section, aliases)?;
                component.section(&section);
            }
            // Names by number, which would be wrong, and notes on how it was built.
            CUSTOM => {}
            _ => {
                component.section(&RawSection { id, data });
            }
        }
    }
    Ok(component.finish())
}

/// Reasons that sections cannot be encoded again.
type Reencoded = reencode::Error<Infallible>;

/// Encodes references to modules and core instances with their numbers in the code.
struct MovedUp {
    /// The number that the module with the memory had.
    holder: u32,
}

impl Reencode for MovedUp {
    type Error = Infallible;
}

impl ReencodeComponent for MovedUp {
    fn module_index(&mut self, index: u32) -> u32 {
        index.saturating_add(1)
    }

    fn instance_index(&mut self, index: u32) -> u32 {
        index.saturating_add(1)
    }

    fn parse_instance(
        &mut self,
        instances: &mut InstanceSection,
        instance: Instance<'_>,
    ) -> Result<(), Reencoded> {
        match instance {
            Instance::Instantiate { module_index, args } if module_index == self.holder => {
                let mut given: Vec<(&str, ModuleArg)> = vec![(IMAGE, ModuleArg::Instance(0))];
                for arg in &args {
                    given.push((
                        arg.name,
                        ModuleArg::Instance(self.instance_index(arg.index)),
                    ));
                }
                instances.instantiate(self.module_index(module_index), given);
                Ok(())
            }
            other => component_utils::parse_instance(self, instances, other),
        }
    }
}

/// The core module without its memory and the data placed into it: it imports the memory instead.
fn code_module(module: &[u8], memory: MemoryType) -> Result<Vec<u8>> {
    let parts = sections(module)?;
    let has = |wanted: u8| parts.iter().any(|(id, _)| *id == wanted);
    // If data is not counted, no instruction refers to it by number, so none has to stay.
    let is_counted = has(DATA_COUNT);
    let mut is_imported = false;
    let mut code = Module::new();
    for &(id, data) in &parts {
        if !is_imported && !has(IMPORT) && !matches!(id, CUSTOM | TYPE) {
            let data = &with_import(0, &[], memory);
            code.section(&RawSection { id: IMPORT, data });
            is_imported = true;
        }
        match id {
            IMPORT => {
                let mut reader = BinaryReader::new(data, 0);
                let number = reader.read_var_u32()?;
                let imports = reader.read_bytes(reader.bytes_remaining())?;
                let data = &with_import(number, imports, memory);
                code.section(&RawSection { id, data });
                is_imported = true;
            }
            DATA_COUNT => {
                let count = match parts.iter().find(|(id, _)| *id == DATA) {
                    Some((_, data)) => passive(data)?.len(),
                    None => 0,
                };
                code.section(&DataCountSection { count });
            }
            DATA if is_counted => {
                code.section(&passive(data)?);
            }
            MEMORY | DATA => {}
            _ => {
                code.section(&RawSection { id, data });
            }
        }
    }
    Ok(code.finish())
}

/// The content of an import section: this many imports, already encoded, and the memory.
fn with_import(number: u32, imports: &[u8], memory: MemoryType) -> Vec<u8> {
    let mut section = Vec::new();
    number.saturating_add(1).encode(&mut section);
    section.extend_from_slice(imports);
    IMAGE.encode(&mut section);
    MEMORY_NAME.encode(&mut section);
    EntityType::Memory(memory).encode(&mut section);
    section
}

/// The data of a section that is placed nowhere.
fn passive(section: &[u8]) -> Result<DataSection> {
    let mut passive = DataSection::new();
    for data in DataSectionReader::new(BinaryReader::new(section, 0))? {
        let data = data?;
        if matches!(data.kind, DataKind::Passive) {
            passive.raw(&section[data.range]);
        }
    }
    Ok(passive)
}

#[cfg(test)]
mod tests {
    use wasmtime::component::{Component, Linker};
    use wasmtime::{Engine, Module, Store};

    use super::{IMAGE, MIN_IMAGE_BYTES, split};

    /// A component whose second module has a large memory, data that an instruction names, and a third module that uses
    /// the memory. `more` is added to the second module.
    fn component(byte: u8, more: &str) -> Vec<u8> {
        let data = format!("\\{byte:02x}").repeat(MIN_IMAGE_BYTES + 1);
        let text = format!(
            r#"(component
            (core module $first (func (export "seven") (result i32) (i32.const 7)))
            (core module $second
                (import "first" "seven" (func $seven (result i32)))
                (memory (export "memory") 20 30)
                (global $at (mut i32) (i32.const 70000))
                (data $named "named")
                (data (i32.const 65536) "{data}")
                (func (export "sum") (result i32)
                    (memory.init $named (i32.const 8) (i32.const 0) (i32.const 5))
                    (i32.add (i32.add (call $seven) (i32.load8_u (i32.const 8)))
                        (i32.add (i32.load8_u (global.get $at)) (memory.size))))
                {more})
            (core instance $a (instantiate $first))
            (core instance $b (instantiate $second (with "first" (instance $a))))
            (core module $third
                (import "b" "memory" (memory 1))
                (import "c" "sum" (func $sum (result i32)))
                (func (export "run") (result i32)
                    (i32.add (call $sum) (i32.mul (i32.const 1000) (i32.load8_u (i32.const 65536))))))
            (alias core export $b "sum" (core func $sum))
            (core instance $c (export "sum" (func $sum)))
            (core instance $d (instantiate $third (with "b" (instance $b)) (with "c" (instance $c))))
            (component $inner (core module $m (func (export "x"))) (core instance (instantiate $m)))
            (instance (instantiate $inner))
            (func (export "run") (result u32) (canon lift (core func $d "run"))))"#
        );
        wat::parse_str(text).unwrap()
    }

    /// The result of a component, with an image if it imports one.
    fn result(bytes: &[u8], image: Option<&[u8]>) -> u32 {
        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        if let Some(image) = image {
            let image = Module::new(&engine, image).unwrap();
            linker.root().module(IMAGE, &image).unwrap();
        }
        let component = Component::new(&engine, bytes).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let run = instance
            .get_typed_func::<(), (u32,)>(&mut store, "run")
            .unwrap();
        run.call(&mut store, ()).unwrap().0
    }

    #[test]
    fn both_parts_together_are_the_component() {
        for byte in [1, 200] {
            let whole = component(byte, "");
            let parts = split(&whole).unwrap();
            let expected = 7 + u32::from(b'n') + u32::from(byte) + 20 + 1000 * u32::from(byte);
            assert_eq!(result(&whole, None), expected);
            assert_eq!(result(&parts.code, Some(&parts.image)), expected);
            assert!(parts.code.len() < 2_000, "{}", parts.code.len());
        }
    }

    #[test]
    fn components_that_differ_in_their_memory_have_the_same_code() {
        let [one, other] = [1, 2].map(|byte| split(&component(byte, "")).unwrap());
        assert_eq!(one.code, other.code);
        assert_ne!(one.image, other.image);
        let more = split(&component(1, "(func)")).unwrap();
        assert_ne!(one.code, more.code);
        assert_eq!(one.image, more.image);
    }

    #[test]
    fn what_has_another_form_stays_whole() {
        for more in ["(memory 1)", "(func $f) (start $f)", r#"(data "late")"#] {
            assert!(split(&component(1, more)).is_none(), "{more}");
        }
        let data = "a".repeat(MIN_IMAGE_BYTES + 1);
        let alone = |before: &str, data: &str| {
            let text =
                format!(r#"(component (core module {before} (data (i32.const 0) "{data}")))"#);
            split(&wat::parse_str(text).unwrap())
        };
        assert!(alone("(memory 20)", &data).is_some());
        for before in [
            r#"(import "rlf-image" "x" (func)) (memory 20)"#,
            r#"(import "a" "b" (memory 20))"#,
            "(memory 20 30 shared)",
            "(memory i64 20)",
        ] {
            assert!(alone(before, &data).is_none(), "{before}");
        }
        assert!(alone("(memory 20)", "small").is_none());
        let typed = format!(
            r#"(component (core type (func)) (core module (memory 20) (data (i32.const 0) "{data}")))"#
        );
        assert!(split(&wat::parse_str(typed).unwrap()).is_none());
        assert!(split(b"\0asm, or not").is_none());
    }
}
