//! Encoders as plain as can be, to be decoded again. They share no code with the crate.

use imaging::Rect;
use rfb::PixelFormat;
use zlib_rs::{Deflate, DeflateFlush};

/// A zlib stream that goes on from piece to piece.
pub struct Deflater(Deflate);

impl Deflater {
    pub fn new() -> Self {
        Self(Deflate::new(6, true, 15))
    }

    /// Deflates data to its end.
    pub fn piece(&mut self, data: &[u8]) -> Vec<u8> {
        let mut out = vec![0; data.len() * 2 + 256];
        let before = self.0.total_out();
        self.0.compress(data, &mut out, DeflateFlush::SyncFlush).unwrap();
        out.truncate((self.0.total_out() - before) as usize);
        out
    }
}

/// Data as the first piece of a stream.
pub fn deflated(data: &[u8]) -> Vec<u8> {
    Deflater::new().piece(data)
}

/// Numbers that look random.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Raw pixel values of a rectangle.
#[derive(Clone, Debug)]
pub struct Picture {
    pub w: usize,
    pub h: usize,
    pub raw: Vec<u32>,
}

impl Picture {
    fn cut(&self, x: usize, y: usize, w: usize, h: usize) -> Self {
        let raw = (y..y + h).flat_map(|y| self.raw[y * self.w + x..][..w].to_vec()).collect();
        Self { w, h, raw }
    }

    fn tiles(&self, side: usize) -> Vec<Self> {
        let mut tiles = Vec::new();
        for y in (0..self.h).step_by(side) {
            for x in (0..self.w).step_by(side) {
                tiles.push(self.cut(x, y, side.min(self.w - x), side.min(self.h - y)));
            }
        }
        tiles
    }

    fn colours(&self) -> Vec<u32> {
        let mut colours = Vec::new();
        for raw in &self.raw {
            if !colours.contains(raw) {
                colours.push(*raw);
            }
        }
        colours
    }

    /// Rectangles of one colour besides the background: pieces of rows.
    fn rects(&self, background: u32) -> Vec<(u32, [usize; 4])> {
        let mut rects: Vec<(u32, [usize; 4])> = Vec::new();
        for (i, raw) in self.raw.iter().enumerate() {
            let (x, y) = (i % self.w, i / self.w);
            match rects.last_mut() {
                Some((colour, [left, top, w, _])) if colour == raw && *top == y && *left + *w == x => *w += 1,
                _ if *raw == background => {}
                _ => rects.push((*raw, [x, y, 1, 1])),
            }
        }
        rects
    }

    /// Runs of one colour over the ends of rows.
    fn runs(&self) -> Vec<(u32, usize)> {
        let mut runs: Vec<(u32, usize)> = Vec::new();
        for raw in &self.raw {
            match runs.last_mut() {
                Some((colour, run)) if colour == raw => *run += 1,
                _ => runs.push((*raw, 1)),
            }
        }
        runs
    }
}

/// How pixels are written.
#[derive(Clone, Copy)]
pub struct Form(pub PixelFormat);

impl Form {
    /// All bits of a pixel that mean something.
    pub fn mask(self) -> u32 {
        if !self.0.true_colour {
            return 255;
        }
        (0..3).map(|i| u32::from(self.0.max[i]) << self.0.shift[i]).fold(0, |a, b| a | b)
    }

    pub fn pixel(self, raw: u32) -> Vec<u8> {
        let bytes = usize::from(self.0.bits_per_pixel / 8);
        if self.0.big_endian { raw.to_be_bytes()[4 - bytes..].to_vec() } else { raw.to_le_bytes()[..bytes].to_vec() }
    }

    pub fn cpixel(self, raw: u32) -> Vec<u8> {
        let mut bytes = self.pixel(raw);
        if self.0.bits_per_pixel == 32 && self.0.depth <= 24 && self.0.true_colour {
            // The byte without meaning is the most significant one, or the least.
            let useless_first = (self.mask() < 1 << 24) == self.0.big_endian;
            bytes.remove(if useless_first { 0 } else { 3 });
        }
        bytes
    }

    pub fn tpixel(self, raw: u32) -> Vec<u8> {
        if self.0.bits_per_pixel == 32 && self.0.depth == 24 && self.0.max == [255; 3] {
            return self.0.shift.map(|shift| (raw >> shift) as u8).to_vec();
        }
        self.pixel(raw)
    }

