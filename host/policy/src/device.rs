//! The device that the policy runs on, and the reason for the choice.

use candle_core::Device;

use crate::error::{PolicyError, Result};
use crate::simd;

/// The kind of device that a policy computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// The CPU; micro-batches are shared by threads.
    Cpu,
    /// A CUDA device; one micro-batch at a time.
    Cuda,
}

impl Processor {
    /// The kind of a device. Devices that are neither are counted as CUDA: they have memory of their own.
    pub fn of(device: &Device) -> Self {
        if device.is_cpu() {
            Self::Cpu
        } else {
            Self::Cuda
        }
    }
}

/// A device and the reason for choosing it, in words.
#[derive(Debug, Clone)]
pub struct DeviceChoice {
    /// The device of the tensors.
    pub device: Device,
    /// The device that was found, or the reason why CUDA was not used. For `doctor` and the log.
    pub reason: String,
}

/// Opens the device that a configuration names: `cpu`, `cuda`, `cuda:N` or `auto` (CUDA if there is one, else the CPU).
///
/// # Errors
/// If CUDA is named and cannot be used; the message says why.
pub fn open_device(name: &str) -> Result<DeviceChoice> {
    let refused = |reason: String| PolicyError::Device {
        asked: name.to_owned(),
        reason,
    };
    match name {
        "cpu" => Ok(cpu("device = \"cpu\"")),
        "auto" => Ok(match cuda(0) {
            Ok(choice) => choice,
            Err(reason) => cpu(&format!("no CUDA: {reason}")),
        }),
        "cuda" => cuda(0).map_err(refused),
        _ => match name.strip_prefix("cuda:").map(str::parse) {
            Some(Ok(ordinal)) => cuda(ordinal).map_err(refused),
            _ => Err(refused(
                "not a device; write \"cpu\", \"cuda\", \"cuda:0\" or \"auto\"".to_owned(),
            )),
        },
    }
}

/// The reason why CUDA cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoCuda(String);

/// CUDA device 0 in words.
///
/// # Errors
/// If CUDA cannot be used; the message says why.
pub fn cuda_status() -> Result<String, NoCuda> {
    cuda(0).map(|choice| choice.reason).map_err(NoCuda)
}

fn cpu(reason: &str) -> DeviceChoice {
    DeviceChoice {
        device: Device::Cpu,
        reason: format!("cpu ({reason})"),
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: usize) -> Result<DeviceChoice, String> {
    Err("this binary was built without CUDA; `cargo xtask cuda` builds one with it".to_owned())
}

#[cfg(feature = "cuda")]
fn cuda(ordinal: usize) -> Result<DeviceChoice, String> {
    libraries_present()?;
    let device =
        Device::new_cuda(ordinal).map_err(|error| format!("no CUDA device {ordinal}: {error}"))?;
    // Without them, only speed is lost.
    _ = keep_freed_memory(&device);
    disable_event_tracking(&device);
    Ok(DeviceChoice {
        device,
        reason: format!("cuda:{ordinal}"),
    })
}

/// Lets the driver keep memory that was freed for the next buffer. By default it gives all of it back whenever the host
/// waits for the device.
#[cfg(feature = "cuda")]
fn keep_freed_memory(device: &Device) -> candle_core::Result<()> {
    use candle_core::cuda_backend::WrapErr;
    use candle_core::cuda_backend::cudarc::driver::{result, sys};
    let Device::Cuda(device) = device else {
        return Ok(());
    };
    let mut keep = u64::MAX;
    let name = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the device is open, and the attribute is a 64-bit number.
    #[allow(unsafe_code)]
    unsafe {
        let pool =
            result::device::get_default_mem_pool(device.cuda_stream().context().cu_device()).w()?;
        sys::cuMemPoolSetAttribute(pool, name, (&raw mut keep).cast())
            .result()
            .w()
    }
}

/// Disables cudarc's event tracking, which makes two events for each buffer. They order several streams of one thread, and
/// here a thread has one.
#[cfg(feature = "cuda")]
fn disable_event_tracking(device: &Device) {
    if let Device::Cuda(device) = device {
        // SAFETY: a host thread has one stream, and waits for the device before another thread uses what it wrote.
        #[allow(unsafe_code)]
        unsafe {
            device.disable_event_tracking();
        }
    }
}

/// Checks that CUDA's libraries are present: cudarc opens them at run time, and panics if one is missing. The cfg is set
/// on the command line by the CUDA build's cargo configuration and is a feature of cudarc, not of this crate.
#[cfg(feature = "cuda")]
#[allow(unexpected_cfgs)]
fn libraries_present() -> Result<(), String> {
    #[cfg(feature = "dynamic-loading")]
    {
        use candle_core::cuda_backend::cudarc::{cublas, curand, driver};
        // SAFETY: these only try to open a shared library by name.
        #[allow(unsafe_code)]
        let found = unsafe {
            [
                (
                    driver::sys::is_culib_present(),
                    "libcuda.so.1 (the NVIDIA driver)",
                ),
                (cublas::sys::is_culib_present(), "libcublas.so.13"),
                (curand::sys::is_culib_present(), "libcurand.so.10"),
            ]
        };
        for (present, library) in found {
            if !present {
                return Err(format!("cannot load {library}"));
            }
        }
    }
    Ok(())
}

/// Facts about the CPU, for `doctor` and the run directory. Results are bit-identical only between machines with the
/// same facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuFacts {
    /// Model name, from the system.
    pub name: String,
    /// Number of hardware threads that this process may use.
    pub threads: usize,
    /// The instruction set that the fused operators and the matrix product use.
    pub simd: &'static str,
    /// True if it has an instruction for products in bf16, so that these are faster than in f32.
    pub bf16: bool,
}

