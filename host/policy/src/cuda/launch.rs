//! Launching kernels and matrix products on a CUDA device.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::cublas::result::gemm_strided_batched_ex;
use candle_core::cuda_backend::cudarc::cublas::{CudaBlas, sys};
use candle_core::cuda_backend::cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits,
};
use candle_core::cuda_backend::{CudaDType, WrapErr};
use candle_core::{CudaDevice, Error, Result};
use half::bf16;

/// `kernels.cu`, compiled by the build script.
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// Threads of a warp.
pub(super) const WARP: usize = 32;

/// A number that products read: f32 or bf16.
pub(crate) trait Number:
    CudaDType + DeviceRepr + ValidAsZeroBits + Send + Sync + 'static
{
    /// The end of the names of its kernels.
    const NAME: &'static str;
    /// Its name in cuBLAS.
    const KIND: sys::cudaDataType;
}

impl Number for f32 {
    const NAME: &'static str = "f32";
    const KIND: sys::cudaDataType = sys::cudaDataType::CUDA_R_32F;
}

impl Number for bf16 {
    const NAME: &'static str = "bf16";
    const KIND: sys::cudaDataType = sys::cudaDataType::CUDA_R_16BF;
}

thread_local! {
    /// The stream that this thread used last, and its cuBLAS handle.
    static BLAS: RefCell<Option<(Arc<CudaStream>, Arc<CudaBlas>)>> = const { RefCell::new(None) };
}

/// The cuBLAS handle of this thread. A handle has a workspace, which two threads that compute at once must not share.
fn blas_of_thread(device: &CudaDevice) -> Result<Arc<CudaBlas>> {
    let stream = device.cuda_stream();
    BLAS.with_borrow_mut(|kept| {
        if let Some((of, blas)) = kept
            && Arc::ptr_eq(of, &stream)
        {
            return Ok(blas.clone());
        }
        let blas = Arc::new(CudaBlas::new(stream.clone()).w()?);
        *kept = Some((stream, blas.clone()));
        Ok(blas)
    })
}

/// Numbers on the device from a place on: a device address with the type that is there.
#[derive(Debug)]
pub(super) struct At<T> {
    address: u64,
    kind: std::marker::PhantomData<T>,
}

impl<T> Clone for At<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for At<T> {}

impl<T> At<T> {
    /// The numbers of a slice from `index` on.
    pub(super) fn new(slice: &CudaSlice<T>, index: usize) -> Self {
        // Each host thread has one stream, which orders all its work. So nothing waits for the guard's event.
        let (address, _) = slice.device_ptr(slice.stream());
        Self {
            address,
            kind: std::marker::PhantomData,
        }
        .after(index)
    }

    /// The numbers from `count` later on.
    pub(super) fn after(self, count: usize) -> Self {
        Self {
            address: self.address + (count * size_of::<T>()) as u64,
            ..self
        }
    }

    pub(super) fn address(self) -> u64 {
        self.address
    }
}

/// A kernel and its arguments so far.
pub(super) struct Kernel<'a> {
    device: &'a CudaDevice,
    name: String,
    /// Every argument, in its first bytes.
    arguments: Vec<u64>,
}

impl<'a> Kernel<'a> {
    /// A kernel for one type only.
    pub(super) fn new(device: &'a CudaDevice, name: &str) -> Self {
        Self {
            device,
            name: name.to_owned(),
            arguments: Vec::with_capacity(16),
        }
    }

    /// A kernel for operands of type `T`.
    pub(super) fn of<T: Number>(device: &'a CudaDevice, name: &str) -> Self {
        Self::new(device, &format!("{name}_{}", T::NAME))
    }

    /// A whole slice.
    pub(super) fn slice<T>(self, slice: &CudaSlice<T>) -> Self {
        self.at(At::new(slice, 0))
    }

    /// A slice that the kernel writes.
    pub(super) fn output<T>(self, slice: &mut CudaSlice<T>) -> Self {
        self.at(At::new(slice, 0))
    }

    pub(super) fn at<T>(mut self, at: At<T>) -> Self {
        self.arguments.push(at.address);
        self
    }

    /// An `int`.
    pub(super) fn int(mut self, value: usize) -> Result<Self> {
        let value = i32::try_from(value).map_err(|_| {
            Error::msg(format!(
                "{} is too large for the kernel {}",
                value, self.name
            ))
        })?;
        self.arguments.push(u64::from(value.cast_unsigned()));
        Ok(self)
    }

