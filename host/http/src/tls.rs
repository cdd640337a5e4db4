//! TLS: the certificate authorities for https hosts.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::error::HttpError;

/// Creates a connector that trusts the authorities in the file at `path`, or else the machine's.
pub(crate) fn connector(path: Option<&Path>) -> Result<TlsConnector, HttpError> {
    let failed = |reason: String| HttpError::Certificates {
        path: path.map(Path::to_owned),
        reason,
    };
    let roots = match path {
        Some(path) => from_file(path),
        None => from_machine(),
    };
    // TLS 1.2 and 1.3 with the suites that rustls considers safe, from `ring`. The provider is explicit, because this
    // crate must not decide the default of the process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots.map_err(failed)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn from_file(path: &Path) -> Result<RootCertStore, String> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot be read ({error}); name a PEM file"))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|error| format!("one of them cannot authorise others ({error})"))?;
    }
    if roots.is_empty() {
        return Err("there is none in the file; name a PEM file".to_owned());
    }
    Ok(roots)
}

fn from_machine() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Most machines have a few certificates that no parser accepts. The others are used.
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    if ignored > 0 || !found.errors.is_empty() {
        tracing::debug!(ignored, errors = ?found.errors, "certificates of the machine were left out");
    }
    if roots.is_empty() {
        return Err(
            "the machine has none; install its package of CA certificates, point SSL_CERT_FILE at a PEM file, \
             or set `certificate_authorities` in the HTTP rules"
                .to_owned(),
        );
    }
    Ok(roots)
}
