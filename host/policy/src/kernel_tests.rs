//! The CUDA kernels against the CPU's operators, without a GPU.
//!
//! A C++ compiler builds `cuda/kernels.cu` for the CPU with `cuda/lockstep.h`. Every kernel runs with the grid and the
//! block that `cuda` gives it, and in three orders of its threads. All orders must give the same bits.

#![allow(unsafe_code)] // Calls a library that the tests compile.

use std::env;
use std::ffi::{CString, c_char, c_int, c_void};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use half::bf16;
use libloading::Library;
use rlf_random::{Key, Purpose};

use crate::batch::Span;
use crate::decode::{PAGE_TOKENS, pages_of};
use crate::ops::attention::{Attention, Heads, attention_into};
use crate::ops::attention_backward::attention_backward_into;
use crate::ops::embedding::{embed_backward_into, embed_into};
use crate::ops::head::Head;
use crate::ops::linear::linear_into;
use crate::ops::norm::{rms_norm_backward_into, rms_norm_into};
use crate::ops::rotary::RotaryTable;
use crate::ops::swiglu::{swiglu_backward_into, swiglu_into};
use crate::ops::weight::Weight;
use crate::sample::{Draw, DrawKey, Sampled, Sampler, SamplingParams};

const EPS: f32 = 1e-6;
const WARP: usize = 32;
/// As in `cuda`: blocks that take a row, blocks that take a row of logits, and blocks whose warps take one head each.
const ROW: (usize, usize) = (256, 1);
const LONG_ROW: (usize, usize) = (1024, 1);
const HEADS: usize = 4;
/// Orders of threads: forwards, backwards, and a random one.
const ORDERS: [u32; 3] = [0, 1, 2];
/// Words of NaN before and after every array that a kernel gets.
const GUARD: usize = 4096;

type Launch =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, u32, u32, u32, u32, u32) -> c_int;

/// The kernels, compiled once in this process.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // The library stays loaded when its folder is gone.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernels.so");
        let compiler = env::var_os("CXX").unwrap_or_else(|| "g++".into());
        let status = Command::new(&compiler)
            .args(["-O1", "-std=c++17", "-x", "c++", "-shared", "-fPIC", "-o"])
            .arg(&file)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cuda/kernels.cu"))
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{} could not compile kernels.cu: install a C++ compiler, or name one in CXX",
            compiler.display()
        );
        // SAFETY: what runs when the library is loaded is our own: it lists the kernels.
        unsafe { Library::new(&file) }.unwrap()
    })
}

/// The elements of a kernel's arrays: f32, f64, bf16 or u32. Any bytes are a value of these, and they have no padding.
trait Plain: Copy {}

impl Plain for f32 {}
impl Plain for bf16 {}
impl Plain for u32 {}
impl Plain for f64 {}