    /// A `u64`.
    pub(super) fn long(mut self, value: usize) -> Self {
        self.arguments.push(value as u64);
        self
    }

    pub(super) fn float(mut self, value: f32) -> Self {
        self.arguments.push(u64::from(value.to_bits()));
        self
    }

    /// Launches blocks of `threads`, or nothing where a side of the grid is 0.
    pub(super) fn launch(self, (x, y): (usize, usize), threads: (usize, usize)) -> Result<()> {
        if x == 0 || y == 0 {
            return Ok(());
        }
        let function = self
            .device
            .get_or_load_custom_func(&self.name, "rlf-policy", PTX)?;
        let mut builder = function.builder();
        for argument in &self.arguments {
            builder.arg(argument);
        }
        let configuration = LaunchConfig {
            grid_dim: (x as u32, y as u32, 1),
            block_dim: (threads.0 as u32, threads.1 as u32, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: callers give the kernel's arguments in its order, with slices as long as it reads and writes.
        unsafe { builder.launch(configuration) }.w()?;
        Ok(())
    }

    /// Launches one thread for each of `count` numbers.
    pub(super) fn launch_each(self, count: usize) -> Result<()> {
        self.launch((count.div_ceil(256), 1), (256, 1))
    }
}

/// A factor of a product: rows that are `stride` numbers apart.
pub(super) struct Factor<T> {
    at: At<T>,
    stride: usize,
    transposed: bool,
    /// From one product of a batch to the next.
    next: usize,
}

impl<T> Clone for Factor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Factor<T> {}

impl<T> Factor<T> {
    pub(super) fn new(at: At<T>, stride: usize) -> Self {
        Self {
            at,
            stride,
            transposed: false,
            next: 0,
        }
    }

    pub(super) fn transposed(self) -> Self {
        Self {
            transposed: true,
            ..self
        }
    }

    /// The same in a batch, where the next product's factor begins `next` numbers later.
    pub(super) fn next(self, next: usize) -> Self {
        Self { next, ..self }
    }

    fn operation(&self) -> sys::cublasOperation_t {
        if self.transposed {
            sys::cublasOperation_t::CUBLAS_OP_T
        } else {
            sys::cublasOperation_t::CUBLAS_OP_N
        }
    }
}

/// Sizes of products, and what becomes of what was there: `c = scale a b + keep c`, with a `[m, k]` and b `[k, n]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) batch: usize,
    pub(super) scale: f32,
    pub(super) keep: f32,
}

impl Product {
    pub(super) fn new(m: usize, n: usize, k: usize) -> Self {
        Self {
            m,
            n,
            k,
            batch: 1,
            scale: 1.0,
            keep: 0.0,
        }
    }

    /// Computes the products by cuBLAS, with sums in f32.
    pub(super) fn run<T: Number, C: Number>(
        self,
        device: &CudaDevice,
        a: Factor<T>,
        b: Factor<T>,
        c: Factor<C>,
    ) -> Result<()> {
        if self.m == 0 || self.n == 0 || self.batch == 0 {
            return Ok(());
        }
        let int = |value: usize| {
            i32::try_from(value).map_err(|_| Error::msg("a matrix product is too large for cuBLAS"))
        };
        let long = |value: usize| value as i64;
        let blas = blas_of_thread(device)?;
        // cuBLAS counts columns first: rows of c are columns of its result, which is bᵀ aᵀ.
        // SAFETY: callers give factors whose memory has these rows and columns.
        unsafe {
            gemm_strided_batched_ex(
                *blas.handle(),
                b.operation(),
                a.operation(),
                int(self.n)?,
                int(self.m)?,
                int(self.k)?,
                (&raw const self.scale).cast::<c_void>(),
                b.at.address() as *const c_void,
                T::KIND,
                int(b.stride)?,
                long(b.next),
                a.at.address() as *const c_void,
                T::KIND,
                int(a.stride)?,
                long(a.next),
                (&raw const self.keep).cast::<c_void>(),
                c.at.address() as *mut c_void,
                C::KIND,
                int(c.stride)?,
                long(c.next),
                int(self.batch)?,
                sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .w()?;
        Ok(())
    }
}
