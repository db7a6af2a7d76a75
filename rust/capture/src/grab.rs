//! Pixels of the root window: shared memory by file descriptor, else by segment id, else copied through the socket.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use imaging::{Patch, Rect, Size};
use rustix::mm::{MapFlags, ProtFlags};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::shm::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, ImageFormat};

use crate::error::{Error, Result};
use crate::server::Server;

const BYTES_PER_PIXEL: usize = 4;
const ALL_PLANES: u32 = !0;
/// Bigger than this, a `GetImage` reply may exceed what a server sends in one piece.
const SOCKET_ROWS: u32 = 256;

/// How pixels come from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// MIT-SHM 1.2, segment passed as a file descriptor: also crosses container boundaries.
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
    len: usize,
    detach: fn(NonNull<u8>, usize),
}

// SAFETY: the mapping belongs to this value alone and is only read through `&self` methods below.
unsafe impl Send for Segment {}

impl Segment {
    fn shared_fd(server: &Server, len: usize) -> Result<Self> {
        let seg = server.conn.generate_id()?;
        let reply = server.conn.shm_create_segment(seg, len as u32, false)?.reply()?;
        let fd: OwnedFd = reply.shm_fd;
        // SAFETY: a new private address range is asked for, of the length the server was asked to give the segment.
        let address = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &fd, 0) }
            .map_err(|errno| Error::Unsupported(format!("shared memory cannot be mapped: {errno}")))?;
        let address = NonNull::new(address.cast()).expect("mmap never returns null");
        Ok(Self {
            seg,
            address,
            len,
            detach: |address, len| {
                // SAFETY: exactly the range that mmap returned, unmapped once, in Drop.
                let _ = unsafe { rustix::mm::munmap(address.as_ptr().cast(), len) };
            },
        })
    }

    fn shared_id(server: &Server, len: usize) -> Result<Self> {
        let seg = server.conn.generate_id()?;
        // SAFETY: plain system calls; their results are checked before use.
        let (id, address) = unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, len, libc::IPC_CREAT | 0o600);
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
            len,
            detach: |address, _| {
                // SAFETY: the address that shmat returned, detached once, in Drop.
                unsafe { libc::shmdt(address.as_ptr().cast()) };
            },
        })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `address..address + len` is mapped for as long as `self` lives. The server writes into it only while it
        // answers a ShmGetImage of ours, and all of those have been answered when this is called.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        (self.detach)(self.address, self.len);
    }
}

/// Reads regions of the screen, whatever the method.
pub struct Grabber {
    method: Method,
    segment: Option<Segment>,
    size: Size,
    reasons: Vec<String>,
}

impl Grabber {
    /// The fastest method that works, or `only` that one; [`Grabber::reasons`] tells why not a faster one.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when `only` does not work here, [`Error::Lost`].
    pub fn new(server: &Server, size: Size, only: Option<Method>) -> Result<Self> {
        if !server.bgrx {
            return Err(Error::Unsupported(format!(
                "the screen of {} is not 24 bit colour in 32 bit little-endian pixels: start it with depth 24",
                server.display
            )));
        }
        let len = size.w as usize * size.h as usize * BYTES_PER_PIXEL;
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
                (_, Method::SharedFd) => Segment::shared_fd(server, len),
                _ => Segment::shared_id(server, len),
            };
            match made {
                Ok(segment) => return Ok(Self { method, segment: Some(segment), size, reasons }),
                Err(error @ (Error::Lost(_) | Error::Interrupted)) => return Err(error),
                Err(error) if only.is_some() => return Err(error),
                Err(error) => reasons.push(format!("{method:?}: {error}")),
            }
        }
        Ok(Self { method: Method::Socket, segment: None, size, reasons })
    }

    /// Gives the segment back to the server; the memory itself goes with this value.
    pub fn detach(&self, server: &Server) {
        if let Some(segment) = &self.segment {
            // A connection that is gone has given it back already.
            let _ = server.conn.shm_detach(segment.seg);
        }
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

    /// Hands the pixels of `rects` (inside the screen, disjoint) to `use_patches`, all at once.
    ///
    /// # Errors
    ///
    /// [`Error::Request`] when the screen has just become smaller than `rects`; [`Error::Lost`].
    pub fn read<T>(
        &self,
        server: &Server,
        rects: &[Rect],
        use_patches: impl FnOnce(&[Patch<'_>]) -> Result<T>,
    ) -> Result<T> {
        let Some(segment) = &self.segment else {
            return read_socket(server, rects, use_patches);
        };
        let needed: u64 = rects.iter().map(|rect| rect.area()).sum();
        if needed > u64::from(self.size.w) * u64::from(self.size.h) {
            let whole = [Rect { x: 0, y: 0, w: self.size.w, h: self.size.h }];
            return self.read(server, &whole, use_patches);
        }
        let mut offset = 0_usize;
        let mut cookies = Vec::with_capacity(rects.len());
        let mut offsets = Vec::with_capacity(rects.len());
        for rect in rects {
            offsets.push(offset);
            cookies.push(server.conn.shm_get_image(
                server.root,
                rect.x as i16,
                rect.y as i16,
                rect.w as u16,
                rect.h as u16,
                ALL_PLANES,
                ImageFormat::Z_PIXMAP.into(),
                segment.seg,
                offset as u32,
            )?);
            offset += rect.w as usize * rect.h as usize * BYTES_PER_PIXEL;
        }
        for cookie in cookies {
            cookie.reply()?;
        }
        let bytes = segment.bytes();
        let patches: Vec<Patch<'_>> = rects
            .iter()
            .zip(offsets)
            .map(|(&rect, offset)| Patch { rect, pixels: &bytes[offset..], stride: rect.w as usize * BYTES_PER_PIXEL })
            .collect();
        use_patches(&patches)
    }
}

fn read_socket<T>(server: &Server, rects: &[Rect], use_patches: impl FnOnce(&[Patch<'_>]) -> Result<T>) -> Result<T> {
    let mut pieces = Vec::new();
    for rect in rects {
        let mut y = rect.y;
        while y < rect.bottom() {
            let piece = Rect { x: rect.x, y, w: rect.w, h: SOCKET_ROWS.min(rect.bottom() - y) };
            let cookie = server.conn.get_image(
                ImageFormat::Z_PIXMAP,
                server.root,
                piece.x as i16,
                piece.y as i16,
                piece.w as u16,
                piece.h as u16,
                ALL_PLANES,
            )?;
            pieces.push((piece, cookie));
            y += piece.h;
        }
    }
    let replies =
        pieces.into_iter().map(|(piece, cookie)| Ok((piece, cookie.reply()?.data))).collect::<Result<Vec<_>>>()?;
    let patches: Vec<Patch<'_>> = replies
        .iter()
        .map(|(rect, data)| Patch { rect: *rect, pixels: data, stride: rect.w as usize * BYTES_PER_PIXEL })
        .collect();
    use_patches(&patches)
}
