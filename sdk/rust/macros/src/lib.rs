//! The attributes `#[tool]` and `#[reward]` of `rlf-plugin`; use them through that crate.
//!
//! Both keep the function unchanged, so that native tests call it directly. Beside it they put a type of the same
//! name that implements the plugin contract.

mod reward;
mod signature;
mod tool;

use proc_macro::TokenStream;

/// Makes a function a tool. See `rlf_plugin::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let options = syn::parse_macro_input!(attribute as tool::Options);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    tool::expand(&options, &function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a function a reward. See `rlf_plugin::reward`.
#[proc_macro_attribute]
pub fn reward(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let _none = syn::parse_macro_input!(attribute as syn::parse::Nothing);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    reward::expand(&function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
