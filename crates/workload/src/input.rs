//! Bytes of a trace, decompressed if the first bytes are the mark of a compressed file.

use crate::{Compression, TraceError};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// First bytes of a gzip member (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];
/// First bytes of a Zstandard frame (RFC 8878, section 3.1.1).
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of a Zstandard skippable frame, except for the low four bits of the first byte (section
/// 3.1.2).
const ZSTD_SKIPPABLE: &[u8] = &[0x50, 0x2a, 0x4d, 0x18];

/// The file's own bytes: the first bytes put back, and a count of the bytes taken.
struct Raw<R> {
    head: [u8; 4],
    head_at: usize,
    head_len: usize,
    input: R,
    taken: u64,
    /// True if a read returned the end of the file.
    ended: bool,
}

impl<R: Read> Read for Raw<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let head = &self.head[self.head_at..self.head_len];
        let bytes = if head.is_empty() {
            self.input.read(into)?
        } else {
            let bytes = head.len().min(into.len());
            into[..bytes].copy_from_slice(&head[..bytes]);
            self.head_at += bytes;
            bytes
        };
        self.taken += bytes as u64;
        self.ended |= bytes == 0 && !into.is_empty();
        Ok(bytes)
    }
}

/// Contents of a file that may be compressed.
pub(crate) struct Input<R>(Encoding<R>);

enum Encoding<R> {
    Plain(Raw<R>),
    Gzip(MultiGzDecoder<BufReader<Raw<R>>>),
    Zstd(Box<Frames<R>>),
}

/// Zstandard frames, one after another.
struct Frames<R> {
    source: BufReader<Raw<R>>,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(mut input: R) -> io::Result<Input<R>> {
        let mut head = [0; 4];
        let mut head_len = 0;
        while head_len < head.len() {
            match input.read(&mut head[head_len..]) {
                Ok(0) => break,
                Ok(bytes) => head_len += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let raw = Raw {
            head,
            head_at: 0,
            head_len,
            input,
            taken: 0,
            ended: false,
        };
        let head = &head[..head_len];
        let skippable = head.len() == 4
            && head[0] & 0xf0 == ZSTD_SKIPPABLE[0]
            && head[1..] == ZSTD_SKIPPABLE[1..];
        Ok(Input(if head.starts_with(GZIP) {
            Encoding::Gzip(MultiGzDecoder::new(BufReader::new(raw)))
        } else if head == ZSTD || skippable {
            Encoding::Zstd(Box::new(Frames {
                source: BufReader::new(raw),
                decoder: FrameDecoder::new(),
                inside: false,
            }))
        } else {
            Encoding::Plain(raw)
        }))
    }

    pub(crate) fn compression(&self) -> Compression {
        match self.0 {
            Encoding::Plain(_) => Compression::None,
            Encoding::Gzip(_) => Compression::Gzip,
            Encoding::Zstd(_) => Compression::Zstd,
        }
    }

    /// Error to report if `read` fails after `decompressed` bytes.
    pub(crate) fn error(&self, file: &str, decompressed: u64, source: io::Error) -> TraceError {
        let buffered = match &self.0 {
            Encoding::Plain(_) => {
                return TraceError::Read {
                    file: file.to_owned(),
                    offset: decompressed,
                    source,
                };
            }
            Encoding::Gzip(decoder) => decoder.get_ref(),
            Encoding::Zstd(frames) => &frames.source,
        };
        TraceError::Compressed {
            file: file.to_owned(),
            compression: self.compression(),
            truncated: buffered.get_ref().ended,
            offset: buffered.get_ref().taken - buffered.buffer().len() as u64,
            decompressed,
            source,
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Encoding::Plain(raw) => raw.read(into),
            Encoding::Gzip(decoder) => decoder.read(into),
            Encoding::Zstd(frames) => frames.read(into),
        }
    }
}

impl<R: Read> Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.inside {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                match self.decoder.reset(&mut self.source) {
                    Ok(()) => self.inside = true,
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => self.skip(u64::from(length))?,
                    Err(error) => return Err(io::Error::other(error)),
                }
            } else if self.decoder.can_collect() > 0 {
                return self.decoder.read(into);
            } else if self.decoder.is_finished() {
                self.inside = false;
                // The decoder computes the checksum and leaves the comparison to its caller.
                let told = self.decoder.get_checksum_from_data();
                if told.is_some() && told != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::other(
                        "the checksum of the contents does not match",
                    ));
                }
            } else {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
        }
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
        if skipped == length {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file ends inside a skippable frame",
            ))
        }
    }
}
