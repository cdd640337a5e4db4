//! The machine that a plan is for: this one, or a GPU from a table.

use std::time::Duration;

use candle_core::Device;
use rlf_policy::measure::product_rate;
use rlf_policy::{Precision, Processor, device_facts};

/// A GPU that a plan can be made for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gpu {
    /// Its name on the command line.
    name: &'static str,
    /// A part of the name that its driver gives it.
    label: &'static str,
    /// Memory that its driver reports, in MiB.
    mebibytes: u64,
    /// Dense products of bf16 with sums in f32, in TFLOP/s, as its maker states.
    bf16: f64,
    /// Products of f32 without tensor cores, in TFLOP/s.
    f32: f64,
    /// Bandwidth of its memory in TB/s.
    bandwidth: f64,
}

/// From NVIDIA's data sheets. The first label that fits a driver's name counts.
const GPUS: [Gpu; 7] = [
    gpu("h200", "H200", 143_771, 989.0, 67.0, 4.8),
    gpu("h100", "H100", 81_559, 989.0, 67.0, 3.35),
    gpu("a100-80", "A100", 81_920, 312.0, 19.5, 2.04),
    gpu("a100-40", "A100", 40_960, 312.0, 19.5, 1.56),
    gpu("l40s", "L40S", 46_068, 362.0, 91.6, 0.86),
    gpu("5090", "RTX 5090", 32_607, 209.5, 104.8, 1.79),
    gpu("4090", "RTX 4090", 24_564, 165.2, 82.6, 1.01),
];

const fn gpu(
    name: &'static str,
    label: &'static str,
    mebibytes: u64,
    bf16: f64,
    f32: f64,
    bandwidth: f64,
) -> Gpu {
    Gpu {
        name,
        label,
        mebibytes,
        bf16,
        f32,
        bandwidth,
    }
}

/// Speed of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// A CPU.
    Cpu {
        /// Floating-point operations per second of matrix products in the precision of the run, on all threads, as measured.
        products: f64,
    },
    /// A GPU, as its maker states.
    Gpu {
        /// Floating-point operations per second of products in bf16.
        bf16: f64,
        /// The same in f32.
        f32: f64,
        /// Bytes per second that its memory delivers.
        bandwidth: f64,
    },
}

impl Speed {
    /// Floating-point operations per second of products in this precision.
    pub fn products(self, precision: Precision) -> f64 {
        match (self, precision) {
            (Self::Cpu { products }, _) => products,
            (Self::Gpu { bf16, .. }, Precision::Bf16) => bf16,
            (Self::Gpu { f32, .. }, Precision::F32) => f32,
        }
    }
}

/// The machine that a plan is for.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedMachine {
    /// Its name.
    pub name: String,
    /// The kind of its device.
    pub processor: Processor,
    /// Bytes of the device's memory. None if the system does not say.
    pub memory: Option<u64>,
    /// Its speed. None for a GPU that is not in the table.
    pub speed: Option<Speed>,
}

/// Time for which the speed of this machine's CPU is measured.
const MEASURED: Duration = Duration::from_millis(300);

impl PlannedMachine {
    /// The names that [`Self::named`] knows.
    pub const NAMES: [&'static str; 7] =
        ["h200", "h100", "a100-80", "a100-40", "l40s", "5090", "4090"];

    /// The machine with this name from the table.
    pub fn named(name: &str) -> Option<Self> {
        let gpu = GPUS.iter().find(|gpu| gpu.name == name)?;
        Some(Self {
            name: format!("NVIDIA {}, {} MiB", gpu.label, gpu.mebibytes),
            processor: Processor::Cuda,
            memory: Some(gpu.mebibytes << 20),
            speed: Some(gpu.speed()),
        })
    }

    /// This machine with an open device. The speed of a CPU is measured with so many threads, for a fraction of a second.
    pub fn here(device: &Device, precision: Precision, workers: usize) -> Self {
        let speed = match Processor::of(device) {
            Processor::Cpu => Some(Speed::Cpu {
                products: product_rate(precision, workers, MEASURED),
            }),
            Processor::Cuda => {
                let name = device_facts(device).name;
                let gpu = GPUS.iter().find(|gpu| name.contains(gpu.label));
                gpu.map(Gpu::speed)
            }
        };
        Self {
            speed,
            ..Self::without_speed(device)
        }
    }

    /// This machine, of which only the memory matters.
    pub(super) fn without_speed(device: &Device) -> Self {
        let facts = device_facts(device);
        Self {
            name: facts.name,
            processor: Processor::of(device),
            memory: facts.memory,
            speed: None,
        }
    }
}

impl Gpu {
    fn speed(&self) -> Speed {
        Speed::Gpu {
            bf16: self.bf16 * 1e12,
            f32: self.f32 * 1e12,
            bandwidth: self.bandwidth * 1e12,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_gpu() {
        assert_eq!(PlannedMachine::NAMES, GPUS.map(|gpu| gpu.name));
        let h200 = PlannedMachine::named("h200").unwrap();
        assert_eq!(h200.name, "NVIDIA H200, 143771 MiB");
        assert_eq!(h200.memory, Some(143_771 << 20));
        let products = |precision| h200.speed.unwrap().products(precision);
        assert_eq!(products(Precision::Bf16), 989e12);
        assert_eq!(products(Precision::F32), 67e12);
        assert_eq!(PlannedMachine::named("h300"), None);
    }
}
