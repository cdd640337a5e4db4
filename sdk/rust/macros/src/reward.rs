//! `#[reward]`: a function, and beside it a type of the same name that implements `Reward`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result, Type};

use crate::signature::{self, Parameter};

const SHAPE: &str = "a reward is fn(&Task, &Trajectory [, &Grading] [, &State]) -> Terms or \
                     Result<Terms, impl Display>; with &[Trajectory] it grades the whole group and \
                     returns a Vec of either";

pub(crate) fn expand(function: &ItemFn) -> Result<TokenStream> {
    let identifier = &function.sig.ident;
    let visibility = &function.vis;
    let mut passed = Vec::new();
    let (mut single, mut whole_group) = (false, false);
    for parameter in signature::parameters(function)? {
        passed.push(match parameter {
            Parameter::Value(kind) => return Err(Error::new(kind.span(), SHAPE)),
            Parameter::Reference(kind) if signature::is_named(kind, "Task") => quote!(task),
            Parameter::Reference(kind) if signature::is_named(kind, "Grading") => quote!(grading),
            Parameter::Reference(kind) if signature::is_named(kind, "Trajectory") => {
                single = true;
                quote!(trajectory)
            }
            Parameter::Reference(Type::Slice(slice))
                if signature::is_named(&slice.elem, "Trajectory") =>
            {
                whole_group = true;
                quote!(group)
            }
            Parameter::Reference(kind) => quote!(&*::rlf_plugin::lifecycle::state::<#kind>()?),
        });
    }
    let body = match (single, whole_group) {
        (true, false) => quote! {
            group
                .iter()
                .map(|trajectory| {
                    ::rlf_plugin::reward::IntoScore::into_score(#identifier(#(#passed),*))
                })
                .collect()
        },
        (false, true) => quote! {
            #identifier(#(#passed),*)
                .into_iter()
                .map(::rlf_plugin::reward::IntoScore::into_score)
                .collect()
        },
        _ => return Err(Error::new(function.sig.span(), SHAPE)),
    };
    // For single trajectories the state is looked up inside the closure, where `?` has the inner result's type. For
    // groups `?` leaves the outer function.
    let result = if single {
        quote!(::std::result::Result::Ok(#body))
    } else {
        quote! {
            let scores: ::std::vec::Vec<_> = #body;
            ::std::result::Result::Ok(scores)
        }
    };

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #identifier {}

        impl ::rlf_plugin::reward::Reward for #identifier {
            fn grade(
                task: &::rlf_plugin::Task,
                group: &[::rlf_plugin::Trajectory],
                grading: &::rlf_plugin::Grading,
            ) -> ::std::result::Result<
                ::std::vec::Vec<::std::result::Result<::rlf_plugin::Score, ::rlf_plugin::Error>>,
                ::rlf_plugin::Error,
            > {
                let _ = (task, grading);
                #result
            }
        }
    })
}
