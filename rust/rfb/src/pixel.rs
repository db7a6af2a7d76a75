//! Pixel formats (RFC 6143 §7.4), and turning wire pixels into BGRX.
//!
//! The rule: a pixel with an index into a colour map keeps the index in the fourth byte of its BGRX, so that a changed map
//! recolours what is already painted.

use std::sync::Arc;

use crate::input::Fields;
use crate::violation::{Problem, value};

/// A pixel as the framebuffer holds it: blue, green, red, and a byte that means nothing (or the index into the colour map).
pub(crate) type Bgrx = [u8; 4];

/// How a pixel is written on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PixelFormat {
    /// Bits of one pixel: 8, 16 or 32.
    pub bits_per_pixel: u8,
    /// How many of them mean something.
    pub depth: u8,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
    /// Whether pixels hold their colour, not an index into a colour map.
    pub true_colour: bool,
    /// The greatest red, green and blue.
    pub max: [u16; 3],
    /// How many bits to shift a pixel right for red, green and blue.
    pub shift: [u8; 3],
}

impl PixelFormat {
    /// Bytes on the wire: blue, green, red, and one without meaning. What screens hold, and most servers too.
    pub const BGRX: Self =
        Self { bits_per_pixel: 32, depth: 24, big_endian: false, true_colour: true, max: [255; 3], shift: [16, 8, 0] };

    /// Reads the 16 bytes of a format; it may be one in which no pixel can be written.
    pub(crate) fn parse(bytes: [u8; 16]) -> Self {
        let mut fields = Fields(&bytes);
        Self {
            bits_per_pixel: fields.u8(),
            depth: fields.u8(),
            big_endian: fields.u8() != 0,
            true_colour: fields.u8() != 0,
            max: [fields.u16(), fields.u16(), fields.u16()],
            shift: [fields.u8(), fields.u8(), fields.u8()],
        }
    }