fn bytes<N: Plain>(numbers: &[N]) -> &[u8] {
    // SAFETY: plain numbers have no padding.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

fn bytes_mut<N: Plain>(numbers: &mut [N]) -> &mut [u8] {
    // SAFETY: plain numbers have no padding, and any bytes are plain numbers.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}

/// An argument: an array, with its guards, or a number.
enum Argument<'a> {
    Input(Vec<u32>),
    Output(Vec<u32>, &'a mut [u8]),
    Number(u64),
}

/// Puts an array between guards.
fn guarded(array: &[u8]) -> Vec<u32> {
    let mut words = vec![u32::MAX; array.len().div_ceil(4) + 2 * GUARD];
    bytes_mut(&mut words[GUARD..])[..array.len()].copy_from_slice(array);
    words
}

/// A kernel and its arguments so far.
struct Kernel<'a> {
    name: String,
    arguments: Vec<Argument<'a>>,
}

impl<'a> Kernel<'a> {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Vec::new(),
        }
    }

    fn of<T: Number>(name: &str) -> Self {
        Self::new(&format!("{name}_{}", T::NAME))
    }

    fn with(mut self, argument: Argument<'a>) -> Self {
        self.arguments.push(argument);
        self
    }

    fn slice<N: Plain>(self, numbers: &[N]) -> Self {
        self.with(Argument::Input(guarded(bytes(numbers))))
    }

    fn output<N: Plain>(self, numbers: &'a mut [N]) -> Self {
        let array = bytes_mut(numbers);
        self.with(Argument::Output(guarded(array), array))
    }

    fn int(self, value: usize) -> Self {
        self.with(Argument::Number(value as u64))
    }

    fn long(self, value: usize) -> Self {
        self.with(Argument::Number(value as u64))
    }

    fn float(self, value: f32) -> Self {
        self.with(Argument::Number(u64::from(value.to_bits())))
    }

    fn launch_each(self, count: usize) {
        self.launch((count.div_ceil(256), 1), (256, 1));
    }

    /// Runs the kernel in every order, and writes its outputs.
    fn launch(self, grid: (usize, usize), block: (usize, usize)) {
        let runs = ORDERS.map(|order| self.run(order, grid, block));
        let name = self.name;
        for (number, argument) in self.arguments.into_iter().enumerate() {
            let of = |run: usize| &runs[run][number][..];
            match argument {
                Argument::Number(_) => {}
                Argument::Input(before) => {
                    assert!(
                        of(0) == before,
                        "{name} wrote argument {number}, which it reads"
                    );
                }
                Argument::Output(before, array) => {
                    for run in 1..runs.len() {
                        assert!(
                            of(0) == of(run),
                            "{name}: the order of threads changes argument {number}"
                        );
                    }
                    let end = before.len() - GUARD;
                    let outside = of(0)[..GUARD].iter().chain(&of(0)[end..]);
                    assert!(
                        outside.copied().all(|word| word == u32::MAX),
                        "{name} wrote beside argument {number}"
                    );
                    array.copy_from_slice(&bytes(&of(0)[GUARD..])[..array.len()]);
                }
            }
        }
    }

    /// Every argument's memory after the kernel ran in an order.
    fn run(&self, order: u32, grid: (usize, usize), block: (usize, usize)) -> Vec<Vec<u32>> {
        let mut memory: Vec<Vec<u32>> = self
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Input(words) | Argument::Output(words, _) => words.clone(),
                Argument::Number(_) => Vec::new(),
            })
            .collect();
        let mut values: Vec<u64> = self
            .arguments
            .iter()
            .zip(&mut memory)
            .map(|(argument, memory)| match argument {
                Argument::Number(number) => *number,
                _ => memory[GUARD..].as_mut_ptr() as u64,
            })
            .collect();
        let mut pointers: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| (&raw mut *value).cast())
            .collect();
        let name = CString::new(&*self.name).unwrap();
        let [x, y, threads_x, threads_y] =
            [grid.0, grid.1, block.0, block.1].map(|side| side as u32);
        // SAFETY: `launch` has this type.
        let launch = unsafe { library().get::<Launch>("launch") }.unwrap();
        // SAFETY: each test gives the kernel's arguments in its order, with arrays as long as it reads and writes.
        let status = unsafe {
            launch(
                name.as_ptr(),
                pointers.as_mut_ptr(),
                x,
                y,
                threads_x,
                threads_y,
                order,
            )
        };
        assert_eq!(status, 0, "{} could not start", self.name);
        memory
    }
}

/// A number that products read: f32 or bf16.
trait Number: Plain {
    /// The end of the names of its kernels.
    const NAME: &'static str;
    /// Largest error, relative to the largest number.
    const TOLERANCE: f32;

    fn of(x: f32) -> Self;
    fn float(self) -> f32;
}

impl Number for f32 {
    const NAME: &'static str = "f32";
    const TOLERANCE: f32 = 1e-5;

    fn of(x: f32) -> Self {
        x
    }

    fn float(self) -> f32 {
        self
    }
}

impl Number for bf16 {
    const NAME: &'static str = "bf16";
    const TOLERANCE: f32 = 2e-2;

    fn of(x: f32) -> Self {
        Self::from_f32(x)
    }

    fn float(self) -> f32 {
        self.to_f32()
    }
}

/// Random numbers.
fn random<T: Number>(seed: u64, count: usize) -> Vec<T> {
    let key = Key::new(seed, Purpose::Test).named("kernels");
    (0..count as u64)
        .map(|i| T::of(key.normal(i) as f32))
        .collect()
}

/// NaN everywhere: what a kernel must overwrite.
fn poison<T: Number>(count: usize) -> Vec<T> {
    vec![T::of(f32::NAN); count]
}

fn floats<T: Number>(numbers: &[T]) -> Vec<f32> {
    numbers.iter().map(|x| x.float()).collect()
}

