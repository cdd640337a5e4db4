//! Leaves the symbols of the Python interpreter to be found when it loads the library, on systems whose linker asks.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
