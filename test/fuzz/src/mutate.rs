//! Inputs out of others: the same ones for the same number.

/// What is put in: the words of JSON, YAML and patches, and numbers that are easily got wrong.
const WORDS: &[&str] = &[
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"\"",
    "-1",
    "0",
    "1e400",
    "9223372036854775808",
    "0.1",
    "\\u0000",
    "\\ud800",
    "\"$patch\":\"replace\"",
    "\"$patch\":\"delete\"",
    "\"$retainKeys\":[]",
    "\"$setElementOrder/ports\":[]",
    "\"$deleteFromPrimitiveList/finalizers\":[\"a\"]",
    "metadata",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "resourceVersion",
    "deletionTimestamp",
    "generateName",
    "status",
    "spec",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "!!binary ",
    "\n",
    "/-",
    "~1",
    "~0",
    "é",
    "\u{0}",
    "in (",
    "notin",
    "==",
    "!=",
    "!",
    ",",
    "(",
    ")",
];

/// Makes inputs.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The same seed makes the same inputs.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// `SplitMix64`: short, and good enough to choose by.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if there is none.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    /// An input out of one of `seeds`, with some of another perhaps.
    pub fn input(&mut self, seeds: &[(String, Vec<u8>)]) -> Vec<u8> {
        if seeds.is_empty() {
            return Vec::new();
        }
        let (one, other) = (self.below(seeds.len()), self.below(seeds.len()));
        let (one, other) = (&seeds[one].1, &seeds[other].1);
        let mut input = one.clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input, other);
        }
        // The line that says where it goes stays whole, or is another's.
        let head = if self.below(8) == 0 { head(other) } else { head(one) };
        let body = head_length(&input);
        [head, input.get(body..).unwrap_or_default()].concat()
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let start = head_length(input);
        let at = start + self.below(input.len() - start + 1);
        let length = self.below((input.len() - at).min(40) + 1);
        match self.below(6) {
            0 => drop(input.drain(at..at + length)),
            1 => {
                let word = WORDS[self.below(WORDS.len())].bytes();
                drop(input.splice(at..at + length, word));
            }
            2 => {
                let copy = input[at..at + length].to_vec();
                let to = start + self.below(input.len() - start + 1);
                drop(input.splice(to..to, copy));
            }
            3 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << (self.state % 8);
                }
            }
            4 => {
                let from = self.below(other.len() + 1);
                let taken = other[from..].iter().take(60).copied();
                drop(input.splice(at..at, taken));
            }
            // Deeper and deeper.
            _ => {
                let depth = self.below(300);
                let open: Vec<u8> = [b'{', b'"', b'a', b'"', b':'].repeat(depth);
                drop(input.splice(at..at, open));
            }
        }
    }
}

/// The first line, with its end.
fn head(input: &[u8]) -> &[u8] {
    &input[..head_length(input)]
}

fn head_length(input: &[u8]) -> usize {
    input.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_makes_the_same_inputs_again_and_they_differ() {
        let seeds =
            vec![("a".to_owned(), b"head\nbody of it".to_vec()), ("b".to_owned(), b"other\nx".to_vec())];
        let make = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..200).map(|_| mutator.input(&seeds)).collect::<Vec<_>>()
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert!(make(1).iter().all(|input| input.starts_with(b"head\n") || input.starts_with(b"other\n")));
        assert!(make(1).iter().filter(|input| !input.ends_with(b"body of it")).count() > 50);
    }
}
