//! Tells the kind of a WebAssembly file from its first eight bytes.

use anyhow::{Result, bail};

const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
const CORE_MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// Refuses a file that is not a component.
pub fn check(bytes: &[u8]) -> Result<()> {
    match bytes.first_chunk::<8>() {
        Some(&COMPONENT) => Ok(()),
        Some(&CORE_MODULE) => bail!(
            "this is a core WebAssembly module, not a component: build for wasm32-wasip2, \
             with crate-type = [\"cdylib\"]"
        ),
        Some(header) => bail!("this is not WebAssembly: it begins with {header:02x?}"),
        None => bail!("this is not WebAssembly: it has {} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_components_pass() {
        check(b"\0asm\x0d\0\x01\0and more").unwrap();
        let message = |bytes: &[u8]| check(bytes).unwrap_err().to_string();
        assert!(message(b"\0asm\x01\0\0\0and more").contains("core WebAssembly module"));
        assert!(message(b"\x7fELF\x02\x01\x01\0").contains("not WebAssembly"));
        assert!(message(b"\0asm").contains("4 bytes"));
    }
}
