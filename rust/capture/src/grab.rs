//! Pixels of the root window: shared memory by file descriptor, else by segment id, else copied through the socket.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use imaging::{Patch, Rect};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::cookie::Cookie;
use x11rb::protocol::shm::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, GetImageReply, ImageFormat};

use crate::conn::Conn;
use crate::error::{Error, Result};
use crate::replies;
use crate::server::Server;

const BYTES_PER_PIXEL: usize = 4;
const ALL_PLANES: u32 = !0;
/// Bigger than this, a `GetImage` reply may exceed what a server sends in one piece.
const SOCKET_BYTES: usize = 2 << 20;

/// A half of the shared memory. The server writes one while we read the other; both stay in the processor's caches.
const HALF: usize = 2 << 20;

/// How pixels come from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// MIT-SHM 1.2, segment made here and passed as a file descriptor: also crosses container boundaries.
    SharedFd,
    /// MIT-SHM 1.1, System V segment: same IPC namespace only.
    SharedId,
    /// `GetImage` through the socket.
    Socket,
}

/// Memory that the X server writes and we read.
struct Segment {
    seg: shm::Seg,
    address: NonNull<u8>,
    detach: fn(NonNull<u8>),
}

// SAFETY: the mapping belongs to this value alone and is only read through `&self` methods below.
unsafe impl Send for Segment {}

impl Segment {
    const LEN: usize = 2 * HALF;

    fn shared_fd(server: &Server) -> Result<Self> {
        // Only a socket of this machine carries descriptors.
        if !server.conn.stream().is_unix() {
            return Err(Error::Unsupported("the server is reached through a network".into()));
        }
        let failed = |errno| Error::Unsupported(format!("shared memory cannot be made: {errno}"));
        let fd = sealed(Self::LEN as u64).map_err(failed)?;
        // SAFETY: a new private address range is asked for. The file is as long and stays so: it is sealed.
        let address =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), Self::LEN, ProtFlags::READ, MapFlags::SHARED, &fd, 0) }
                .map_err(failed)?;
        let address = NonNull::new(address.cast()).expect("mmap never returns null");
        let seg = server.conn.generate_id()?;
        let segment = Self {
            seg,
            address,
            detach: |address| {
                // SAFETY: exactly the range that mmap returned, unmapped once, in Drop.
                let _ = unsafe { rustix::mm::munmap(address.as_ptr().cast(), Self::LEN) };
            },
        };
        server.conn.shm_attach_fd(seg, fd, false)?.check()?;
        Ok(segment)
    }

    fn shared_id(server: &Server) -> Result<Self> {
        let seg = server.conn.generate_id()?;
        // SAFETY: plain system calls; their results are checked before use.
        let (id, address) = unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, Self::LEN, libc::IPC_CREAT | 0o600);
            if id < 0 {
                return Err(Error::Unsupported(format!("shmget: {}", std::io::Error::last_os_error())));
            }
            (id, libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY))
        };
        let attached = if address as isize == -1 {
            Err(Error::Unsupported(format!("shmat: {}", std::io::Error::last_os_error())))
        } else {
            shm::attach(&server.conn, seg, id as u32, false).map_err(Error::from).and_then(|cookie| Ok(cookie.check()?))
        };
        // Marked for removal at once: the kernel frees it with its last user, however that one ends.
        // SAFETY: `id` is ours.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        attached?;
        let address = NonNull::new(address.cast()).expect("shmat never returns null");
        Ok(Self {
            seg,
            address,
            detach: |address| {
                // SAFETY: the address that shmat returned, detached once, in Drop.
                unsafe { libc::shmdt(address.as_ptr().cast()) };
            },
        })
    }

    /// Asks for `rects`, which fit a half, into that half from `offset` on; returns where each will be.
    fn request<'a>(&self, server: &'a Server, rects: &[Rect], mut offset: usize) -> Result<Vec<Requested<'a>>> {
        let mut requested = Vec::with_capacity(rects.len());
        for &rect in rects {
            let cookie = server.conn.shm_get_image(
                server.root,
                rect.x as i16,
                rect.y as i16,
                rect.w as u16,
                rect.h as u16,
                ALL_PLANES,
                ImageFormat::Z_PIXMAP.into(),
                self.seg,
                offset as u32,
            )?;
            let end = offset + byte_len(rect);
            requested.push((rect, offset..end, cookie));
            offset = end;
        }
        server.conn.flush()?;
        Ok(requested)
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= Self::LEN);
        // SAFETY: the range is within what is mapped for as long as `self` lives. The server writes into a half only while it
        // answers requests for that half, in the order that they were sent in; here, all of them have been answered, and the
        // next are sent when no code reads the half any more. A hostile server may write at any time: the
        // bytes are only compared and copied, and no place in memory is computed from them that is not checked.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr().add(range.start), range.len()) }
    }
}

/// Memory as a file that no process can make shorter: reading a part that was cut off would end this process.
fn sealed(len: u64) -> rustix::io::Result<OwnedFd> {
    let fd = memfd_create("deskhand", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, len)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// Requested pixels, and their place.
type Requested<'a> = (Rect, Range<usize>, Cookie<'a, Conn, shm::GetImageReply>);

impl Drop for Segment {
    fn drop(&mut self) {
        (self.detach)(self.address);
    }
}

/// Reads regions of the screen, whatever the method.
pub struct Grabber {
    method: Method,
    segment: Option<Segment>,
    reasons: Vec<String>,
}

