//! Functions of the engine that the binding lacks, or offers only in part. All `unsafe` code is in this file; every
//! function takes a [`Ctx`], so the engine is locked and alive.
#![allow(unsafe_code)]

use std::ffi::CString;

use rquickjs::{Ctx, Error, Exception, Object, Result, TypedArray, Value, qjs};

/// Evaluates `source` as a script, not strict, in the global scope. The source may contain any bytes, even NUL.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, source: &str, name: &str) -> Result<Value<'js>> {
    eval(ctx, source, name, qjs::JS_EVAL_TYPE_GLOBAL)
}

/// Like [`evaluate`], with `await` allowed outside functions: returns a promise of `{ value }`.
pub(crate) fn evaluate_cell<'js>(ctx: &Ctx<'js>, source: &str, name: &str) -> Result<Value<'js>> {
    eval(
        ctx,
        source,
        name,
        qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_ASYNC,
    )
}

/// Compiles `source` without running it.
pub(crate) fn compile(ctx: &Ctx<'_>, source: &str, name: &str, module: bool) -> Result<Vec<u8>> {
    let kind = if module {
        qjs::JS_EVAL_TYPE_MODULE
    } else {
        qjs::JS_EVAL_TYPE_GLOBAL
    };
    let function = eval(ctx, source, name, kind | qjs::JS_EVAL_FLAG_COMPILE_ONLY)?;
    let mut length = 0;
    // SAFETY: `function` is what compiling gave, alive until the end of this function; the answer is null or points to
    // `length` bytes that are ours to free.
    unsafe {
        let bytes = qjs::JS_WriteObject(
            ctx.as_raw().as_ptr(),
            &raw mut length,
            function.as_raw(),
            qjs::JS_WRITE_OBJ_BYTECODE as i32,
        );
        if bytes.is_null() {
            return Err(Error::Exception);
        }
        let copy = std::slice::from_raw_parts(bytes, length as usize).to_vec();
        qjs::js_free(ctx.as_raw().as_ptr(), bytes.cast());
        Ok(copy)
    }
}

/// Runs a script made by [`compile`]; its value.
///
/// Untrusted bytes can do anything with the engine's memory, which belongs to this instance: the sandbox is around
/// the component, not in it.
pub(crate) fn run_compiled<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    // SAFETY: the reader copies what it keeps. A value that is no function is an exception in `JS_EvalFunction`, which
    // takes ownership of it.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let function = qjs::JS_ReadObject(
            raw,
            bytes.as_ptr(),
            bytes.len() as _,
            qjs::JS_READ_OBJ_BYTECODE as i32,
        );
        if qjs::JS_IsException(function) {
            return Err(Error::Exception);
        }
        owned(ctx, qjs::JS_EvalFunction(raw, function))
    }
}

/// The module that [`compile`] made.
pub(crate) fn load_module<'js>(
    ctx: &Ctx<'js>,
    bytes: &[u8],
) -> Result<rquickjs::Module<'js, rquickjs::module::Declared>> {
    // SAFETY: as for `run_compiled`.
    unsafe { rquickjs::Module::load(ctx.clone(), bytes) }
}

/// Throws an error that no `catch` and no `finally` of the program sees.
pub(crate) fn throw_uncatchable(ctx: &Ctx<'_>) -> Error {
    let Ok(error) = Exception::from_message(ctx.clone(), "the program ended itself") else {
        return Error::Exception;
    };
    let error = error.into_object().into_value();
    // SAFETY: marks an error object, which this is, and leaves its count of references alone.
    unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), error.as_raw()) };
    ctx.throw(error)
}

/// A copy of the array's bytes; an error if its buffer was detached.
pub(crate) fn bytes(array: &TypedArray<'_, u8>) -> Result<Vec<u8>> {
    // SAFETY: copied before anything of the program can run and change or free it.
    let copy = unsafe { array.as_bytes() }.map(<[u8]>::to_vec);
    copy.ok_or_else(|| Exception::throw_type(array.as_object().ctx(), "the buffer is detached"))
}

/// The target of a proxy, if `object` is one.
pub(crate) fn proxy_target<'js>(object: &Object<'js>) -> Option<Value<'js>> {
    // SAFETY: asks for the class of a live object; the target is returned as a reference of our own.
    unsafe {
        let raw = object.as_raw();
        if !qjs::JS_IsProxy(raw) {
            return None;
        }
        let target = qjs::JS_GetProxyTarget(object.ctx().as_raw().as_ptr(), raw);
        owned(object.ctx(), target).ok()
    }
}

fn eval<'js>(ctx: &Ctx<'js>, source: &str, name: &str, flags: u32) -> Result<Value<'js>> {
    let name = CString::new(name)?;
    let mut text = Vec::with_capacity(source.len() + 1);
    text.extend_from_slice(source.as_bytes());
    // The parser reads one byte beyond the end.
    text.push(0);
    // SAFETY: both texts end in NUL and outlive the call, which copies what it keeps.
    unsafe {
        let value = qjs::JS_Eval(
            ctx.as_raw().as_ptr(),
            text.as_ptr().cast(),
            source.len() as _,
            name.as_ptr(),
            flags as i32,
        );
        owned(ctx, value)
    }
}

/// # Safety
/// `value` comes from the engine of `ctx`, and nobody else frees it.
unsafe fn owned<'js>(ctx: &Ctx<'js>, value: qjs::JSValue) -> Result<Value<'js>> {
    // SAFETY: as the caller promises.
    unsafe {
        if qjs::JS_IsException(value) {
            return Err(Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), value))
    }
}