    /// 0xRRGGBB.
    pub fn colour(self, raw: u32) -> u32 {
        let scaled = |i: usize| {
            let max = f64::from(self.0.max[i]);
            (f64::from(raw >> self.0.shift[i] & u32::from(self.0.max[i])) * 255.0 / max).round() as u32
        };
        scaled(0) << 16 | scaled(1) << 8 | scaled(2)
    }
}

/// The server's side of a session: what its encoders remember.
pub struct Encoder {
    pub form: Form,
    zlib: Deflater,
    zrle: Deflater,
    tight: [Deflater; 4],
}

impl Encoder {
    pub fn new(format: PixelFormat) -> Self {
        let new = Deflater::new;
        Self { form: Form(format), zlib: new(), zrle: new(), tight: [new(), new(), new(), new()] }
    }

    /// The data of a rectangle in the encoding of that number.
    pub fn encode(&mut self, encoding: i32, picture: &Picture, dice: &mut Dice) -> Vec<u8> {
        match encoding {
            0 => self.raw(picture),
            5 => self.hextile(picture, dice),
            6 => {
                let raw = self.raw(picture);
                counted(&self.zlib.piece(&raw))
            }
            7 => self.tight(picture, dice),
            16 => {
                let tiles = picture.tiles(64).iter().flat_map(|tile| zrle(self.form, tile, dice)).collect::<Vec<_>>();
                counted(&self.zrle.piece(&tiles))
            }
            _ => unreachable!("encoding {encoding}"),
        }
    }

    fn raw(&self, picture: &Picture) -> Vec<u8> {
        picture.raw.iter().flat_map(|raw| self.form.pixel(*raw)).collect()
    }

    fn hextile(&self, picture: &Picture, dice: &mut Dice) -> Vec<u8> {
        let mut out = Vec::new();
        let mut before: Option<u32> = None;
        for tile in picture.tiles(16) {
            let background = tile.raw[dice.below(tile.raw.len())];
            let rects = tile.rects(background);
            if rects.len() > 255 || dice.below(5) == 0 {
                out.push(1);
                out.extend(self.raw(&tile));
                before = None;
                continue;
            }
            let mono = rects.windows(2).all(|pair| pair[0].0 == pair[1].0) && dice.below(3) > 0;
            let mut mask = 0;
            let mut head = Vec::new();
            if before != Some(background) {
                mask |= 2;
                head.extend(self.form.pixel(background));
            }
            before = Some(background);
            if let (Some((colour, _)), true) = (rects.first(), mono) {
                mask |= 4;
                head.extend(self.form.pixel(*colour));
            }
            if !rects.is_empty() {
                mask |= if mono { 8 } else { 8 | 16 };
                head.push(rects.len() as u8);
            }
            out.push(mask);
            out.extend(head);
            for (colour, [x, y, w, h]) in rects {
                if !mono {
                    out.extend(self.form.pixel(colour));
                }
                out.extend([(x << 4 | y) as u8, ((w - 1) << 4 | (h - 1)) as u8]);
            }
        }
        out
    }

    fn tight(&mut self, picture: &Picture, dice: &mut Dice) -> Vec<u8> {
        let form = self.form;
        let colours = picture.colours();
        if colours.len() == 1 && dice.below(2) == 0 {
            return [vec![0x80], form.tpixel(colours[0])].concat();
        }
        let stream = dice.below(4);
        let control = (stream << 4) as u8;
        let gradient = form.0.true_colour && form.0.bits_per_pixel > 8 && dice.below(2) == 0;
        let (mut out, data) = if colours.len() <= 256 && dice.below(2) == 0 {
            let mut out = vec![control | 0x40, 1, (colours.len() - 1) as u8];
            out.extend(colours.iter().flat_map(|raw| form.tpixel(*raw)));
            let indices: Vec<u8> =
                picture.raw.iter().map(|raw| colours.iter().position(|c| c == raw).unwrap() as u8).collect();
            let data = if colours.len() <= 2 { packed(&indices, picture.w, 1) } else { indices };
            (out, data)
        } else if gradient {
            (vec![control | 0x40, 2], differences(form, picture))
        } else {
            let head = if dice.below(2) == 0 { vec![control] } else { vec![control | 0x40, 0] };
            (head, picture.raw.iter().flat_map(|raw| form.tpixel(*raw)).collect())
        };
        if data.len() < 12 {
            out.extend(data);
            return out;
        }
        if dice.below(8) == 0 {
            out[0] |= 1 << stream;
            self.tight[stream] = Deflater::new();
        }
        let data = self.tight[stream].piece(&data);
        let len = data.len();
        match len {
            0..128 => out.push(len as u8),
            128..16_384 => out.extend([len as u8 | 128, (len >> 7) as u8]),
            _ => out.extend([len as u8 | 128, (len >> 7) as u8 | 128, (len >> 14) as u8]),
        }
        out.extend(data);
        out
    }
}