/// Checks that numbers agree within the tolerance of `T`.
fn close<T: Number>(what: &str, ours: &[impl Number], expected: &[f32]) {
    assert_eq!(ours.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    assert!(largest > 0.0, "{what} is all zero");
    for (index, (a, b)) in ours.iter().zip(expected).enumerate() {
        let a = a.float();
        assert!(
            (a - b).abs() <= T::TOLERANCE * largest,
            "{what} of {}, element {index}: {a} and {b}, of up to {largest}",
            T::NAME
        );
    }
}

/// Hands out the elements of `a[m, k] b[k, n]`: row, column and value.
fn product(
    (m, n, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
    mut put: impl FnMut(usize, usize, f32),
) {
    for i in 0..m {
        for j in 0..n {
            put(
                i,
                j,
                (0..k).fold(0.0, |sum, l| a(i, l).mul_add(b(l, j), sum)),
            );
        }
    }
}

/// The kernel that adds partial rows to a gradient, as `Cuda::column_sum` launches it.
fn column_sum(parts: &[f32], width: usize, kinds: (usize, usize, usize), out: &mut [f32]) {
    Kernel::new("column_sum")
        .slice(parts)
        .int(parts.len() / width)
        .int(width)
        .int(kinds.0)
        .int(kinds.1)
        .int(kinds.2)
        .output(out)
        .launch((width.div_ceil(WARP), 1), (WARP, WARP));
}

fn norm<T: Number>() {
    // With fewer blocks than rows, as for more rows than `cuda` has blocks for.
    for (rows, width, shares) in [(3, 40, 3), (7, 300, 4)] {
        let (x, w): (Vec<f32>, Vec<f32>) = (random(1, rows * width), random(2, width));
        let g: Vec<T> = random(3, rows * width);
        let mut y: Vec<T> = poison(x.len());
        Kernel::of::<T>("rms_norm")
            .slice(&x)
            .slice(&w)
            .output(&mut y)
            .int(width)
            .float(EPS)
            .launch((rows, 1), ROW);
        let mut expected = vec![0.0; x.len()];
        rms_norm_into(&x, &w, EPS, &mut expected);
        close::<T>("rms_norm", &y, &expected);

        let (mut dx, mut dw): (Vec<f32>, Vec<f32>) = (random(4, x.len()), random(5, width));
        let (mut expected_dx, mut expected_dw) = (dx.clone(), dw.clone());
        let mut parts = vec![0.0f32; shares * width];
        Kernel::of::<T>("rms_norm_backward")
            .slice(&x)
            .slice(&w)
            .slice(&g)
            .output(&mut dx)
            .output(&mut parts)
            .int(rows)
            .int(width)
            .float(EPS)
            .launch((shares, 1), ROW);
        column_sum(&parts, width, (1, 0, 1), &mut dw);
        let g = floats(&g);
        rms_norm_backward_into(&x, &w, &g, EPS, &mut expected_dx, &mut expected_dw);
        close::<f32>("dx of rms_norm", &dx, &expected_dx);
        close::<f32>("dw of rms_norm", &dw, &expected_dw);
    }
}

#[test]
fn the_norm_is_that_of_the_cpu() {
    norm::<f32>();
    norm::<bf16>();
}

fn gated_unit<T: Number>() {
    for (rows, width) in [(5, 100), (3, 257)] {
        let count = rows * width;
        let (x, g): (Vec<T>, Vec<T>) = (random(1, 2 * count), random(2, count));
        let mut y: Vec<T> = poison(count);
        Kernel::of::<T>("swiglu")
            .slice(&x)
            .output(&mut y)
            .int(width)
            .launch((rows, 2), (WARP, 1));
        let wide = floats(&x);
        let mut expected = vec![0.0; count];
        swiglu_into(&wide, width, &mut expected);
        close::<T>("swiglu", &y, &expected);

        let (mut dx, mut again): (Vec<T>, Vec<T>) = (poison(2 * count), poison(count));
        Kernel::of::<T>("swiglu_backward")
            .slice(&x)
            .slice(&g)
            .output(&mut dx)
            .output(&mut again)
            .int(width)
            .launch((rows, 2), (WARP, 1));
        let mut expected_dx = vec![0.0; 2 * count];
        swiglu_backward_into(&wide, width, &floats(&g), &mut expected_dx, &mut expected);
        close::<T>("dx of swiglu", &dx, &expected_dx);
        close::<T>("swiglu again", &again, &expected);
    }
}

#[test]
fn the_gated_unit_is_that_of_the_cpu() {
    gated_unit::<f32>();
    gated_unit::<bf16>();
}

fn embedding<T: Number>() {
    for (hidden, vocabulary, ids) in [(40, 50, vec![7u32, 49, 7, 0, 3, 7]), (300, 9, vec![8, 2])] {
        let w: Vec<T> = random(1, hidden * vocabulary);
        let mut out: Vec<f32> = poison(ids.len() * hidden);
        Kernel::of::<T>("embed")
            .slice(&w)
            .slice(&ids)
            .output(&mut out)
            .int(hidden)
            .int(vocabulary)
            .launch((ids.len(), 1), ROW);
        let mut expected = vec![0.0; out.len()];
        embed_into(&floats(&w), vocabulary, &ids, &mut expected);
        assert_eq!(out, expected);

        let (mut distinct, mut starts, mut rows) = (ids.clone(), vec![0u32], Vec::new());
        distinct.sort_unstable();
        distinct.dedup();
        for id in &distinct {
            rows.extend((0..ids.len() as u32).filter(|row| ids[*row as usize] == *id));
            starts.push(rows.len() as u32);
        }
        let (g, mut dw): (Vec<f32>, Vec<f32>) = (random(2, out.len()), random(3, w.len()));
        let mut expected = dw.clone();
        Kernel::new("embed_backward")
            .slice(&g)
            .slice(&distinct)
            .slice(&starts)
            .slice(&rows)
            .output(&mut dw)
            .int(hidden)
            .int(vocabulary)
            .launch((distinct.len(), 1), ROW);
        embed_backward_into(&g, vocabulary, &ids, &mut expected);
        close::<f32>("dw of the embedding", &dw, &expected);
    }
}

fn conversion<T: Number>() {
    for count in [255, 700] {
        // Halves between two bf16 numbers are among them, and infinity.
        let mut x: Vec<f32> = random(1, count);
        let halves = [
            0x3f80_8000,
            0x3f81_8000,
            0x3f80_8001,
            0x7f80_0000,
            0x7f7f_ffff,
        ];
        for (x, bits) in x.iter_mut().zip(halves) {
            *x = f32::from_bits(bits);
        }
        let mut y: Vec<T> = poison(count);
        Kernel::of::<T>("to_operand")
            .slice(&x)
            .output(&mut y)
            .long(count)
            .launch_each(count / 4);
        let expected: Vec<T> = x.iter().map(|x| T::of(*x)).collect();
        assert_eq!(bytes(&y), bytes(&expected));
    }
}

fn rows(width: usize) {
    let (chosen, count) = ([4u32, 0, 3], 6);
    let x: Vec<f32> = random(1, count * width);
    let mut picked: Vec<f32> = poison(chosen.len() * width);
    Kernel::new("gather_rows")
        .slice(&x)
        .slice(&chosen)
        .output(&mut picked)
        .int(width)
        .launch((chosen.len(), 1), ROW);
    let mut back: Vec<f32> = random(2, x.len());
    let mut expected = back.clone();
    Kernel::new("scatter_rows")
        .slice(&picked)
        .slice(&chosen)
        .output(&mut back)
        .int(width)
        .launch((chosen.len(), 1), ROW);
    for (row, picked) in chosen.iter().zip(picked.chunks(width)) {
        let from = *row as usize * width;
        assert_eq!(picked, &x[from..from + width]);
        expected[from..from + width].copy_from_slice(picked);
    }
    assert_eq!(back, expected);

    let (mut sum, mut expected) = (x.clone(), x);
    Kernel::new("add")
        .output(&mut sum)
        .slice(&back)
        .long(back.len())
        .launch_each(back.len());
    for (sum, part) in expected.iter_mut().zip(&back) {
        *sum += part;
    }
    assert_eq!(sum, expected);
}

#[test]
fn rows_are_those_of_the_cpu() {
    embedding::<f32>();
    embedding::<bf16>();
    conversion::<f32>();
    conversion::<bf16>();
    rows(40);
    rows(300);
}

fn vocabulary_head<T: Number>() {
    let temperature = 0.7;
    for (count, hidden, vocabulary) in [(3, 16, 1500), (4, 8, 45)] {
        let (x, w): (Vec<T>, Vec<T>) = (random(1, count * hidden), random(2, hidden * vocabulary));
        let (x, w) = (floats(&x), floats(&w));
        let targets: Vec<u32> = (1..=count)
            .map(|row| (row * 467 % vocabulary) as u32)
            .collect();
        let weight = Weight::f32(&w, hidden, vocabulary);
        let head = Head {
            w: weight,
            temperature,
        };
        let mut logits = vec![0.0; count * vocabulary];
        linear_into(&x, weight, &mut logits, false);
        let (mut log_probs, mut entropies): (Vec<f32>, Vec<f32>) = (poison(count), poison(count));
        Kernel::new("log_probs")
            .slice(&logits)
            .slice(&targets)
            .output(&mut log_probs)
            .output(&mut entropies)
            .int(vocabulary)
            .float(1.0 / temperature)
            .launch((count, 1), LONG_ROW);
        let expected = head.forward(&x, &targets);
        close::<f32>("log-probabilities", &log_probs, &expected.0);
        close::<f32>("entropies", &entropies, &expected.1);

        let of_log_probs: Vec<f32> = random(3, count);
        for of_entropies in [random(4, count), vec![0.0; count]] {
            let mut d: Vec<T> = poison(logits.len());
            Kernel::of::<T>("log_probs_backward")
                .slice(&logits)
                .slice(&targets)
                .slice(&of_log_probs)
                .slice(&of_entropies)
                .output(&mut d)
                .int(vocabulary)
                .float(1.0 / temperature)
                .launch((count, 1), LONG_ROW);
            let d_at = |row: usize, id: usize| d[row * vocabulary + id].float();
            let (mut dx, mut dw) = (vec![0.0f32; x.len()], vec![0.0f32; w.len()]);
            product(
                (count, hidden, vocabulary),
                d_at,
                |id, i| w[i * vocabulary + id],
                |row, i, value| dx[row * hidden + i] = value,
            );
            product(
                (hidden, vocabulary, count),
                |i, row| x[row * hidden + i],
                d_at,
                |i, id, value| dw[i * vocabulary + id] = value,
            );
            let (expected_dx, expected_dw) =
                head.backward(false, &x, &targets, &of_log_probs, Some(&of_entropies));
            close::<T>("dx of the head", &dx, &expected_dx);
            close::<T>("dw of the head", &dw, &expected_dw.unwrap());
        }
    }
}

#[test]
fn the_vocabulary_head_is_that_of_the_cpu() {
    vocabulary_head::<f32>();
    vocabulary_head::<bf16>();
}

/// Packed sequences, and what attention needs besides.
struct Sequences<T> {
    attention: Attention,
    tokens: usize,
    packed: Vec<T>,
    norms: [Vec<f32>; 2],
    /// Rotary tables.
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl<T: Number> Sequences<T> {
    fn new((query, key_value, dim): (usize, usize, usize), lengths: &[usize]) -> Self {
        let mut tokens = 0;
        let spans: Vec<Span> = lengths
            .iter()
            .map(|&len| {
                tokens += len;
                Span {
                    start: tokens - len,
                    len,
                }
            })
            .collect();
        let heads = Heads {
            query,
            key_value,
            dim,
            eps: EPS,
        };
        let table = RotaryTable::new(dim, 1e4, 140);
        let rows = || (0..table.positions()).map(|position| table.at(position));
        Self {
            tokens,
            packed: random(1, tokens * heads.packed_width()),
            norms: [random(2, dim), random(3, dim)],
            cos: rows().flat_map(|(cos, _)| cos).copied().collect(),
            sin: rows().flat_map(|(_, sin)| sin).copied().collect(),
            attention: Attention {
                heads,
                spans: spans.into(),
                table: Arc::new(table),
            },
        }
    }

    /// The CPU's attention.
    fn expected(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.tokens * self.attention.heads.out_width()];
        let [q_norm, k_norm] = &self.norms;
        attention_into(
            &self.attention,
            &floats(&self.packed),
            q_norm,
            k_norm,
            &mut out,
        );
        out
    }

    /// Norms and rotary tables, as kernels take them.
    fn with_tables<'a>(&self, kernel: Kernel<'a>) -> Kernel<'a> {
        kernel
            .slice(&self.norms[0])
            .slice(&self.norms[1])
            .slice(&self.cos)
            .slice(&self.sin)
    }
}

