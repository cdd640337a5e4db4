//! The parameters of an author's function, told apart by their types.

use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, FnArg, ItemFn, Lit, Meta, Result, Type};

/// One parameter of a tool or reward.
pub(crate) enum Parameter<'a> {
    /// A parameter by value: the typed arguments of a call.
    Value(&'a Type),
    /// A parameter by shared reference: a value that the SDK lends.
    Reference(&'a Type),
}

/// Classifies the parameters, in order, and refuses those that no plugin function can have.
pub(crate) fn parameters(function: &ItemFn) -> Result<Vec<Parameter<'_>>> {
    let signature = &function.sig;
    if let Some(asyncness) = &signature.asyncness {
        return Err(Error::new(
            asyncness.span(),
            "plugin functions are not async: a call owns its instance",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "plugin functions cannot be generic",
        ));
    }
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        let FnArg::Typed(typed) = input else {
            return Err(Error::new(
                input.span(),
                "plugin functions are free functions, without `self`",
            ));
        };
        parameters.push(match &*typed.ty {
            Type::Reference(reference) if reference.mutability.is_some() => {
                return Err(Error::new(
                    reference.span(),
                    "every call starts from the memory that `init` left, so nothing written here \
                     would survive: take it by `&`",
                ));
            }
            Type::Reference(reference) => Parameter::Reference(&reference.elem),
            value => Parameter::Value(value),
        });
    }
    Ok(parameters)
}

/// True if the last segment of a type's path is `name`, so any import of it is recognised.
pub(crate) fn is_named(candidate: &Type, name: &str) -> bool {
    matches!(candidate, Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == name))
}

/// The doc comment as prose: lines joined by spaces, paragraphs by newlines.
pub(crate) fn documentation(function: &ItemFn) -> String {
    let mut text = String::new();
    for attribute in &function.attrs {
        let Meta::NameValue(pair) = &attribute.meta else {
            continue;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(line),
            ..
        }) = &pair.value
        else {
            continue;
        };
        if !pair.path.is_ident("doc") {
            continue;
        }
        for line in line.value().lines().map(str::trim) {
            if line.is_empty() {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
            } else {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push(' ');
                }
                text.push_str(line);
            }
        }
    }
    text.trim_end().to_owned()
}
