//! Protobuf's wire format: numbered fields, nothing more.

use super::DecodeError;

/// One field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Reads over bytes.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// All fields, in their order.
    pub(super) fn fields(mut self) -> Result<Vec<(u32, Wire<'a>)>, DecodeError> {
        let mut fields = Vec::new();
        while !self.rest.is_empty() {
            let key = self.varint()?;
            let number =
                u32::try_from(key >> 3).map_err(|_| DecodeError::Malformed("a field's number is too big"))?;
            if number == 0 {
                return Err(DecodeError::Malformed("a field has number 0"));
            }
            let value = match key & 7 {
                0 => Wire::Number(self.varint()?),
                1 => Wire::Fixed(u64::from_le_bytes(self.array()?)),
                2 => {
                    let length = self.varint()?;
                    Wire::Bytes(self.take(length)?)
                }
                5 => Wire::Fixed(u64::from(u32::from_le_bytes(self.array()?))),
                _ => return Err(DecodeError::Malformed("a field has a wire type that is not in use")),
            };
            fields.push((number, value));
        }
        Ok(fields)
    }

    /// Numbers that stand one after the other.
    pub(super) fn numbers(mut self) -> Result<Vec<u64>, DecodeError> {
        let mut numbers = Vec::new();
        while !self.rest.is_empty() {
            numbers.push(self.varint()?);
        }
        Ok(numbers)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.rest.len());
        let (taken, rest) = self.rest.split_at(length.ok_or(DecodeError::Malformed("it ends too early"))?);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or(DecodeError::Malformed("it ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(DecodeError::Malformed("it ends too early"))?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Malformed("a number is too long"))
    }
}