/// Padded heads of sequences: what `cuda` computes attention on.
struct Padded<'a, T> {
    of: &'a Sequences<T>,
    heads: Heads,
    longest: usize,
    places: usize,
    row_of: Vec<u32>,
    place_of: Vec<u32>,
    /// `[sequences, query heads, longest, dim]`.
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
}

impl<'a, T: Number> Padded<'a, T> {
    fn new(of: &'a Sequences<T>) -> Self {
        let (heads, spans) = (of.attention.heads, &of.attention.spans);
        let longest = spans.iter().map(|span| span.len).max().unwrap_or(0);
        let places = spans.len() * longest;
        let (mut row_of, mut place_of) = (vec![u32::MAX; places], Vec::new());
        for (sequence, span) in spans.iter().enumerate() {
            for position in 0..span.len {
                let place = sequence * longest + position;
                row_of[place] = (span.start + position) as u32;
                place_of.push(place as u32);
            }
        }
        let count = places * heads.out_width();
        let (mut q, mut k, mut v) = (poison(count), poison(count), poison(count));
        let all = heads.query + 2 * heads.key_value;
        of.with_tables(
            Kernel::of::<T>("split_heads")
                .slice(&of.packed)
                .slice(&row_of),
        )
        .output(&mut q)
        .output(&mut k)
        .output(&mut v)
        .int(heads.query)
        .int(heads.key_value)
        .int(heads.dim / 2)
        .int(longest)
        .float(EPS)
        .launch((places, all.div_ceil(HEADS)), (HEADS * WARP, 1));
        Self {
            of,
            heads,
            longest,
            places,
            row_of,
            place_of,
            q,
            k,
            v,
        }
    }

