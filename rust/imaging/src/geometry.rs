//! Sizes and rectangles in whole pixels, and the one place where lists of rectangles are made short.
//!
//! The rule: `right` and `bottom` are exclusive, and no arithmetic here wraps; a rectangle too large to be real stays too
//! large and fails the bounds check of its user.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Width.
    pub w: u32,
    /// Height.
    pub h: u32,
}

impl Size {
    /// The rectangle of this size at the origin.
    #[must_use]
    pub const fn rect(self) -> Rect {
        Rect { x: 0, y: 0, w: self.w, h: self.h }
    }

    /// Whether there is no pixel in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.w == 0 || self.h == 0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.w, self.h)
    }
}

/// A size that one owner changes and others read at any time.
#[derive(Clone, Debug)]
pub struct SharedSize(Arc<AtomicU64>);

impl SharedSize {
    pub(crate) fn new(size: Size) -> Self {
        let shared = Self(Arc::default());
        shared.set(size);
        shared
    }

    pub(crate) fn set(&self, size: Size) {
        self.0.store(u64::from(size.w) << 32 | u64::from(size.h), Ordering::Relaxed);
    }

    /// The size now.
    #[must_use]
    pub fn get(&self) -> Size {
        let both = self.0.load(Ordering::Relaxed);
        Size { w: (both >> 32) as u32, h: both as u32 }
    }
}

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rect {
    /// Left edge, inclusive.
    pub x: u32,
    /// Top edge, inclusive.
    pub y: u32,
    /// Width.
    pub w: u32,
    /// Height.
    pub h: u32,
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}+{}+{}", self.w, self.h, self.x, self.y)
    }
}

impl Rect {
    /// The rectangle between two corners; empty when they are not in order.
    pub(crate) const fn between(left: u32, top: u32, right: u32, bottom: u32) -> Self {
        Self { x: left, y: top, w: right.saturating_sub(left), h: bottom.saturating_sub(top) }
    }

    /// Right edge, exclusive; saturates.
    #[must_use]
    pub const fn right(self) -> u32 {
        self.x.saturating_add(self.w)
    }

    /// Bottom edge, exclusive; saturates.
    #[must_use]
    pub const fn bottom(self) -> u32 {
        self.y.saturating_add(self.h)
    }

    /// Pixels in it.
    #[must_use]
    pub const fn area(self) -> u64 {
        self.w as u64 * self.h as u64
    }

    /// Width and height alone.
    #[must_use]
    pub const fn size(self) -> Size {
        Size { w: self.w, h: self.h }
    }

    /// Whether there is no pixel in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.w == 0 || self.h == 0
    }

    /// What both have in common, if anything.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        let both = Self::between(
            self.x.max(other.x),
            self.y.max(other.y),
            self.right().min(other.right()),
            self.bottom().min(other.bottom()),
        );
        (!both.is_empty()).then_some(both)
    }

    /// The smallest rectangle that holds both; an empty one adds nothing.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        Self::between(
            self.x.min(other.x),
            self.y.min(other.y),
            self.right().max(other.right()),
            self.bottom().max(other.bottom()),
        )
    }

    /// Whether `other` lies wholly inside.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.x <= other.x && self.y <= other.y && self.right() >= other.right() && self.bottom() >= other.bottom()
    }
}

/// More rectangles than this are no more useful than a coarser list.
const MAX_RECTS: usize = 64;

/// Above this many, rectangles are gathered by place before they are compared pairwise.
const MAX_COMPARED: usize = 512;

/// Cells per side when gathering by place; its square is the most rectangles that remain.
const GRID: u32 = 8;

/// Makes a list of rectangles short: at most 64, in reading order, covering all pixels that the given ones cover.
///
/// Two are united when their union is at most a quarter larger than both together. That includes two that touch along a
/// whole side, and one inside the other. Lists that stay too long are gathered on a coarse grid.
#[must_use]
pub fn merge(mut rects: Vec<Rect>) -> Vec<Rect> {
    rects.retain(|rect| !rect.is_empty());
    if rects.len() > MAX_COMPARED {
        rects = gather(&rects);
    }
    let mut merged = unite(rects);
    if merged.len() > MAX_RECTS {
        merged = unite(gather(&merged));
    }
    merged.sort_unstable_by_key(|rect| (rect.y, rect.x));
    merged
}