    /// The 16 bytes of the format.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&[
            self.bits_per_pixel,
            self.depth,
            u8::from(self.big_endian),
            u8::from(self.true_colour),
        ]);
        for (field, max) in bytes[4..10].chunks_exact_mut(2).zip(self.max) {
            field.copy_from_slice(&max.to_be_bytes());
        }
        bytes[10..13].copy_from_slice(&self.shift);
        bytes
    }

    /// Refuses formats in which no pixel can be written.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let bits = self.bits_per_pixel;
        if !matches!(bits, 8 | 16 | 32) {
            return Err(value("bits per pixel", bits, "8, 16 or 32"));
        }
        if !self.true_colour {
            let fits = bits == 8;
            return fits.then_some(()).ok_or_else(|| value("bits per pixel with a colour map", bits, "8"));
        }
        for (max, shift) in self.max.into_iter().zip(self.shift) {
            if u64::from(max) << shift.min(32) > (1 << bits) - 1 {
                return Err(value("a colour's shift", shift, "one that leaves it within the pixel"));
            }
        }
        Ok(())
    }

    /// Which byte of a pixel each colour is, when each is a byte of its own.
    fn colour_bytes(&self) -> Option<[usize; 3]> {
        let whole = self.bits_per_pixel == 32 && self.max == [255; 3] && self.shift.iter().all(|shift| shift % 8 == 0);
        let place = |shift: u8| {
            let byte = usize::from(shift / 8);
            if self.big_endian { 3 - byte } else { byte }
        };
        (whole && self.true_colour).then(|| self.shift.map(place))
    }

    /// The bits of a pixel that mean something.
    fn used(&self) -> u32 {
        self.max.into_iter().zip(self.shift).fold(0, |used, (max, shift)| used | u32::from(max) << shift)
    }

    /// How PIXEL is turned into BGRX.
    pub(crate) fn pixel(&self, map: &ColourMap) -> Unpacker {
        let bytes = usize::from(self.bits_per_pixel / 8);
        let table = |count: u32| Kind::Table((0..count).map(|raw| self.colour(raw)).collect());
        let kind = match (self.colour_bytes(), bytes) {
            (Some([2, 1, 0]), _) => Kind::Same,
            (Some(places), _) => Kind::Bytes(places),
            (None, 1) if !self.true_colour => Kind::Table(map.0.to_vec().into()),
            (None, 1) => table(1 << 8),
            (None, 2) => table(1 << 16),
            (None, _) => Kind::Shifts { format: *self, low: 0 },
        };
        Unpacker { bytes, big_endian: self.big_endian, kind }
    }

    /// How CPIXEL (RFC 6143 §7.7.5) is turned into BGRX: PIXEL, of 32 bits only those three bytes that mean something.
    pub(crate) fn cpixel(&self, map: &ColourMap) -> Unpacker {
        if self.bits_per_pixel != 32 || self.depth > 24 || !self.true_colour {
            return self.pixel(map);
        }
        let low = if self.used() < 1 << 24 {
            0
        } else if self.used().trailing_zeros() >= 8 {
            8
        } else {
            return self.pixel(map);
        };
        let first = usize::from((low == 8) != self.big_endian);
        let kind = match self.colour_bytes() {
            Some(places) => Kind::Bytes(places.map(|place| place - first)),
            None => Kind::Shifts { format: *self, low },
        };
        Unpacker { bytes: 3, big_endian: self.big_endian, kind }
    }

    /// How Tight's TPIXEL is turned into BGRX: red, green and blue if those are bytes in a depth of 24, else PIXEL.
    pub(crate) fn tpixel(&self, map: &ColourMap) -> Unpacker {
        let three = self.true_colour && self.bits_per_pixel == 32 && self.depth == 24 && self.max == [255; 3];
        if !three {
            return self.pixel(map);
        }
        Unpacker { bytes: 3, big_endian: false, kind: Kind::Bytes([0, 1, 2]) }
    }

    /// The colour of a raw pixel value.
    pub(crate) fn colour(&self, raw: u32) -> Bgrx {
        let [red, green, blue] = self.split(raw);
        self.join([red, green, blue])
    }

    /// Red, green and blue of a raw pixel value, each of 0 to its own maximum.
    pub(crate) fn split(&self, raw: u32) -> [u16; 3] {
        std::array::from_fn(|i| (raw >> self.shift[i].min(31)) as u16 & self.max[i])
    }

    /// The colour of red, green and blue of 0 to their own maxima.
    pub(crate) fn join(&self, rgb: [u16; 3]) -> Bgrx {
        let [red, green, blue] = std::array::from_fn(|i| {
            let max = u32::from(self.max[i]).max(1);
            ((u32::from(rgb[i]) * 255 + max / 2) / max) as u8
        });
        [blue, green, red, 0]
    }
}

/// The colours that indices stand for.
#[derive(Clone)]
pub(crate) struct ColourMap([Bgrx; 256]);

impl ColourMap {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|index| [0, 0, 0, index as u8]))
    }

    /// Sets entries from `first` on, of big-endian red, green and blue of 16 bits each.
    ///
    /// # Errors
    /// When the map has no such entries.
    pub(crate) fn set(&mut self, first: u16, colours: &[u8]) -> Result<(), Problem> {
        let colours = colours.chunks_exact(6);
        let end = usize::from(first) + colours.len();
        let entries = self
            .0
            .get_mut(usize::from(first)..end)
            .ok_or_else(|| value("the last entry of the colour map", end as i64 - 1, "at most 255"))?;
        for (entry, colour) in entries.iter_mut().zip(colours) {
            *entry = [colour[4], colour[2], colour[0], entry[3]];
        }
        Ok(())
    }

    /// Recolours pixels that were painted through an earlier state of this map.
    pub(crate) fn recolour(&self, pixels: &mut [Bgrx]) {
        for pixel in pixels {
            *pixel = self.0[usize::from(pixel[3])];
        }
    }
}

/// How pixels of one form are turned into BGRX.
#[derive(Clone)]
pub(crate) struct Unpacker {
    bytes: usize,
    big_endian: bool,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// The wire has BGRX.
    Same,
    /// Red, green and blue are these bytes.
    Bytes([usize; 3]),
    /// Every value's colour.
    Table(Arc<[Bgrx]>),
    /// Colours have to be shifted out of a value that stands `low` bits higher than it was sent.
    Shifts { format: PixelFormat, low: u32 },
}

