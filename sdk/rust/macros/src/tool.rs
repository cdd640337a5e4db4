//! `#[tool]`: a function, and beside it a type of the same name that implements `Tool`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Ident, ItemFn, LitStr, Path, Result, Token};

use crate::signature::{self, Parameter};

/// The arguments in the parentheses of `#[tool(..)]`.
#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the hints of the contract, each on its own"
)]
pub(crate) struct Options {
    name: Option<String>,
    refine: Option<Path>,
    read_only: bool,
    idempotent: bool,
    deterministic: bool,
    open_world: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut options = Self::default();
        for option in Punctuated::<Option_, Token![,]>::parse_terminated(input)? {
            match option {
                Option_::Name(name) => {
                    let text = name.value();
                    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    if text.is_empty() || text.len() > 64 || !text.chars().all(legal) {
                        return Err(Error::new(
                            name.span(),
                            "a tool's name matches [a-zA-Z0-9_-]{1,64}",
                        ));
                    }
                    options.name = Some(text);
                }
                Option_::Refine(path) => options.refine = Some(path),
                Option_::Flag(flag) => match flag.to_string().as_str() {
                    "read_only" => options.read_only = true,
                    "idempotent" => options.idempotent = true,
                    "deterministic" => options.deterministic = true,
                    "open_world" => options.open_world = true,
                    "pure" => {
                        options.read_only = true;
                        options.idempotent = true;
                        options.deterministic = true;
                    }
                    _ => {
                        return Err(Error::new(
                            flag.span(),
                            "expected name = \"..\", refine = path, read_only, idempotent, \
                             deterministic, pure (all three of them) or open_world",
                        ));
                    }
                },
            }
        }
        Ok(options)
    }
}

enum Option_ {
    Name(LitStr),
    Refine(Path),
    Flag(Ident),
}

impl Parse for Option_ {
    fn parse(input: ParseStream) -> Result<Self> {
        let key: Ident = input.parse()?;
        if key == "name" {
            input.parse::<Token![=]>()?;
            Ok(Self::Name(input.parse()?))
        } else if key == "refine" {
            input.parse::<Token![=]>()?;
            Ok(Self::Refine(input.parse()?))
        } else {
            Ok(Self::Flag(key))
        }
    }
}

pub(crate) fn expand(options: &Options, function: &ItemFn) -> Result<TokenStream> {
    let identifier = &function.sig.ident;
    let visibility = &function.vis;
    let name = options
        .name
        .clone()
        .unwrap_or_else(|| identifier.unraw().to_string());
    let description = signature::documentation(function);
    if description.is_empty() {
        return Err(Error::new(
            identifier.span(),
            "a tool needs a doc comment: it is the description that the model reads",
        ));
    }

    let mut arguments = None;
    let mut passed = Vec::new();
    for parameter in signature::parameters(function)? {
        match parameter {
            Parameter::Value(kind) if arguments.is_none() => {
                arguments = Some(kind);
                passed.push(quote!(arguments));
            }
            Parameter::Value(kind) => {
                return Err(Error::new(
                    kind.span(),
                    "a tool takes one struct of arguments by value; put this into it",
                ));
            }
            Parameter::Reference(kind) if signature::is_named(kind, "CallContext") => {
                passed.push(quote!(context));
            }
            Parameter::Reference(kind) => {
                passed.push(quote!(&*::rlf_plugin::lifecycle::state::<#kind>()?));
            }
        }
    }
    let arguments = arguments.map_or_else(
        || quote!(::rlf_plugin::tool::NoArguments),
        |kind| quote!(#kind),
    );
    // Without arguments the binding is only checked, not passed.
    let binding = if passed.iter().any(|p| p.to_string() == "arguments") {
        quote!(arguments)
    } else {
        quote!(_arguments)
    };
    let refined = options.refine.as_ref().map_or_else(
        || quote!(::std::result::Result::Ok(definition)),
        |path| quote!(::rlf_plugin::tool::refine(#path, definition)),
    );
    let Options {
        read_only,
        idempotent,
        deterministic,
        open_world,
        ..
    } = options;

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #identifier {}

        impl ::rlf_plugin::tool::Tool for #identifier {
            fn definition() -> ::std::result::Result<::rlf_plugin::ToolDefinition, ::rlf_plugin::Error> {
                let definition = ::rlf_plugin::tool::define::<#arguments>(
                    #name,
                    #description,
                    ::rlf_plugin::tool::hints(#read_only, #idempotent, #deterministic, #open_world),
                )?;
                #refined
            }

            fn call(
                arguments: &str,
                context: &::rlf_plugin::CallContext,
            ) -> ::std::result::Result<::rlf_plugin::Observation, ::rlf_plugin::Error> {
                let _ = context;
                let #binding: #arguments = ::rlf_plugin::tool::parse_arguments(arguments)?;
                ::std::result::Result::Ok(::rlf_plugin::IntoObservation::into_observation(
                    #identifier(#(#passed),*),
                ))
            }
        }
    })
}
