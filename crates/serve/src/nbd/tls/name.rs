//! Name of a client in its certificate, for messages. Nothing depends on this name.

use rustls::pki_types::CertificateDer;

/// Common name of the certificate's subject, or else its first DNS name.
pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let common = common_name(certificate.subject());
    common.or_else(|| certificate.valid_dns_names().next().map(str::to_owned))
}

/// Object identifier of a common name, 2.5.4.3, in DER.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];

/// Finds the common name in a subject in DER. The name is a string with a tag, a length of one byte, and the text.
fn common_name(subject: &[u8]) -> Option<String> {
    let places = subject.windows(COMMON_NAME.len());
    let at = places.into_iter().position(|part| part == COMMON_NAME)? + COMMON_NAME.len();
    let len = usize::from(*subject.get(at + 1)?);
    let text = subject.get(at + 2..at + 2 + len)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_name_is_found_behind_other_parts() {
        let organization = b"\x31\x0a\x30\x08\x06\x03\x55\x04\x0a\x0c\x01x";
        let common = b"\x31\x0e\x30\x0c\x06\x03\x55\x04\x03\x0c\x05alice";
        let subject = [&organization[..], common].concat();
        assert_eq!(common_name(&subject).as_deref(), Some("alice"));
        assert_eq!(common_name(organization), None);
        for end in 0..common.len() {
            assert_eq!(common_name(&common[..end]), None, "{end}");
        }
    }
}
