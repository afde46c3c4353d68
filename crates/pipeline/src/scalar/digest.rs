//! Digests of bytes.

use md5::Md5;
use sha2::{Digest, Sha256};

/// Returns the MD5 digest as 32 hexadecimal digits in small letters.
pub fn md5(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(32);
    for byte in Md5::digest(bytes) {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(digit.into(), 16));
        }
    }
    text
}

/// Returns the SHA-256 digest.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