    /// Sequences times query heads.
    fn batch(&self) -> usize {
        self.q.len() / (self.longest * self.heads.dim)
    }

    /// The number of an element of padded heads.
    fn at(&self, head: usize, position: usize, i: usize) -> usize {
        (head * self.longest + position) * self.heads.dim + i
    }

    /// Blocks of query rows: first row, number of rows, and keys that the last of them sees.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<T> {
        let longest = self.longest;
        (0..longest).step_by(8).map(move |first| {
            let rows = 8.min(longest - first);
            (first, rows, first + rows)
        })
    }

    /// `scale x yᵀ` for a block's rows of x and all of y, `[batch, rows, keys]`.
    fn square(
        &self,
        (first, rows, keys): (usize, usize, usize),
        [x, y]: [&[T]; 2],
        scale: f32,
    ) -> Vec<f32> {
        let mut out = poison(self.batch() * rows * keys);
        for head in 0..self.batch() {
            product(
                (rows, keys, self.heads.dim),
                |row, i| x[self.at(head, first + row, i)].float(),
                |i, key| y[self.at(head, key, i)].float(),
                |row, key, value| out[(head * rows + row) * keys + key] = scale * value,
            );
        }
        out
    }

    fn forward(&self) -> Vec<T> {
        let mut mixed: Vec<T> = poison(self.q.len());
        for block in self.blocks() {
            let (first, rows, keys) = block;
            let scores = self.square(block, [&self.q, &self.k], self.heads.scale());
            let mut p: Vec<T> = poison(scores.len());
            Kernel::of::<T>("softmax")
                .slice(&scores)
                .output(&mut p)
                .int(rows)
                .int(keys)
                .int(first)
                .launch((self.batch(), rows), (128, 1));
            for head in 0..self.batch() {
                product(
                    (rows, self.heads.dim, keys),
                    |row, key| p[(head * rows + row) * keys + key].float(),
                    |key, i| self.v[self.at(head, key, i)].float(),
                    |row, i, value| mixed[self.at(head, first + row, i)] = T::of(value),
                );
            }
        }
        let mut out: Vec<T> = poison(self.of.tokens * self.heads.out_width());
        Kernel::of::<T>("join_heads")
            .slice(&mixed)
            .slice(&self.place_of)
            .output(&mut out)
            .int(self.heads.query)
            .int(self.heads.dim)
            .int(self.longest)
            .launch((self.of.tokens, 1), ROW);
        out
    }

    /// Gradients of the packed rows and of both norms.
    fn backward(&self, g: &[T]) -> (Vec<T>, [Vec<f32>; 2]) {
        let (heads, tokens) = (&self.heads, self.of.tokens);
        let mut d: Vec<T> = poison(self.q.len());
        Kernel::of::<T>("join_heads_backward")
            .slice(g)
            .slice(&self.row_of)
            .output(&mut d)
            .int(heads.query)
            .int(heads.dim)
            .int(self.longest)
            .launch((self.places, 1), ROW);
        let mut dq: Vec<f32> = poison(d.len());
        let (mut dk, mut dv) = (vec![0.0f32; d.len()], vec![0.0f32; d.len()]);
        for block in self.blocks() {
            let (first, rows, keys) = block;
            let scores = self.square(block, [&self.q, &self.k], heads.scale());
            let dp = self.square(block, [&d, &self.v], 1.0);
            let (mut p, mut ds): (Vec<T>, Vec<T>) = (poison(dp.len()), poison(dp.len()));
            Kernel::of::<T>("softmax_backward")
                .slice(&scores)
                .slice(&dp)
                .output(&mut p)
                .output(&mut ds)
                .int(rows)
                .int(keys)
                .int(first)
                .launch((self.batch(), rows), (128, 1));
            for head in 0..self.batch() {
                let cell = |row: usize, key: usize| (head * rows + row) * keys + key;
                product(
                    (keys, heads.dim, rows),
                    |key, row| p[cell(row, key)].float(),
                    |row, i| d[self.at(head, first + row, i)].float(),
                    |key, i, value| dv[self.at(head, key, i)] += value,
                );
                product(
                    (keys, heads.dim, rows),
                    |key, row| ds[cell(row, key)].float(),
                    |row, i| self.q[self.at(head, first + row, i)].float(),
                    |key, i, value| dk[self.at(head, key, i)] += heads.scale() * value,
                );
                product(
                    (rows, heads.dim, keys),
                    |row, key| ds[cell(row, key)].float(),
                    |key, i| self.k[self.at(head, key, i)].float(),
                    |row, i, value| dq[self.at(head, first + row, i)] = heads.scale() * value,
                );
            }
        }
        let shares = tokens.div_ceil(HEADS).min(64);
        let normed = heads.query + heads.key_value;
        let mut parts: Vec<f32> = poison(shares * HEADS * normed * heads.dim);
        let mut d_packed: Vec<T> = poison(self.of.packed.len());
        self.of
            .with_tables(
                Kernel::of::<T>("split_heads_backward")
                    .slice(&self.of.packed)
                    .slice(&self.place_of),
            )
            .slice(&dq)
            .slice(&dk)
            .slice(&dv)
            .output(&mut d_packed)
            .output(&mut parts)
            .int(tokens)
            .int(heads.query)
            .int(heads.key_value)
            .int(heads.dim / 2)
            .int(self.longest)
            .float(EPS)
            .launch((shares, normed + heads.key_value), (HEADS * WARP, 1));
        let (mut d_q_norm, mut d_k_norm) = (vec![0.0; heads.dim], vec![0.0; heads.dim]);
        let of_keys = (normed, heads.query, heads.key_value);
        column_sum(&parts, heads.dim, (normed, 0, heads.query), &mut d_q_norm);
        column_sum(&parts, heads.dim, of_keys, &mut d_k_norm);
        (d_packed, [d_q_norm, d_k_norm])
    }
}

