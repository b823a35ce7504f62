use std::fmt;

use ring::signature::{self, RsaParameters, UnparsedPublicKey, VerificationAlgorithm};

/// A signature algorithm of tokens. `none` and symmetric algorithms are not supported.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// ECDSA on P-384 with SHA-384.
    ES384,
    /// Ed25519.
    EdDSA,
    /// RSA with PKCS#1 padding and SHA-256.
    RS256,
    /// RSA with PKCS#1 padding and SHA-384.
    RS384,
    /// RSA with PKCS#1 padding and SHA-512.
    RS512,
    /// RSA-PSS with SHA-256.
    PS256,
    /// RSA-PSS with SHA-384.
    PS384,
    /// RSA-PSS with SHA-512.
    PS512,
}

impl Algorithm {
    /// All of them.
    pub(super) const ALL: [Self; 9] = [
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        // The newer name of the one curve that there is: RFC 9864.
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A public key. Its kind determines the algorithms that it may be used with.
#[derive(Clone, Debug)]
pub(super) enum PublicKey {
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

impl PublicKey {
    /// Whether the signature is valid. It never is for an algorithm that does not fit the kind of the key.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let plain = |by: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(by, key).verify(message, signature).is_ok()
        };
        match (self, algorithm) {
            (Self::P256(key), Algorithm::ES256) => plain(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Self::P384(key), Algorithm::ES384) => plain(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Self::Ed25519(key), Algorithm::EdDSA) => plain(&signature::ED25519, key),
            (Self::Rsa { n, e }, algorithm) => rsa(algorithm).is_some_and(|by| {
                signature::RsaPublicKeyComponents { n, e }.verify(by, message, signature).is_ok()
            }),
            _ => false,
        }
    }

    pub(super) fn goes_with(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::P256(_) => algorithm == Algorithm::ES256,
            Self::P384(_) => algorithm == Algorithm::ES384,
            Self::Ed25519(_) => algorithm == Algorithm::EdDSA,
            Self::Rsa { .. } => rsa(algorithm).is_some(),
        }
    }
}

/// Keys of less than 2,048 bits are not accepted.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