/// Unites pairs until no pair is worth uniting. Every union removes one rectangle, so it is quadratic, not cubic.
fn unite(mut waiting: Vec<Rect>) -> Vec<Rect> {
    waiting.reverse();
    let mut settled: Vec<Rect> = Vec::with_capacity(waiting.len());
    while let Some(rect) = waiting.pop() {
        match settled.iter().rposition(|other| worth_uniting(rect, *other)) {
            Some(i) => waiting.push(settled.swap_remove(i).union(rect)),
            None => settled.push(rect),
        }
    }
    settled
}

fn worth_uniting(a: Rect, b: Rect) -> bool {
    // Four times a full-range area does not fit 64 bits.
    4 * u128::from(a.union(b).area()) <= 5 * (u128::from(a.area()) + u128::from(b.area()))
}

/// Unites all rectangles whose top left corners fall in the same cell of a grid laid over the whole list.
fn gather(rects: &[Rect]) -> Vec<Rect> {
    let Some(whole) = rects.iter().copied().reduce(Rect::union) else {
        return Vec::new();
    };
    let cell = |offset: u32, extent: u32| u64::from(offset) * u64::from(GRID) / u64::from(extent);
    let mut cells = [None::<Rect>; (GRID * GRID) as usize];
    for rect in rects {
        let index = cell(rect.y - whole.y, whole.h) * u64::from(GRID) + cell(rect.x - whole.x, whole.w);
        let slot = &mut cells[index as usize];
        *slot = Some(slot.map_or(*rect, |held| held.union(*rect)));
    }
    cells.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rect(x: u32, y: u32, w: u32, h: u32) -> Rect {
        Rect { x, y, w, h }
    }

    #[test]
    fn huge_rectangles_do_not_wrap() {
        let huge = rect(u32::MAX - 1, 5, u32::MAX, u32::MAX);
        assert_eq!((huge.right(), huge.bottom()), (u32::MAX, u32::MAX));
        assert!(!rect(0, 0, 100, 100).contains(huge));
        assert_eq!(merge(vec![huge, huge]), [huge.union(huge)]);
    }

    #[test]
    fn intersection_and_union() {
        let cases = [
            (rect(0, 0, 4, 4), rect(2, 2, 4, 4), Some(rect(2, 2, 2, 2)), rect(0, 0, 6, 6)),
            (rect(0, 0, 2, 2), rect(2, 0, 2, 2), None, rect(0, 0, 4, 2)),
            (rect(3, 3, 0, 5), rect(1, 1, 9, 9), None, rect(1, 1, 9, 9)),
        ];
        for (a, b, intersection, union) in cases {
            assert_eq!(a.intersect(b), intersection);
            assert_eq!(b.intersect(a), intersection);
            assert_eq!(a.union(b), union);
        }
    }

    #[test]
    fn merge_table() {
        let cases: [(&str, Vec<Rect>, Vec<Rect>); 6] = [
            ("nothing", vec![], vec![]),
            ("empty", vec![rect(5, 5, 0, 9)], vec![]),
            ("side by side", vec![rect(8, 0, 8, 8), rect(0, 0, 8, 8)], vec![rect(0, 0, 16, 8)]),
            ("one inside", vec![rect(0, 0, 90, 90), rect(7, 7, 1, 1)], vec![rect(0, 0, 90, 90)]),
            ("far apart", vec![rect(500, 0, 8, 8), rect(0, 0, 8, 8)], vec![rect(0, 0, 8, 8), rect(500, 0, 8, 8)]),
            (
                "a chain that only unites after another union",
                vec![rect(0, 0, 8, 8), rect(8, 8, 8, 8), rect(8, 0, 8, 8), rect(0, 8, 8, 8)],
                vec![rect(0, 0, 16, 16)],
            ),
        ];
        for (name, given, expected) in cases {
            assert_eq!(merge(given), expected, "{name}");
        }
    }

    #[test]
    fn many_rectangles_are_capped_and_still_covered() {
        let specks: Vec<Rect> = (0..10_000).map(|i| rect(i % 100 * 19, i / 100 * 10, 1, 1)).collect();
        let merged = merge(specks.clone());
        assert!(merged.len() <= MAX_RECTS);
        assert!(specks.iter().all(|speck| merged.iter().any(|m| m.contains(*speck))));
    }
}