fn attention<T: Number>(shape: (usize, usize, usize), lengths: &[usize]) {
    let sequences = Sequences::<T>::new(shape, lengths);
    let padded = Padded::new(&sequences);
    close::<T>("attention", &padded.forward(), &sequences.expected());

    let g: Vec<T> = random(4, sequences.tokens * sequences.attention.heads.out_width());
    let (d_packed, [d_q_norm, d_k_norm]) = padded.backward(&g);
    let dim = shape.2;
    let (mut dx, mut dq, mut dk) = (vec![0.0; d_packed.len()], vec![0.0; dim], vec![0.0; dim]);
    let [q_norm, k_norm] = &sequences.norms;
    attention_backward_into(
        &sequences.attention,
        &floats(&sequences.packed),
        q_norm,
        k_norm,
        &floats(&g),
        &mut dx,
        &mut dq,
        &mut dk,
    );
    close::<T>("dx of attention", &d_packed, &dx);
    close::<T>("the gradient of the queries' norm", &d_q_norm, &dq);
    close::<T>("the gradient of the keys' norm", &d_k_norm, &dk);
}

#[test]
fn attention_of_small_heads_is_that_of_the_cpu() {
    attention::<f32>((4, 2, 24), &[17, 1, 6]);
    attention::<bf16>((4, 2, 24), &[17, 1, 6]);
}