/// The facts about this machine's CPU.
pub fn cpu_facts() -> CpuFacts {
    let name = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    CpuFacts {
        name,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        simd: if simd::multiplies_bf16() {
            "avx512+bf16"
        } else {
            simd::Level::best().name()
        },
        bf16: simd::multiplies_bf16(),
    }
}

/// The name of a device and the size of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The model of the processor or of the GPU.
    pub name: String,
    /// Bytes of memory; for the CPU, that of the machine, or the limit of the container if it is lower. None if unknown.
    pub memory: Option<u64>,
}

/// The facts about an open device.
pub fn device_facts(device: &Device) -> DeviceFacts {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = device {
        let stream = device.cuda_stream();
        let context = stream.context();
        return DeviceFacts {
            name: context
                .name()
                .unwrap_or_else(|_| "a CUDA device".to_owned()),
            memory: context.total_mem().ok().map(|bytes| bytes as u64),
        };
    }
    // A build without CUDA has no other device.
    _ = device;
    DeviceFacts {
        name: cpu_facts().name,
        memory: machine_memory(),
    }
}

/// Bytes of memory that this process may use; none if the system does not say.
pub fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // The limit of a container; `max` if it has none.
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max");
    let limit: Option<u64> = limit.ok().and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(kib << 10, |limit| limit.min(kib << 10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_and_refusals_say_what_to_write() {
        assert!(open_device("cpu").unwrap().device.is_cpu());
        for name in ["gpu", "cuda:", "cuda:x", ""] {
            let message = open_device(name).unwrap_err().to_string();
            assert!(message.contains("\"auto\""), "{message}");
        }
    }

    #[test]
    fn the_machine_has_a_processor_and_memory() {
        let facts = device_facts(&Device::Cpu);
        assert_eq!(facts.name, cpu_facts().name);
        assert!(facts.memory > Some(64 << 20), "{facts:?}");
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn auto_falls_back_to_the_cpu_and_says_why() {
        let choice = open_device("auto").unwrap();
        assert!(choice.device.is_cpu() && choice.reason.contains("without CUDA"));
        assert!(
            open_device("cuda:0")
                .unwrap_err()
                .to_string()
                .contains("cargo xtask cuda")
        );
    }
}
