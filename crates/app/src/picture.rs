//! What becomes of an image before a model sees it: turned upright, scaled down, without what its camera wrote.
//!
//! Invariant: pure. What goes out was decoded and encoded here, so no reader behind this meets bytes from outside.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage};

/// Bytes of a file that is taken.
pub const MOST_BYTES: usize = 30 << 20;
/// Pixels of an image that is taken, before it is scaled.
const MOST_PIXELS: u64 = 64_000_000;
/// Bytes that its decoder may take.
const MOST_MEMORY: u64 = 640 << 20;
/// Pixels of the longer side of what is sent. No model in use looks closer.
const LONGEST: u32 = 2048;
/// Pixels of the longer side of a preview.
const PREVIEW: u32 = 256;
/// A drawing that is larger than this is sent as a photo.
const LARGEST_DRAWING: usize = 3 << 20;
const QUALITY: u8 = 90;

/// An image, or a document that is sent as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// `image/png`, `image/jpeg` or `application/pdf`.
    pub mime: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
    /// Pixels; 0 for a document.
    pub width: u32,
    /// Pixels; 0 for a document.
    pub height: u32,
    /// A small JPEG; none for a document.
    pub preview: Option<Vec<u8>>,
}

/// Why a file can't go along.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureFault {
    /// Nothing that is known here.
    #[error("it is none of PNG, JPEG, WebP, GIF, BMP and PDF")]
    Unknown,
    /// It begins like an image and is none.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// More than a machine should take.
    #[error("it has {width} × {height} pixels, and 64 million are the most")]
    TooManyPixels {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// More than should be sent.
    #[error("it has {} MB, and 30 are the most", .0 >> 20)]
    TooLong(usize),
}

/// Reads a file that somebody wants to send.
pub fn read(bytes: &[u8]) -> Result<Picture, PictureFault> {
    if bytes.len() > MOST_BYTES {
        return Err(PictureFault::TooLong(bytes.len()));
    }
    if bytes.starts_with(b"%PDF-") {
        let bytes = bytes.to_vec();
        return Ok(Picture { mime: "application/pdf", bytes, width: 0, height: 0, preview: None });
    }
    let (image, format) = decode(bytes)?;
    let larger = image.width().max(image.height()) > LONGEST;
    let image =
        if larger { image.resize(LONGEST, LONGEST, image::imageops::FilterType::CatmullRom) } else { image };
    let image = on_white(image);
    let preview = jpeg(&image.thumbnail(PREVIEW.min(image.width()), PREVIEW.min(image.height())))?;
    let drawn = matches!(format, ImageFormat::Png | ImageFormat::Gif | ImageFormat::Bmp);
    let drawing = if drawn { Some(png(&image)?).filter(|png| png.len() <= LARGEST_DRAWING) } else { None };
    let (mime, bytes) = match drawing {
        Some(png) => ("image/png", png),
        None => ("image/jpeg", jpeg(&image)?),
    };
    Ok(Picture { mime, bytes, width: image.width(), height: image.height(), preview: Some(preview) })
}

fn decode(bytes: &[u8]) -> Result<(DynamicImage, ImageFormat), PictureFault> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| PictureFault::Damaged(error.to_string()))?;
    let format = reader.format().ok_or(PictureFault::Unknown)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(fault)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(PictureFault::TooManyPixels { width, height });
    }
    // A camera that is held upright says so beside the image.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(fault)?;
    image.apply_orientation(orientation);
    Ok((image, format))
}

fn fault(error: ImageError) -> PictureFault {
    match error {
        ImageError::Unsupported(_) => PictureFault::Unknown,
        other => PictureFault::Damaged(other.to_string()),
    }
}

/// Models know no transparency; what shows through is paper.
fn on_white(image: DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return DynamicImage::ImageRgb8(image.into_rgb8());
    }
    let seen = image.into_rgba8();
    let mut out = RgbImage::new(seen.width(), seen.height());
    for (from, to) in seen.pixels().zip(out.pixels_mut()) {
        let [red, green, blue, alpha] = from.0;
        let over = |colour: u8| {
            let mixed = u16::from(colour) * u16::from(alpha) + 255 * (255 - u16::from(alpha));
            u8::try_from(mixed / 255).unwrap_or(u8::MAX)
        };
        *to = Rgb([over(red), over(green), over(blue)]);
    }
    DynamicImage::ImageRgb8(out)
}