#[test]
fn attention_of_large_heads_is_that_of_the_cpu() {
    attention::<f32>((8, 2, 128), &[3, 11]);
    attention::<bf16>((8, 2, 128), &[3, 11]);
}

#[test]
fn attention_over_more_keys_than_threads_is_that_of_the_cpu() {
    attention::<f32>((1, 1, 8), &[133]);
    attention::<bf16>((1, 1, 8), &[133]);
}

fn decoding<T: Number>(shape: (usize, usize, usize), lengths: &[usize]) {
    let sequences = Sequences::<T>::new(shape, lengths);
    let heads = sequences.attention.heads;
    // Pages have room for more positions than are used. They are in the order of neither sequences nor positions.
    let pages: usize = lengths.iter().map(|length| pages_of(*length)).sum();
    let mut left = (0..pages as u32).rev();
    let (mut cells, mut positions) = (Vec::new(), Vec::new());
    let (mut starts, mut tables): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for length in lengths {
        let table: Vec<u32> = left.by_ref().take(pages_of(*length)).collect();
        for position in 0..*length {
            let page = table[position / PAGE_TOKENS] as usize;
            cells.push((page * PAGE_TOKENS + position % PAGE_TOKENS) as u32);
            positions.push(position as u32);
            starts.push(tables.len() as u32);
        }
        tables.extend(table);
    }
    let cached = pages * PAGE_TOKENS * heads.key_value * heads.dim;
    let count = sequences.tokens * heads.out_width();
    let (mut q, mut keys, mut values): (Vec<T>, Vec<T>, Vec<T>) =
        (poison(count), poison(cached), poison(cached));
    let all = heads.query + 2 * heads.key_value;
    sequences
        .with_tables(
            Kernel::of::<T>("cache_heads")
                .slice(&sequences.packed)
                .slice(&cells)
                .slice(&positions),
        )
        .output(&mut q)
        .output(&mut keys)
        .output(&mut values)
        .int(heads.query)
        .int(heads.key_value)
        .int(heads.dim / 2)
        .float(EPS)
        .launch((sequences.tokens, all.div_ceil(HEADS)), (HEADS * WARP, 1));
    let mut out: Vec<T> = poison(count);
    let per_lane = heads.dim.div_ceil(WARP).next_power_of_two();
    Kernel::of::<T>(&format!("attend_{per_lane}"))
        .slice(&q)
        .slice(&positions)
        .slice(&starts)
        .slice(&tables)
        .slice(&keys)
        .slice(&values)
        .output(&mut out)
        .int(heads.query)
        .int(heads.key_value)
        .int(heads.dim)
        .float(heads.scale())
        .launch((sequences.tokens, heads.query), (8 * WARP, 1));
    close::<T>("attention over the cache", &out, &sequences.expected());
}

#[test]
fn decoding_gives_the_attention_of_the_cpu() {
    // One for each number of dimensions that a lane takes.
    for (shape, lengths) in [
        ((4, 2, 24), [70, 7]),
        ((3, 1, 48), [9, 2]),
        ((2, 2, 80), [9, 2]),
        ((8, 2, 128), [12, 5]),
        ((2, 1, 256), [6, 3]),
    ] {
        decoding::<f32>(shape, &lengths);
        decoding::<bf16>(shape, &lengths);
    }
}

