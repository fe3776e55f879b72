//! What a client asks of a backend: one byte of a request of fixed size.

/// Bytes of a request.
pub(super) const REQUEST: usize = 64;
/// Bytes of an answer.
pub(super) const ANSWER: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// An answer, and then perhaps another request.
    Answer,
    /// An answer, and the end.
    AnswerAndClose,
    /// Bytes until the client goes.
    Stream,
}

impl Wish {
    pub(super) fn request(self) -> [u8; REQUEST] {
        [match self {
            Self::Answer => b'a',
            Self::AnswerAndClose => b'c',
            Self::Stream => b's',
        }; REQUEST]
    }

    pub(super) fn read(request: &[u8]) -> Option<Self> {
        match request.first() {
            Some(b'a') => Some(Self::Answer),
            Some(b'c') => Some(Self::AnswerAndClose),
            Some(b's') => Some(Self::Stream),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_understand_what_clients_say() {
        for wish in [Wish::Answer, Wish::AnswerAndClose, Wish::Stream] {
            assert_eq!(Wish::read(&wish.request()), Some(wish));
        }
        assert_eq!(Wish::read(b"GET /"), None);
    }
}