impl Grabber {
    /// The fastest method that works, or `only` that one; [`Grabber::reasons`] says why no faster one is in use.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when `only` does not work here, [`Error::Lost`].
    pub fn new(server: &Server, only: Option<Method>) -> Result<Self> {
        if !server.bgrx {
            return Err(Error::Unsupported(format!(
                "the screen of {} is not 24 bit colour in 32 bit little-endian pixels with blue first: start it with depth 24 \
                 (Xvnc: -pixelformat rgb888)",
                server.display
            )));
        }
        let mut reasons = Vec::new();
        let has_shm = server.conn.extension_information(shm::X11_EXTENSION_NAME)?.is_some();
        let version = if has_shm { Some(server.conn.shm_query_version()?.reply()?) } else { None };
        for method in [Method::SharedFd, Method::SharedId] {
            if only.is_some_and(|wanted| wanted != method) {
                continue;
            }
            let made = match (&version, method) {
                (None, _) => Err(Error::Unsupported("the server has no MIT-SHM".into())),
                (Some(version), Method::SharedFd) if (version.major_version, version.minor_version) < (1, 2) => {
                    Err(Error::Unsupported("the server's MIT-SHM is older than 1.2".into()))
                }
                (_, Method::SharedFd) => Segment::shared_fd(server),
                _ => Segment::shared_id(server),
            };
            match made {
                Ok(segment) => return Ok(Self { method, segment: Some(segment), reasons }),
                Err(error) if error.is_fatal() || error.is_ours() => return Err(error),
                Err(error) if only.is_some() => return Err(error),
                Err(error) => reasons.push(format!("{method:?}: {error}")),
            }
        }
        Ok(Self { method: Method::Socket, segment: None, reasons })
    }

    /// Why each faster method is not in use.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// The method in use.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Hands the pixels of `rects` (inside the screen, disjoint), piece by piece, to `take`: while it works on some, the server
    /// writes the next.
    ///
    /// # Errors
    ///
    /// [`Error::Request`] when the screen has just become smaller than `rects`; [`Error::Lost`]; what `take` returns.
    pub fn read(&self, server: &Server, rects: &[Rect], mut take: impl FnMut(&Patch<'_>) -> Result<()>) -> Result<()> {
        let Some(segment) = &self.segment else {
            return read_socket(server, rects, take);
        };
        let mut batches = batches(rects, HALF);
        // After the last one there is nothing left to request.
        batches.push(Vec::new());
        let mut requested: Vec<Requested<'_>> = Vec::new();
        for (batch, half) in batches.iter().zip([0, HALF].into_iter().cycle()) {
            let mut arrived = Vec::with_capacity(requested.len());
            for (rect, range, cookie) in requested {
                cookie.reply()?;
                arrived.push((rect, range));
            }
            requested = segment.request(server, batch, half)?;
            for (rect, range) in arrived {
                take(&patch(rect, segment.bytes(range)))?;
            }
        }
        Ok(())
    }
}

fn read_socket(server: &Server, rects: &[Rect], mut take: impl FnMut(&Patch<'_>) -> Result<()>) -> Result<()> {
    let mut requested: Option<(Rect, Cookie<'_, Conn, GetImageReply>)> = None;
    let pieces = batches(rects, SOCKET_BYTES).concat();
    // The server sends one piece while we take the one before it.
    for rect in pieces.into_iter().map(Some).chain([None]) {
        let next = match rect {
            Some(rect) => {
                let cookie = server.conn.get_image(
                    ImageFormat::Z_PIXMAP,
                    server.root,
                    rect.x as i16,
                    rect.y as i16,
                    rect.w as u16,
                    rect.h as u16,
                    ALL_PLANES,
                )?;
                server.conn.flush()?;
                Some((rect, cookie))
            }
            None => None,
        };
        if let Some((rect, cookie)) = std::mem::replace(&mut requested, next) {
            take(&patch(rect, &replies::pixels(rect, cookie.reply()?.data)?))?;
        }
    }
    Ok(())
}

fn byte_len(rect: Rect) -> usize {
    rect.area() as usize * BYTES_PER_PIXEL
}

fn patch(rect: Rect, pixels: &[u8]) -> Patch<'_> {
    Patch { rect, pixels, stride: rect.w as usize * BYTES_PER_PIXEL }
}

/// Cuts rectangles, between rows, in batches of at most this many bytes, which a row never exceeds.
fn batches(rects: &[Rect], most: usize) -> Vec<Vec<Rect>> {
    let (mut batches, mut batch, mut room) = (Vec::new(), Vec::new(), most);
    for rect in rects {
        let row = rect.w as usize * BYTES_PER_PIXEL;
        let mut y = rect.y;
        while y < rect.bottom() {
            if room < row {
                batches.push(std::mem::take(&mut batch));
                room = most;
            }
            let piece = Rect { y, h: ((room / row) as u32).min(rect.bottom() - y), ..*rect };
            batch.push(piece);
            (y, room) = (piece.bottom(), room - byte_len(piece));
        }
    }
    batches.push(batch);
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_every_row_once() {
        let (wide, small) = (Rect { x: 3, y: 5, w: 100, h: 50 }, Rect { x: 0, y: 60, w: 20, h: 2 });
        let cases = [
            (vec![], vec![vec![]]),
            (vec![small, small], vec![vec![(60, 2), (60, 2)]]),
            (vec![wide], vec![vec![(5, 20)], vec![(25, 20)], vec![(45, 10)]]),
            (vec![small, wide, small], vec![vec![(60, 2), (5, 19)], vec![(24, 20)], vec![(44, 11), (60, 2)]]),
        ];
        for (rects, expected) in cases {
            let rows = |batch: &Vec<Rect>| batch.iter().map(|piece| (piece.y, piece.h)).collect();
            let found: Vec<Vec<(u32, u32)>> = batches(&rects, 8000).iter().map(rows).collect();
            assert_eq!(found, expected);
        }
    }
}
