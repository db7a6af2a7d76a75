//! Memory that a look takes, counted: it follows what changed.
//!
//! One test in a file of its own, because the counter sees every thread of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use imaging::{Patch, Rect, Screen, Size, View};

struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised to us.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn taken<T>(work: impl FnOnce() -> T) -> usize {
    let before = TAKEN.load(Ordering::Relaxed);
    work();
    TAKEN.load(Ordering::Relaxed) - before
}

const SIZE: Size = Size { w: 1920, h: 1080 };
const FRAME: usize = 1920 * 1080 * 4;
const STRIP: usize = 1920 * 3 * 32;

fn paint(screen: &mut Screen, rect: Rect, shade: u8) {
    let pixels = vec![shade; (rect.area() * 4) as usize];
    screen.update(&[Patch { rect, pixels: &pixels, stride: rect.w as usize * 4 }], 0.0).unwrap();
}

#[test]
fn memory_follows_what_changed() {
    let mut screen = Screen::new(SIZE);
    paint(&mut screen, SIZE.rect(), 90);
    let pixels = vec![90; FRAME];
    let view = View::default();
    let everything = taken(|| screen.png(&view).unwrap());
    assert!(everything > STRIP, "the counter counts: {everything}");

    let unchanged = taken(|| screen.png(&view).unwrap());
    assert!(unchanged < 2048, "an unchanged screen took {unchanged} bytes");
    let compared =
        taken(|| screen.update(&[Patch { rect: SIZE.rect(), pixels: &pixels, stride: 1920 * 4 }], 0.0).unwrap());
    assert!(compared < 2048, "comparing equal frames took {compared} bytes");

    paint(&mut screen, Rect { x: 5, y: 40, w: 700, h: 14 }, 200);
    let line = taken(|| screen.png(&view).unwrap());
    assert!(line < 16 * 1024, "a changed line took {line} bytes: the buffers of the first look were not used again");

    let mut rgb = vec![0; FRAME / 4 * 3];
    let copied = taken(|| screen.rgb_into(&view, &mut rgb).unwrap());
    assert!(copied < 4096, "RGB in place took {copied} bytes");

    screen.rest();
    paint(&mut screen, Rect { x: 5, y: 40, w: 700, h: 14 }, 100);
    assert!(taken(|| screen.png(&view).unwrap()) > STRIP, "nothing had been given back");
}
