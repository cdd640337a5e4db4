//! Tells the linker to leave the interpreter's symbols unresolved. They are found when Python loads the library.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
