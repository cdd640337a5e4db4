//! Launches that were recorded once, and are then launched together (a CUDA graph).
//!
//! Launching a kernel takes the host some microseconds. A step of decoding has hundreds of short ones, so the host would
//! be slower than the device.

use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::CudaGraph;
use candle_core::cuda_backend::cudarc::driver::sys::{
    CUdevice_attribute, CUgraphInstantiate_flags, CUstreamCaptureMode, cuDeviceGraphMemTrim,
};
use candle_core::{CudaDevice, Error, Result};

/// Recorded launches. They read and write the buffers that they were recorded with, which must outlive them.
pub(crate) struct Recording(CudaGraph);

// SAFETY: a graph may be used on any thread, and never by two at once: launching needs it exclusively.
unsafe impl Send for Recording {}

impl Recording {
    /// True if the device has pools of memory, from which buffers can be taken while launches are recorded.
    pub(crate) fn is_possible(device: &CudaDevice) -> bool {
        let pools = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        let supported = device.cuda_stream().context().attribute(pools);
        supported.is_ok_and(|supported| supported > 0)
    }

    /// Gives back the memory that recordings of the device no longer use. It is not part of the pool of other buffers.
    pub(crate) fn free_unused_memory(device: &CudaDevice) {
        // SAFETY: the device is open. If it fails, memory stays reserved.
        unsafe {
            _ = cuDeviceGraphMemTrim(device.cuda_stream().context().cu_device());
        }
    }

    /// Records what `work` launches, and launches nothing. `work` must not read results, and must free what it allocates.
    /// Its kernels have run before, because loading them cannot be recorded.
    pub(crate) fn make(device: &CudaDevice, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let stream = device.cuda_stream();
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        stream.begin_capture(relaxed).w()?;
        let outcome = work();
        // Ends in any case: until then, the stream runs nothing.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0)).w();
        outcome?;
        let graph = graph?.ok_or_else(|| Error::msg("a CUDA recording of nothing"))?;
        Ok(Self(graph))
    }

    /// Launches all, in the stream of this thread.
    pub(crate) fn launch(&mut self) -> Result<()> {
        self.0.launch().w()
    }
}