fn png(image: &DynamicImage) -> Result<Vec<u8>, PictureFault> {
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, ImageFormat::Png).map_err(fault)?;
    Ok(out.into_inner())
}

fn jpeg(image: &DynamicImage) -> Result<Vec<u8>, PictureFault> {
    let mut out = Vec::new();
    image.write_with_encoder(JpegEncoder::new_with_quality(&mut out, QUALITY)).map_err(fault)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use image::{GenericImageView, Rgba, RgbaImage};

    use super::*;

    fn file(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        image.into().write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    /// Left red, right blue.
    fn halves(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(
            width,
            height,
            |x, _| if x < width / 2 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) },
        )
    }

    fn seen(picture: &Picture) -> DynamicImage {
        image::load_from_memory(&picture.bytes).unwrap()
    }

    #[test]
    fn every_kind_is_taken_and_drawings_stay_exact() {
        for format in
            [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif, ImageFormat::Bmp]
        {
            let picture = read(&file(halves(40, 20), format)).unwrap();
            let drawn = matches!(format, ImageFormat::Png | ImageFormat::Gif | ImageFormat::Bmp);
            assert_eq!(picture.mime, if drawn { "image/png" } else { "image/jpeg" }, "{format:?}");
            assert_eq!((picture.width, picture.height), (40, 20));
            if drawn {
                assert_eq!(seen(&picture).into_rgb8(), halves(40, 20), "{format:?}");
            }
        }
        let document = read(b"%PDF-1.7 and more").unwrap();
        assert_eq!((document.mime, document.preview), ("application/pdf", None));
    }

    #[test]
    fn large_ones_are_scaled_and_small_ones_are_not() {
        let picture = read(&file(halves(5000, 100), ImageFormat::Png)).unwrap();
        assert_eq!((picture.width, picture.height), (2048, 41));
        let preview = image::load_from_memory(&picture.preview.unwrap()).unwrap();
        assert_eq!(preview.width(), 256);
        assert_eq!(read(&file(halves(3, 1), ImageFormat::Png)).unwrap().width, 3);
    }

    #[test]
    fn what_is_transparent_lies_on_paper() {
        let glass = RgbaImage::from_pixel(4, 4, Rgba([10, 20, 30, 0]));
        let picture = read(&file(glass, ImageFormat::Png)).unwrap();
        assert_eq!(seen(&picture).get_pixel(1, 1).0[..3], [255, 255, 255]);
    }

    #[test]
    fn a_photo_stands_upright_and_loses_what_the_camera_wrote() {
        let photo = file(halves(64, 32), ImageFormat::Jpeg);
        // APP1 with one entry: orientation 6, to be turned to the right.
        let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
        let turned = [&photo[..2], &[0xff, 0xe1], &length, exif, &photo[2..]].concat();
        let picture = read(&turned).unwrap();
        assert_eq!((picture.width, picture.height), (32, 64));
        let image = seen(&picture).into_rgb8();
        assert!(image.get_pixel(16, 8).0[0] > 200 && image.get_pixel(16, 56).0[2] > 200);
        assert!(!picture.bytes.windows(4).any(|four| four == b"Exif"));
    }

    #[test]
    fn what_cannot_be_sent_says_why() {
        assert_eq!(read(b"no image"), Err(PictureFault::Unknown));
        assert_eq!(read(b""), Err(PictureFault::Unknown));
        assert_eq!(read(&vec![0; MOST_BYTES + 1]), Err(PictureFault::TooLong(MOST_BYTES + 1)));
        let mut cut = file(halves(64, 64), ImageFormat::Png);
        cut.truncate(60);
        assert!(matches!(read(&cut), Err(PictureFault::Damaged(_))));
        // A small file that would be large in memory.
        let mut large = file(halves(1, 1), ImageFormat::Bmp);
        large[18..26].copy_from_slice(&[0x60, 0xea, 0, 0, 0x60, 0xea, 0, 0]);
        let fault = read(&large).unwrap_err();
        assert_eq!(fault, PictureFault::TooManyPixels { width: 60_000, height: 60_000 }, "{fault}");
    }
}