impl Unpacker {
    /// Bytes of one pixel on the wire: 1 to 4.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The value of one pixel.
    pub(crate) fn raw(&self, wire: &[u8]) -> u32 {
        let shift_in = |raw: u32, byte: &u8| raw << 8 | u32::from(*byte);
        let wire = &wire[..self.bytes];
        if self.big_endian { wire.iter().fold(0, shift_in) } else { wire.iter().rev().fold(0, shift_in) }
    }

    /// One pixel.
    pub(crate) fn one(&self, wire: &[u8]) -> Bgrx {
        match &self.kind {
            Kind::Same => [wire[0], wire[1], wire[2], wire[3]],
            Kind::Bytes([red, green, blue]) => [wire[*blue], wire[*green], wire[*red], 0],
            Kind::Table(colours) => colours[self.raw(wire) as usize],
            Kind::Shifts { format, low } => format.colour(self.raw(wire) << low),
        }
    }

    /// As many pixels as `out` has room for.
    pub(crate) fn many(&self, wire: &[u8], out: &mut [Bgrx]) {
        let wire = &wire[..out.len() * self.bytes];
        match (&self.kind, self.bytes) {
            (Kind::Same, _) => out.as_flattened_mut().copy_from_slice(wire),
            // The orders in use, with constant places that the compiler makes shuffles of.
            (Kind::Bytes([2, 1, 0]), 3) => shuffle::<3, 2, 1, 0>(wire, out),
            (Kind::Bytes([0, 1, 2]), 3) => shuffle::<3, 0, 1, 2>(wire, out),
            (Kind::Bytes([0, 1, 2]), 4) => shuffle::<4, 0, 1, 2>(wire, out),
            (Kind::Bytes([1, 2, 3]), 4) => shuffle::<4, 1, 2, 3>(wire, out),
            (Kind::Table(colours), 1) => {
                for (out, index) in out.iter_mut().zip(wire) {
                    *out = colours[usize::from(*index)];
                }
            }
            _ => {
                for (out, wire) in out.iter_mut().zip(wire.chunks_exact(self.bytes)) {
                    *out = self.one(wire);
                }
            }
        }
    }

    /// A palette of as many pixels as `wire` holds.
    pub(crate) fn palette(&self, wire: &[u8]) -> Vec<Bgrx> {
        wire.chunks_exact(self.bytes).map(|wire| self.one(wire)).collect()
    }
}