fn counted(data: &[u8]) -> Vec<u8> {
    [&(data.len() as u32).to_be_bytes(), data].concat()
}

/// Indices in fields of `bits` bits, each row beginning with a byte of its own.
fn packed(indices: &[u8], width: usize, bits: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for row in indices.chunks(width) {
        for few in row.chunks(8 / bits) {
            let mut byte = 0;
            for (place, index) in few.iter().enumerate() {
                byte |= index << (8 - bits * (place + 1));
            }
            out.push(byte);
        }
    }
    out
}

fn zrle(form: Form, tile: &Picture, dice: &mut Dice) -> Vec<u8> {
    let colours = tile.colours();
    let palette = || colours.iter().flat_map(|raw| form.cpixel(*raw)).collect::<Vec<_>>();
    let index = |raw: &u32| colours.iter().position(|colour| colour == raw).unwrap() as u8;
    let length = |run: usize, out: &mut Vec<u8>| {
        out.extend(std::iter::repeat_n(255, (run - 1) / 255));
        out.push(((run - 1) % 255) as u8);
    };
    let choice = dice.below(4);
    let mut out = Vec::new();
    if colours.len() == 1 && choice > 0 {
        out.push(1);
        out.extend(form.cpixel(colours[0]));
    } else if (2..=16).contains(&colours.len()) && choice == 1 {
        out.push(colours.len() as u8);
        out.extend(palette());
        let indices: Vec<u8> = tile.raw.iter().map(index).collect();
        let bits = [1, 1, 1, 2, 2].get(colours.len()).copied().unwrap_or(4);
        out.extend(packed(&indices, tile.w, bits));
    } else if (2..=127).contains(&colours.len()) && choice == 2 {
        out.push(128 + colours.len() as u8);
        out.extend(palette());
        for (raw, run) in tile.runs() {
            if run == 1 {
                out.push(index(&raw));
            } else {
                out.push(index(&raw) | 128);
                length(run, &mut out);
            }
        }
    } else if choice == 3 {
        out.push(128);
        for (raw, run) in tile.runs() {
            out.extend(form.cpixel(raw));
            length(run, &mut out);
        }
    } else {
        out.push(0);
        out.extend(tile.raw.iter().flat_map(|raw| form.cpixel(*raw)));
    }
    out
}

/// What Tight's gradient filter makes of pixels.
fn differences(form: Form, picture: &Picture) -> Vec<u8> {
    let sample = |x: isize, y: isize, i: usize| {
        if x < 0 || y < 0 {
            return 0;
        }
        (picture.raw[y as usize * picture.w + x as usize] >> form.0.shift[i] & u32::from(form.0.max[i])) as i32
    };
    let mut out = Vec::new();
    for y in 0..picture.h as isize {
        for x in 0..picture.w as isize {
            let raw = (0..3).fold(0, |raw, i| {
                let max = i32::from(form.0.max[i]);
                let guess = (sample(x - 1, y, i) + sample(x, y - 1, i) - sample(x - 1, y - 1, i)).clamp(0, max);
                raw | ((sample(x, y, i) - guess) & max).cast_unsigned() << form.0.shift[i]
            });
            out.extend(form.tpixel(raw));
        }
    }
    out
}

/// Where a rectangle is, for those who paint the same by hand.
pub fn paint(screen: &mut [u32], width: usize, rect: Rect, picture: &Picture, form: Form) {
    for (i, raw) in picture.raw.iter().enumerate() {
        let (x, y) = (rect.x as usize + i % picture.w, rect.y as usize + i / picture.w);
        screen[y * width + x] = form.colour(*raw);
    }
}