#[test]
fn the_optimiser_takes_the_steps_of_adamw() {
    let [beta1, beta2, scale]: [f32; 3] = [0.9, 0.95, 0.3];
    let [keep, rate, correction2, epsilon]: [f32; 4] = [0.99, 0.02, 3.0, 1e-8];
    for count in [100, 515] {
        let g: Vec<f32> = random(1, count);
        let mut w: Vec<f32> = random(2, count);
        // The second moments are squares.
        let mut moments: Vec<f32> = random(3, 2 * count);
        for moment in &mut moments[count..] {
            *moment *= *moment;
        }
        let (mut expected, mut expected_w) = (moments.clone(), w.clone());
        let (first, second) = expected.split_at_mut(count);
        for (((w, m), v), g) in expected_w.iter_mut().zip(first).zip(second).zip(&g) {
            let g = g * scale;
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *w = *w * keep - rate * *m / ((*v * correction2).sqrt() + epsilon);
        }
        Kernel::new("adamw")
            .output(&mut w)
            .output(&mut moments)
            .slice(&g)
            .long(count)
            .float(beta1)
            .float(beta2)
            .float(scale)
            .float(keep)
            .float(rate)
            .float(correction2)
            .float(epsilon)
            .launch_each(count / 4);
        close::<f32>("moments", &moments, &expected);
        close::<f32>("weights", &w, &expected_w);
    }
}

#[test]
fn the_sum_of_squares_is_that_of_all_numbers() {
    // Fewer blocks than `cuda` has, and more numbers than threads.
    for (count, blocks) in [(100, 3), (3000, 5)] {
        let x: Vec<f32> = random(1, count);
        let mut sums: Vec<f32> = poison(blocks);
        Kernel::new("sum_of_squares")
            .slice(&x)
            .long(count)
            .output(&mut sums)
            .launch((blocks, 1), ROW);
        let squares = x.iter().map(|x| x * x).sum::<f32>();
        close::<f32>("the sum", &[sums.iter().sum::<f32>()], &[squares]);
    }
}

#[test]
fn draws_are_those_of_the_cpu() {
    let key = |task: usize| DrawKey {
        step: 1,
        task: task as u64,
        sample: 2,
        position: 3,
    };
    // Fewer logits than a block has threads, and more than it has parts, the last part not full.
    for (rows, vocabulary) in [(24, 7), (12, 2_500)] {
        let mut logits: Vec<f32> = random(1, rows * vocabulary);
        for logit in &mut logits {
            *logit *= 2.0;
        }
        // The same most probable token twice.
        (logits[4], logits[2]) = (9.0, 9.0);
        let draws: Vec<Draw> = (0..rows)
            .map(|row| {
                let temperature = [0.0, 1.0, 0.5, 1.7][row % 4];
                let params = SamplingParams {
                    temperature,
                    ..SamplingParams::default()
                };
                Draw {
                    sampler: Sampler::new(params, 5, Purpose::Test).unwrap(),
                    key: key(row),
                }
            })
            .collect();
        let numbers = draws.iter().map(|draw| Draw::scale_and_uniform(Some(draw)));
        let (scales, uniforms): (Vec<f32>, Vec<f64>) = numbers.unzip();
        let draw = |logits: &[f32]| {
            let (mut ids, mut log_probs) = (vec![0u32; rows], poison::<f32>(rows));
            Kernel::new("sample")
                .slice(logits)
                .slice(&scales)
                .slice(&uniforms)
                .output(&mut ids)
                .output(&mut log_probs)
                .int(vocabulary)
                .launch((rows, 1), LONG_ROW);
            (ids, log_probs)
        };
        let (ids, log_probs) = draw(&logits);
        let row = |number: usize| &logits[number * vocabulary..(number + 1) * vocabulary];
        let expected: Vec<Sampled> = (0..rows)
            .map(|number| {
                draws[number]
                    .sampler
                    .sample(row(number), key(number))
                    .unwrap()
            })
            .collect();
        let expected_ids: Vec<u32> = expected.iter().map(|drawn| drawn.id).collect();
        assert_eq!(ids, expected_ids);
        assert!(ids.iter().any(|id| *id != ids[0]));
        let expected: Vec<f32> = expected.iter().map(|drawn| drawn.log_prob).collect();
        close::<f32>("log-probabilities of draws", &log_probs, &expected);

        for broken in [f32::NAN, f32::INFINITY] {
            let mut logits = logits.clone();
            logits[vocabulary + 3] = broken;
            let (ids, _) = draw(&logits);
            assert_eq!(
                (ids[0], ids[1], ids[2]),
                (expected_ids[0], u32::MAX, expected_ids[2])
            );
        }
    }
}
