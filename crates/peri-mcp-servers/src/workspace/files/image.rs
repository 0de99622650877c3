//! Images: known by their first bytes, shown up to a size.
//!
//! Must not decode one. Invariant: what is told to be an image begins like one, whatever its name says.

/// The largest image that providers take, 5 MB, before base64 makes it a third longer.
pub(crate) const MAX_IMAGE_BYTES: u64 = 3_750_000;

/// The MIME type of an image that models can see.
pub(crate) fn image_type(first_bytes: &[u8]) -> Option<&'static str> {
    let webp = first_bytes.starts_with(b"RIFF") && first_bytes.get(8..12) == Some(b"WEBP");
    let known: [(bool, &'static str); 4] = [
        (first_bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "image/png"),
        (first_bytes.starts_with(b"\xff\xd8\xff"), "image/jpeg"),
        (first_bytes.starts_with(b"GIF87a") || first_bytes.starts_with(b"GIF89a"), "image/gif"),
        (webp, "image/webp"),
    ];
    known.into_iter().find_map(|(is_it, mime_type)| is_it.then_some(mime_type))
}
