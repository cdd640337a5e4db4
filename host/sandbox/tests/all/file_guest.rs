//! A guest that calls single functions of `wasi:filesystem` on request of a test, and the test's side of it.

use rlf_sandbox::State;
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Instance, Lift, Lower};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::guest::MEMORY;

/// `wasi:filesystem` and the types that it uses from other interfaces; every function `f` is lowered as `$f`.
const IMPORTS: &str = r#"
    (import "wasi:io/error@0.2.0" (instance $io-error (export "error" (type (sub resource)))))
    (alias export $io-error "error" (type $error))
    (import "wasi:io/streams@0.2.0" (instance $streams
        (export "output-stream" (type $out (sub resource)))
        (alias outer 1 $error (type $outer))
        (export "error" (type $e (eq $outer)))
        (type $variant (variant (case "last-operation-failed" (own $e)) (case "closed")))
        (export "stream-error" (type $stream-error (eq $variant)))
        (export "[method]output-stream.blocking-write-and-flush"
            (func (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
    (alias export $streams "output-stream" (type $out))
    (import "wasi:clocks/wall-clock@0.2.0" (instance $clock
        (type $record (record (field "seconds" u64) (field "nanoseconds" u32)))
        (export "datetime" (type (eq $record)))))
    (alias export $clock "datetime" (type $datetime))
    (import "wasi:filesystem/types@0.2.0" (instance $types
        (export "descriptor" (type $d (sub resource)))
        (export "directory-entry-stream" (type $l (sub resource)))
        (alias outer 1 $out (type $outer-out))
        (export "output-stream" (type $o (eq $outer-out)))
        (alias outer 1 $error (type $outer-error))
        (export "error" (type $e (eq $outer-error)))
        (alias outer 1 $datetime (type $outer-datetime))
        (export "datetime" (type $t (eq $outer-datetime)))
        (type $codes (enum "access" "would-block" "already" "bad-descriptor" "busy" "deadlock" "quota" "exist"
            "file-too-large" "illegal-byte-sequence" "in-progress" "interrupted" "invalid" "io" "is-directory" "loop"
            "too-many-links" "message-size" "name-too-long" "no-device" "no-entry" "no-lock" "insufficient-memory"
            "insufficient-space" "not-directory" "not-empty" "not-recoverable" "unsupported" "no-tty" "no-such-device"
            "overflow" "not-permitted" "pipe" "read-only" "invalid-seek" "text-file-busy" "cross-device"))
        (export "error-code" (type $c (eq $codes)))
        (type $path-flags' (flags "symlink-follow"))
        (export "path-flags" (type $pf (eq $path-flags')))
        (type $open-flags' (flags "create" "directory" "exclusive" "truncate"))
        (export "open-flags" (type $of (eq $open-flags')))
        (type $flags' (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync" "mutate-directory"))
        (export "descriptor-flags" (type $df (eq $flags')))
        (type $kinds (enum "unknown" "block-device" "character-device" "directory" "fifo" "symbolic-link" "regular-file" "socket"))
        (export "descriptor-type" (type $k (eq $kinds)))
        (type $stat' (record (field "type" $k) (field "link-count" u64) (field "size" u64)
            (field "data-access-timestamp" (option $t)) (field "data-modification-timestamp" (option $t)) (field "status-change-timestamp" (option $t))))
        (export "descriptor-stat" (type $s (eq $stat')))
        (type $entry' (record (field "type" $k) (field "name" string)))
        (export "directory-entry" (type $en (eq $entry')))
        (export "[method]descriptor.open-at" (func (param "self" (borrow $d)) (param "path-flags" $pf) (param "path" string)
            (param "open-flags" $of) (param "flags" $df) (result (result (own $d) (error $c)))))
        (export "[method]descriptor.create-directory-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $c)))))
        (export "[method]descriptor.remove-directory-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $c)))))
        (export "[method]descriptor.unlink-file-at" (func (param "self" (borrow $d)) (param "path" string) (result (result (error $c)))))
        (export "[method]descriptor.symlink-at" (func (param "self" (borrow $d)) (param "old-path" string) (param "new-path" string) (result (result (error $c)))))
        (export "[method]descriptor.set-size" (func (param "self" (borrow $d)) (param "size" u64) (result (result (error $c)))))
        (export "[method]descriptor.write" (func (param "self" (borrow $d)) (param "buffer" (list u8)) (param "offset" u64) (result (result u64 (error $c)))))
        (export "[method]descriptor.read" (func (param "self" (borrow $d)) (param "length" u64) (param "offset" u64)
            (result (result (tuple (list u8) bool) (error $c)))))
        (export "[method]descriptor.append-via-stream" (func (param "self" (borrow $d)) (result (result (own $o) (error $c)))))
        (export "[method]descriptor.stat" (func (param "self" (borrow $d)) (result (result $s (error $c)))))
        (export "[method]descriptor.read-directory" (func (param "self" (borrow $d)) (result (result (own $l) (error $c)))))
        (export "[method]directory-entry-stream.read-directory-entry" (func (param "self" (borrow $l)) (result (result (option $en) (error $c)))))
        (export "filesystem-error-code" (func (param "err" (borrow $e)) (result (option $c))))))
    (alias export $types "descriptor" (type $descriptor))
    (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
        (alias outer 1 $descriptor (type $outer))
        (export "descriptor" (type $d (eq $outer)))
        (export "get-directories" (func (result (list (tuple (own $d) string)))))))
    (core func $push (canon lower (func $streams "[method]output-stream.blocking-write-and-flush") (memory $mem)))
    (core func $open (canon lower (func $types "[method]descriptor.open-at") (memory $mem)))
    (core func $make (canon lower (func $types "[method]descriptor.create-directory-at") (memory $mem)))
    (core func $rmdir (canon lower (func $types "[method]descriptor.remove-directory-at") (memory $mem)))
    (core func $unlink (canon lower (func $types "[method]descriptor.unlink-file-at") (memory $mem)))
    (core func $symlink (canon lower (func $types "[method]descriptor.symlink-at") (memory $mem)))
    (core func $resize (canon lower (func $types "[method]descriptor.set-size") (memory $mem)))
    (core func $write (canon lower (func $types "[method]descriptor.write") (memory $mem)))
    (core func $read (canon lower (func $types "[method]descriptor.read") (memory $mem) (realloc $realloc)))
    (core func $appender (canon lower (func $types "[method]descriptor.append-via-stream") (memory $mem)))
    (core func $stat (canon lower (func $types "[method]descriptor.stat") (memory $mem)))
    (core func $listing (canon lower (func $types "[method]descriptor.read-directory") (memory $mem)))
    (core func $entry (canon lower (func $types "[method]directory-entry-stream.read-directory-entry") (memory $mem) (realloc $realloc)))
    (core func $code (canon lower (func $types "filesystem-error-code") (memory $mem)))
    (core func $directories (canon lower (func $preopens "get-directories") (memory $mem) (realloc $realloc)))
    (core func $close (canon resource.drop $descriptor))"#;

/// The guest. Its functions return a number, or an error code as a negative number: -1 is the first code.
pub(crate) fn guest() -> String {
    format!(
        r#"(component {MEMORY} {IMPORTS}
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "open" (func $open (param i32 i32 i32 i32 i32 i32 i32)))
            (import "h" "make" (func $make (param i32 i32 i32 i32)))
            (import "h" "rmdir" (func $rmdir (param i32 i32 i32 i32)))
            (import "h" "unlink" (func $unlink (param i32 i32 i32 i32)))
            (import "h" "symlink" (func $symlink (param i32 i32 i32 i32 i32 i32)))
            (import "h" "resize" (func $resize (param i32 i64 i32)))
            (import "h" "write" (func $write (param i32 i32 i32 i64 i32)))
            (import "h" "read" (func $read (param i32 i64 i64 i32)))
            (import "h" "appender" (func $appender (param i32 i32)))
            (import "h" "push" (func $push (param i32 i32 i32 i32)))
            (import "h" "stat" (func $stat (param i32 i32)))
            (import "h" "listing" (func $listing (param i32 i32)))
            (import "h" "entry" (func $entry (param i32 i32)))
            (import "h" "code" (func $code (param i32 i32)))
            (import "h" "directories" (func $directories (param i32)))
            (import "h" "close" (func $close (param i32)))
            ;; A result lies at 16; its error code or handle where `at` says.
            (func $done (param $at i32) (param $value i64) (result i64)
                (if (result i64) (i32.load8_u (i32.const 16))
                    (then (i64.sub (i64.const -1) (i64.extend_i32_u (i32.load8_u (local.get $at)))))
                    (else (local.get $value))))
            (func $handle (result i64)
                (call $done (i32.const 20) (i64.extend_i32_u (i32.load (i32.const 20)))))
            (func (export "preopened") (result i64)
                (call $directories (i32.const 16))
                (if (result i64) (i32.load (i32.const 20))
                    (then (i64.extend_i32_u (i32.load (i32.load (i32.const 16)))))
                    (else (i64.const -1))))
            (func (export "preopened-at") (result i32)
                (call $directories (i32.const 16))
                (i32.add (i32.load (i32.const 16)) (i32.const 4)))
            (func (export "open") (param i32 i32 i32 i32 i32) (result i64)
                (call $open (local.get 0) (i32.const 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (i32.const 16))
                (call $handle))
            (func (export "make") (param i32 i32 i32) (result i64)
                (call $make (local.get 0) (local.get 1) (local.get 2) (i32.const 16))
                (call $done (i32.const 17) (i64.const 0)))
            (func (export "rmdir") (param i32 i32 i32) (result i64)
                (call $rmdir (local.get 0) (local.get 1) (local.get 2) (i32.const 16))
                (call $done (i32.const 17) (i64.const 0)))
            (func (export "unlink") (param i32 i32 i32) (result i64)
                (call $unlink (local.get 0) (local.get 1) (local.get 2) (i32.const 16))
                (call $done (i32.const 17) (i64.const 0)))
            (func (export "symlink") (param i32 i32 i32 i32 i32) (result i64)
                (call $symlink (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (i32.const 16))
                (call $done (i32.const 17) (i64.const 0)))
            (func (export "resize") (param i32 i64) (result i64)
                (call $resize (local.get 0) (local.get 1) (i32.const 16))
                (call $done (i32.const 17) (i64.const 0)))
            (func (export "write") (param i32 i64 i32 i32) (result i64)
                (call $write (local.get 0) (local.get 2) (local.get 3) (local.get 1) (i32.const 16))
                (call $done (i32.const 24) (i64.load (i32.const 24))))
            (func (export "append") (param i32 i32 i32) (result i64)
                (call $appender (local.get 0) (i32.const 16))
                (if (i32.load8_u (i32.const 16)) (then (return (call $handle))))
                (call $push (i32.load (i32.const 20)) (local.get 1) (local.get 2) (i32.const 16))
                (if (i32.eqz (i32.load8_u (i32.const 16))) (then (return (i64.const 0))))
                ;; Closed, or a failure that the file system has a code for.
                (if (i32.load8_u (i32.const 20)) (then unreachable))
                (call $code (i32.load (i32.const 24)) (i32.const 16))
                (call $done (i32.const 17) (i64.const 0)))
            (func (export "read") (param i32 i64 i64) (result i32)
                (call $read (local.get 0) (local.get 1) (local.get 2) (i32.const 16))
                (if (i32.load8_u (i32.const 16)) (then unreachable))
                (i32.const 20))
            (func (export "modified") (param i32) (result i64)
                (call $stat (local.get 0) (i32.const 16))
                (call $done (i32.const 24)
                    (i64.add (i64.mul (i64.load (i32.const 80)) (i64.const 1000000000)) (i64.load32_u (i32.const 88)))))
            (func (export "listing") (param i32) (result i64)
                (call $listing (local.get 0) (i32.const 16))
                (call $handle))
            (func (export "entry") (param i32) (result i32)
                (call $entry (local.get 0) (i32.const 16))
                (if (i32.load8_u (i32.const 16)) (then unreachable))
                (if (i32.eqz (i32.load8_u (i32.const 20))) (then (i32.store (i32.const 32) (i32.const 0))))
                (i32.const 28))
            (func (export "fill") (param i32 i32) (result i64)
                (local $n i32)
                ;; Files of one letter and a number, until one is refused.
                (i64.store (i32.const 200) (i64.const 0x3030303030303066))
                (loop $again
                    (call $open (local.get 0) (i32.const 0) (i32.const 200) (i32.const 8) (i32.const 1) (i32.const 3) (i32.const 16))
                    (if (i32.load8_u (i32.const 16)) (then (return (call $handle))))
                    (call $close (i32.load (i32.const 20)))
                    (local.set $n (i32.add (local.get $n) (i32.const 1)))
                    (i32.store (i32.const 204) (i32.add (i32.const 0x30303030)
                        (i32.or
                            (i32.or (i32.rem_u (local.get $n) (i32.const 10))
                                (i32.shl (i32.rem_u (i32.div_u (local.get $n) (i32.const 10)) (i32.const 10)) (i32.const 8)))
                            (i32.or (i32.shl (i32.rem_u (i32.div_u (local.get $n) (i32.const 100)) (i32.const 10)) (i32.const 16))
                                (i32.shl (i32.rem_u (i32.div_u (local.get $n) (i32.const 1000)) (i32.const 10)) (i32.const 24))))))
                    (i32.store8 (i32.const 203) (i32.add (i32.const 0x30) (i32.div_u (local.get $n) (i32.const 10000))))
                    (br_if $again (i32.lt_u (local.get $n) (local.get 1))))
                (i64.extend_i32_u (local.get $n))))
        (core instance $i (instantiate $m (with "h" (instance
            (export "memory" (memory $mem)) (export "open" (func $open)) (export "make" (func $make)) (export "rmdir" (func $rmdir))
            (export "unlink" (func $unlink)) (export "symlink" (func $symlink)) (export "resize" (func $resize)) (export "write" (func $write))
            (export "read" (func $read)) (export "appender" (func $appender)) (export "push" (func $push)) (export "stat" (func $stat))
            (export "listing" (func $listing)) (export "entry" (func $entry)) (export "code" (func $code))
            (export "directories" (func $directories)) (export "close" (func $close))))))
        (func (export "preopened") (result s64) (canon lift (core func $i "preopened")))
        (func (export "preopened-at") (result string) (canon lift (core func $i "preopened-at") (memory $mem)))
        (func (export "open") (param "base" u32) (param "path" string) (param "how" u32) (param "flags" u32) (result s64)
            (canon lift (core func $i "open") (memory $mem) (realloc $realloc)))
        (func (export "make") (param "base" u32) (param "path" string) (result s64) (canon lift (core func $i "make") (memory $mem) (realloc $realloc)))
        (func (export "rmdir") (param "base" u32) (param "path" string) (result s64) (canon lift (core func $i "rmdir") (memory $mem) (realloc $realloc)))
        (func (export "unlink") (param "base" u32) (param "path" string) (result s64) (canon lift (core func $i "unlink") (memory $mem) (realloc $realloc)))
        (func (export "symlink") (param "base" u32) (param "old" string) (param "new" string) (result s64)
            (canon lift (core func $i "symlink") (memory $mem) (realloc $realloc)))
        (func (export "resize") (param "file" u32) (param "size" u64) (result s64) (canon lift (core func $i "resize")))
        (func (export "write") (param "file" u32) (param "offset" u64) (param "bytes" (list u8)) (result s64)
            (canon lift (core func $i "write") (memory $mem) (realloc $realloc)))
        (func (export "append") (param "file" u32) (param "bytes" (list u8)) (result s64) (canon lift (core func $i "append") (memory $mem) (realloc $realloc)))
        (func (export "read") (param "file" u32) (param "length" u64) (param "offset" u64) (result (list u8)) (canon lift (core func $i "read") (memory $mem)))
        (func (export "modified") (param "file" u32) (result s64) (canon lift (core func $i "modified")))
        (func (export "listing") (param "directory" u32) (result s64) (canon lift (core func $i "listing")))
        (func (export "entry") (param "listing" u32) (result string) (canon lift (core func $i "entry") (memory $mem)))
        (func (export "fill") (param "directory" u32) (param "count" u32) (result s64) (canon lift (core func $i "fill"))))"#
    )
}

/// Flags of `open`: create and write.
pub(crate) const CREATE: (u32, u32) = (1, 3);
pub(crate) const READ: (u32, u32) = (0, 1);

/// The guest in one call, which receives one request after the other.
pub(crate) struct FileGuest<'a> {
    pub(crate) store: &'a mut Store<State>,
    pub(crate) instance: Instance,
}

impl FileGuest<'_> {
    pub(crate) async fn ask<P, R>(&mut self, export: &str, parameters: P) -> wasmtime::Result<R>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: Send + Sync + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let function = self
            .instance
            .get_typed_func::<P, (R,)>(&mut *self.store, export)?;
        Ok(function.call_async(&mut *self.store, parameters).await?.0)
    }

    /// Calls a function that returns a number or an error code.
    pub(crate) async fn number<P>(
        &mut self,
        export: &str,
        parameters: P,
    ) -> wasmtime::Result<Result<u64, ErrorCode>>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
    {
        let number: i64 = self.ask(export, parameters).await?;
        Ok(u64::try_from(number).map_err(|_| code((-1 - number) as usize)))
    }

    /// The first preopened directory.
    pub(crate) async fn root(&mut self) -> wasmtime::Result<u32> {
        let root = self.number("preopened", ()).await?;
        Ok(root.expect("a directory is preopened") as u32)
    }

    pub(crate) async fn open(
        &mut self,
        base: u32,
        path: &str,
        (how, flags): (u32, u32),
    ) -> wasmtime::Result<Result<u32, ErrorCode>> {
        let opened = self
            .number("open", (base, path.to_owned(), how, flags))
            .await?;
        Ok(opened.map(|handle| handle as u32))
    }

    /// Creates a file with this content.
    pub(crate) async fn save(
        &mut self,
        base: u32,
        path: &str,
        content: &[u8],
    ) -> wasmtime::Result<Result<u64, ErrorCode>> {
        match self.open(base, path, CREATE).await? {
            Ok(file) => self.number("append", (file, content.to_vec())).await,
            Err(error) => Ok(Err(error)),
        }
    }

    pub(crate) async fn path(
        &mut self,
        function: &str,
        base: u32,
        path: &str,
    ) -> wasmtime::Result<Result<u64, ErrorCode>> {
        self.number(function, (base, path.to_owned())).await
    }

    /// All names in a directory, in the order of the listing.
    pub(crate) async fn list(&mut self, directory: u32) -> wasmtime::Result<Vec<String>> {
        let listing = self.number("listing", (directory,)).await?;
        let listing = listing.expect("a directory") as u32;
        let mut names = Vec::new();
        loop {
            let name: String = self.ask("entry", (listing,)).await?;
            if name.is_empty() {
                return Ok(names);
            }
            names.push(name);
        }
    }
}

/// The error codes that the tests use, by their position in WASI's list.
fn code(place: usize) -> ErrorCode {
    match place {
        6 => ErrorCode::Quota,
        8 => ErrorCode::FileTooLarge,
        14 => ErrorCode::IsDirectory,
        18 => ErrorCode::NameTooLong,
        20 => ErrorCode::NoEntry,
        23 => ErrorCode::InsufficientSpace,
        31 => ErrorCode::NotPermitted,
        other => panic!("error code {other}"),
    }
}
