//! The versions of the protocol, and the kinds of security, by their numbers (RFC 6143 §7.1.2, rfbproto).

/// The protocol's version that both sides speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 3.3: the server chooses the security.
    V3_3,
    /// 3.7.
    V3_7,
    /// 3.8: the server gives a reason for a refusal.
    V3_8,
}

/// How a server authenticates a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Not at all.
    None,
    /// A challenge to be encrypted with a password.
    Vnc,
    /// A choice of TLS, certificates, and passwords within it.
    VeNCrypt,
    /// Something that is not spoken here.
    Other(u8),
}

impl Security {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::None => 1,
            Self::Vnc => 2,
            Self::VeNCrypt => 19,
            Self::Other(number) => number,
        }
    }

    /// The security of a number.
    #[must_use]
    pub const fn of(number: u8) -> Self {
        match number {
            1 => Self::None,
            2 => Self::Vnc,
            19 => Self::VeNCrypt,
            _ => Self::Other(number),
        }
    }
}

/// `VeNCrypt`'s subtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VeNCrypt {
    /// Name and password in the clear.
    Plain,
    /// TLS without certificates.
    TlsNone,
    /// The same with a challenge.
    TlsVnc,
    /// The same with name and password.
    TlsPlain,
    /// TLS with the server's certificate.
    X509None,
    /// The same with a challenge.
    X509Vnc,
    /// The same with name and password.
    X509Plain,
    /// Something that is not spoken here.
    Other(u32),
}

impl VeNCrypt {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Plain => 256,
            Self::TlsNone => 257,
            Self::TlsVnc => 258,
            Self::TlsPlain => 259,
            Self::X509None => 260,
            Self::X509Vnc => 261,
            Self::X509Plain => 262,
            Self::Other(number) => number,
        }
    }

    /// The subtype of a number.
    #[must_use]
    pub const fn of(number: u32) -> Self {
        match number {
            256 => Self::Plain,
            257 => Self::TlsNone,
            258 => Self::TlsVnc,
            259 => Self::TlsPlain,
            260 => Self::X509None,
            261 => Self::X509Vnc,
            262 => Self::X509Plain,
            _ => Self::Other(number),
        }
    }

    /// What the server requires within TLS.
    pub(crate) const fn inner(self) -> Option<Inner> {
        match self {
            Self::TlsNone | Self::X509None => Some(Inner::None),
            Self::TlsVnc | Self::X509Vnc => Some(Inner::Vnc),
            Self::Plain | Self::TlsPlain | Self::X509Plain => Some(Inner::Plain),
            Self::Other(_) => None,
        }
    }
}

/// What `VeNCrypt` requires once a subtype is chosen.
#[derive(Clone, Copy)]
pub(crate) enum Inner {
    None,
    Vnc,
    Plain,
}
