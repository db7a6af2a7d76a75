//! The bodies of messages.

/// Writes values as D-Bus has them.
#[derive(Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    pub fn pad(&mut self, to: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.pad(4).0.extend(value.to_le_bytes());
        self
    }

    pub fn str(&mut self, text: &str) -> &mut Self {
        self.u32(text.len() as u32).0.extend(text.as_bytes());
        self.0.push(0);
        self
    }

    pub fn variant(&mut self, signature: &str) -> &mut Self {
        self.0.push(signature.len() as u8);
        self.0.extend(signature.as_bytes());
        self.0.push(0);
        self
    }

    pub fn array(&mut self, alignment: usize, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.u32(0);
        let at = self.0.len();
        self.pad(alignment);
        let begin = self.0.len();
        write(self);
        let length = (self.0.len() - begin) as u32;
        self.0[at - 4..at].copy_from_slice(&length.to_le_bytes());
        self
    }

    pub fn object(&mut self, bus: &str, path: &str) -> &mut Self {
        self.pad(8).str(bus).str(path)
    }
}
