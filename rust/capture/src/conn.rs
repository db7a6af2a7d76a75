//! x11rb's connection over our stream, which knows which requests expect a reply.

use std::io::IoSlice;
use std::mem::forget;
use std::sync::{Mutex, MutexGuard};

use link::locked;
use x11rb::connection::{BufWithFds, Connection, DiscardMode, RawEventAndSeqNumber, ReplyOrError, RequestConnection};
use x11rb::connection::{RequestKind, SequenceNumber};
use x11rb::cookie::{Cookie, CookieWithFds, VoidCookie};
use x11rb::errors::{ConnectionError, ParseError, ReplyOrIdError};
use x11rb::extension_manager::ExtensionManager;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::Setup;
use x11rb::rust_connection::RustConnection;
use x11rb::utils::RawFdContainer;
use x11rb::x11_utils::{ExtensionInformation, TryParse, TryParseFd, X11Error};

use crate::stream::BoundedStream;

/// One connection to an X server.
///
/// x11rb's own list of extensions is locked while a reply to `QueryExtension` is waited for, and again to say what an error means:
/// a server that answers with an error would stop this thread for ever. So the list is here.
pub struct Conn(RustConnection<BoundedStream>, Mutex<ExtensionManager>);

impl Conn {
    pub(crate) fn new(conn: RustConnection<BoundedStream>) -> Self {
        Self(conn, Mutex::default())
    }

    fn extensions(&self) -> MutexGuard<'_, ExtensionManager> {
        locked(&self.1)
    }

    /// The socket.
    pub fn stream(&self) -> &BoundedStream {
        self.0.stream()
    }
}

impl RequestConnection for Conn {
    type Buf = Vec<u8>;

    fn send_request_with_reply<R: TryParse>(
        &self,
        bufs: &[IoSlice<'_>],
        fds: Vec<RawFdContainer>,
    ) -> Result<Cookie<'_, Self, R>, ConnectionError> {
        let cookie = self.0.send_request_with_reply::<R>(bufs, fds)?;
        let sequence = cookie.sequence_number();
        // Dropping it would discard the reply.
        forget(cookie);
        self.stream().ask(sequence);
        Ok(Cookie::new(self, sequence))
    }

    fn send_request_with_reply_with_fds<R: TryParseFd>(
        &self,
        _bufs: &[IoSlice<'_>],
        _fds: Vec<RawFdContainer>,
    ) -> Result<CookieWithFds<'_, Self, R>, ConnectionError> {
        // The stream sends no descriptors.
        Err(ConnectionError::FdPassingFailed)
    }

    fn send_request_without_reply(
        &self,
        bufs: &[IoSlice<'_>],
        fds: Vec<RawFdContainer>,
    ) -> Result<VoidCookie<'_, Self>, ConnectionError> {
        let cookie = self.0.send_request_without_reply(bufs, fds)?;
        let sequence = cookie.sequence_number();
        forget(cookie);
        Ok(VoidCookie::new(self, sequence))
    }

    fn discard_reply(&self, sequence: SequenceNumber, kind: RequestKind, mode: DiscardMode) {
        self.0.discard_reply(sequence, kind, mode);
    }

    fn prefetch_extension_information(&self, extension_name: &'static str) -> Result<(), ConnectionError> {
        self.extensions().prefetch_extension_information(self, extension_name)
    }

    fn extension_information(
        &self,
        extension_name: &'static str,
    ) -> Result<Option<ExtensionInformation>, ConnectionError> {
        self.extensions().extension_information(self, extension_name)
    }

    fn wait_for_reply_or_raw_error(&self, sequence: SequenceNumber) -> Result<ReplyOrError<Vec<u8>>, ConnectionError> {
        self.0.wait_for_reply_or_raw_error(sequence)
    }

    fn wait_for_reply(&self, sequence: SequenceNumber) -> Result<Option<Vec<u8>>, ConnectionError> {
        self.0.wait_for_reply(sequence)
    }

    fn wait_for_reply_with_fds_raw(
        &self,
        sequence: SequenceNumber,
    ) -> Result<ReplyOrError<BufWithFds<Vec<u8>>, Vec<u8>>, ConnectionError> {
        self.0.wait_for_reply_with_fds_raw(sequence)
    }

    fn check_for_raw_error(&self, sequence: SequenceNumber) -> Result<Option<Vec<u8>>, ConnectionError> {
        self.0.check_for_raw_error(sequence)
    }

    fn prefetch_maximum_request_bytes(&self) {
        self.0.prefetch_maximum_request_bytes();
    }

    fn maximum_request_bytes(&self) -> usize {
        self.0.maximum_request_bytes()
    }

    fn parse_error(&self, error: &[u8]) -> Result<X11Error, ParseError> {
        match self.1.try_lock() {
            Ok(extensions) => X11Error::try_parse(error, &*extensions),
            // An extension is being queried, here or in another thread: the error is reported by its number.
            Err(_) => X11Error::try_parse(error, &ExtensionManager::default()),
        }
    }

    fn parse_event(&self, event: &[u8]) -> Result<Event, ParseError> {
        Event::parse(event, &*self.extensions())
    }
}

impl Connection for Conn {
    fn wait_for_raw_event_with_sequence(&self) -> Result<RawEventAndSeqNumber<Vec<u8>>, ConnectionError> {
        self.0.wait_for_raw_event_with_sequence()
    }

    fn poll_for_raw_event_with_sequence(&self) -> Result<Option<RawEventAndSeqNumber<Vec<u8>>>, ConnectionError> {
        self.0.poll_for_raw_event_with_sequence()
    }

    fn flush(&self) -> Result<(), ConnectionError> {
        self.0.flush()
    }

    fn setup(&self) -> &Setup {
        self.0.setup()
    }

    fn generate_id(&self) -> Result<u32, ReplyOrIdError> {
        self.0.generate_id()
    }
}