fn shuffle<const BYTES: usize, const RED: usize, const GREEN: usize, const BLUE: usize>(wire: &[u8], out: &mut [Bgrx]) {
    let (pixels, _) = wire.as_chunks::<BYTES>();
    for (out, wire) in out.iter_mut().zip(pixels) {
        *out = [wire[BLUE], wire[GREEN], wire[RED], 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOUR: Bgrx = [0x33, 0x22, 0x11, 0];

    fn format(bits: u8, depth: u8, big_endian: bool, max: [u16; 3], shift: [u8; 3]) -> PixelFormat {
        PixelFormat { bits_per_pixel: bits, depth, big_endian, true_colour: true, max, shift }
    }

    type Wire = &'static [u8];

    /// Red 0x11, green 0x22, blue 0x33 in every form.
    #[test]
    fn pixels_of_every_form() {
        let m = [255; 3];
        let bgrx = PixelFormat::BGRX;
        let be = PixelFormat { big_endian: true, ..bgrx };
        let high = format(32, 24, false, m, [24, 16, 8]);
        let high_be = PixelFormat { big_endian: true, ..high };
        let rgbx = format(32, 24, false, m, [0, 8, 16]);
        let deep = PixelFormat { depth: 32, ..bgrx };
        let cases: [(&str, PixelFormat, Wire, Wire, Wire); 6] = [
            ("bgrx", bgrx, &[0x33, 0x22, 0x11, 9], &[0x33, 0x22, 0x11], &[0x11, 0x22, 0x33]),
            ("bgrx, big-endian", be, &[9, 0x11, 0x22, 0x33], &[0x11, 0x22, 0x33], &[0x11, 0x22, 0x33]),
            ("high bytes", high, &[9, 0x33, 0x22, 0x11], &[0x33, 0x22, 0x11], &[0x11, 0x22, 0x33]),
            ("high bytes, big-endian", high_be, &[0x11, 0x22, 0x33, 9], &[0x11, 0x22, 0x33], &[0x11, 0x22, 0x33]),
            ("rgbx", rgbx, &[0x11, 0x22, 0x33, 9], &[0x11, 0x22, 0x33], &[0x11, 0x22, 0x33]),
            ("depth 32", deep, &[0x33, 0x22, 0x11, 9], &[0x33, 0x22, 0x11, 9], &[0x33, 0x22, 0x11, 9]),
        ];
        let map = ColourMap::new();
        for (name, format, pixel, cpixel, tpixel) in cases {
            for (kind, unpacker, wire) in [
                ("PIXEL", format.pixel(&map), pixel),
                ("CPIXEL", format.cpixel(&map), cpixel),
                ("TPIXEL", format.tpixel(&map), tpixel),
            ] {
                assert_eq!(unpacker.bytes(), wire.len(), "{kind} of {name}");
                assert_eq!(unpacker.one(wire)[..3], COLOUR[..3], "{kind} of {name}");
                let mut out = [[0; 4]; 5];
                unpacker.many(&wire.repeat(5), &mut out);
                assert_eq!(out, [unpacker.one(wire); 5], "{kind} of {name}");
            }
        }
    }

    #[test]
    fn colours_of_fewer_bits_span_the_whole_range() {
        let map = ColourMap::new();
        let rgb565 = format(16, 16, false, [31, 63, 31], [11, 5, 0]);
        let rgb332 = format(8, 8, false, [7, 7, 3], [5, 2, 0]);
        let deep30 = format(32, 30, true, [1023; 3], [20, 10, 0]);
        let six = format(32, 18, true, [63; 3], [12, 6, 0]);
        let cases: [(&str, Unpacker, &[u8], Bgrx); 8] = [
            ("565 white", rgb565.pixel(&map), &[0xFF, 0xFF], [255, 255, 255, 0]),
            ("565 red", rgb565.pixel(&map), &[0x00, 0xF8], [0, 0, 255, 0]),
            ("565 big-endian", PixelFormat { big_endian: true, ..rgb565 }.pixel(&map), &[0xF8, 0x00], [0, 0, 255, 0]),
            ("565 has no shorter form", rgb565.cpixel(&map), &[0x10, 0x84], [132, 130, 132, 0]),
            ("332 green", rgb332.pixel(&map), &[0x1C], [0, 255, 0, 0]),
            ("332 blue", rgb332.tpixel(&map), &[0x01], [85, 0, 0, 0]),
            ("ten bits", deep30.cpixel(&map), &[0x3F, 0xF0, 0x00, 0x01], [0, 0, 255, 0]),
            ("18 bits in a CPIXEL", six.cpixel(&map), &[0x03, 0xF0, 0x3F], [255, 0, 255, 0]),
        ];
        for (name, unpacker, wire, expected) in cases {
            assert_eq!((unpacker.bytes(), unpacker.one(wire)), (wire.len(), expected), "{name}");
        }
    }

    #[test]
    fn a_changed_colour_map_recolours() {
        let format = PixelFormat { bits_per_pixel: 8, depth: 8, true_colour: false, ..PixelFormat::BGRX };
        let mut map = ColourMap::new();
        let mut pixels = [format.pixel(&map).one(&[7]), format.pixel(&map).one(&[8])];
        map.set(7, &[0x11, 0, 0x22, 0, 0x33, 0]).unwrap();
        map.recolour(&mut pixels);
        assert_eq!(pixels, [[0x33, 0x22, 0x11, 7], [0, 0, 0, 8]]);
        assert_eq!(format.pixel(&map).one(&[7]), pixels[0]);
        assert!(map.set(255, &[0; 12]).is_err());
    }

    #[test]
    fn formats_survive_the_wire_and_impossible_ones_do_not() {
        let bytes = PixelFormat::BGRX.to_bytes();
        assert_eq!(bytes, [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);
        assert_eq!(PixelFormat::parse(bytes), PixelFormat::BGRX);
        for (place, wrong) in [(0, 24), (0, 0), (3, 0), (10, 25), (11, 255)] {
            let mut bytes = bytes;
            bytes[place] = wrong;
            assert!(PixelFormat::parse(bytes).check().is_err(), "{wrong} at {place}");
        }
    }
}
