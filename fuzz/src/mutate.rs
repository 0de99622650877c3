//! Mutations of good inputs, the same for the same seed.

/// What parsers trip over.
const TOKENS: [&[u8]; 28] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\"\"",
    b"\\u0000",
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\r\n\r\n",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\x1b[2J",
    b"/*",
    b"99999999999",
];

/// Makes inputs out of good ones.
pub struct Mutations {
    seeds: Vec<Vec<u8>>,
    random: Random,
}

impl Mutations {
    pub fn new(seeds: Vec<Vec<u8>>, seed: u64) -> Mutations {
        assert!(seeds.iter().any(|seed| !seed.is_empty()), "there is nothing to mutate");
        Mutations { seeds, random: Random(seed | 1) }
    }

    /// One of the seeds, changed in one to four places.
    pub fn next_input(&mut self) -> Vec<u8> {
        let which = self.random.below(self.seeds.len());
        let mut input = self.seeds[which].clone();
        for _ in 0..=self.random.below(4) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(input.len() + 1);
        let end = (at + random.below(16)).min(input.len());
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.below(256) as u8,
            2 => drop(input.drain(at..end)),
            3 => input.truncate(at),
            4 => {
                let piece = input[at..end].to_vec();
                let place = random.below(input.len() + 1);
                input.splice(place..place, piece.repeat(1 + random.below(40)));
            }
            5 => {
                let token = TOKENS[random.below(TOKENS.len())];
                input.splice(at..end, token.iter().copied());
            }
            6 => {
                let other = &self.seeds[random.below(self.seeds.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            7 if at < input.len() => {
                let place = random.below(input.len());
                input.swap(at, place);
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
        }
    }
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}
