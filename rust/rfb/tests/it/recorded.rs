//! What real servers sent.

use imaging::Size;

/// The size and the RGB bytes of a PNG file.
pub fn rgb(file: &[u8]) -> (Size, Vec<u8>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    let rgb = match info.color_type {
        png::ColorType::Grayscale => pixels.into_iter().flat_map(|grey| [grey; 3]).collect(),
        png::ColorType::Rgb => pixels,
        other => panic!("a fixture of {other:?}"),
    };
    (Size { w: info.width, h: info.height }, rgb)
}
