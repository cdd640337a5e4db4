//! The choice of a backend for a model.

/// Evaluates an expression with the network of a model that uses fused operators.
macro_rules! on_network {
    ($model:expr, |$network:ident| $expression:expr) => {{
        let model: &crate::model::Model = $model;
        let locked = crate::qwen3::lock(model.operands());
        match (model.device(), model.precision()) {
            #[cfg(feature = "cuda")]
            (candle_core::Device::Cuda(_), crate::model::Precision::F32) => {
                let $network = crate::cuda_network::network::<f32, _>(model, &locked)?;
                $expression
            }
            #[cfg(feature = "cuda")]
            (candle_core::Device::Cuda(_), crate::model::Precision::Bf16) => {
                let $network = crate::cuda_network::network::<half::bf16, _>(model, &locked)?;
                $expression
            }
            _ => {
                let $network = crate::cpu::network(model, &locked)?;
                $expression
            }
        }
    }};
}
pub(crate) use on_network;
