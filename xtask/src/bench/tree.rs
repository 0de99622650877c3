//! A tree of source-like files that is the same in every run.

use std::fmt::Write as _;
use std::path::Path;

pub const FILES: usize = 20_000;
const FILES_PER_FOLDER: usize = 25;
/// Bytes of a file; 10 KiB, so that the tree has 200 MB.
const FILE_BYTES: usize = 10 * 1024;
/// Every so many files hold the rare word once.
const RARE_EVERY: usize = 400;

/// What the queries look for.
pub const COMMON_WORD: &str = "session";
pub const RARE_WORD: &str = "quokkaPouch";

const WORDS: [&str; 32] = [
    "let", "fn", "return", "value", "index", "stream", "session", "buffer", "match", "result", "error", "config",
    "token", "event", "if", "else", "while", "struct", "trait", "request", "answer", "model", "tool", "path", "line",
    "count", "state", "queue", "reader", "writer", "clock", "store",
];

/// Writes the tree below an empty folder.
pub fn write(folder: &Path) -> std::io::Result<()> {
    let mut random = Random(0x5eed_0003);
    for number in 0..FILES {
        let group = number / FILES_PER_FOLDER;
        let place = folder.join(format!("area{}/part{}/unit{group}", group % 8, group % 40));
        if number % FILES_PER_FOLDER == 0 {
            std::fs::create_dir_all(&place)?;
        }
        let extension = ["rs", "ts", "py", "md"][number % 4];
        std::fs::write(place.join(format!("file{number}.{extension}")), content(number, &mut random))?;
    }
    std::fs::write(folder.join(".gitignore"), "target/\n*.log\nnode_modules/\n")
}

fn content(number: usize, random: &mut Random) -> String {
    let mut text = String::with_capacity(FILE_BYTES + 128);
    while text.len() < FILE_BYTES {
        text.push_str(&"    "[..random.below(5)]);
        for _ in 0..=random.below(11) {
            text.push_str(WORDS[random.below(WORDS.len())]);
            text.push_str([" ", "_", ".", "(", "); "][random.below(5)]);
        }
        let _infallible = writeln!(text, "// {}", random.below(100_000));
    }
    if number.is_multiple_of(RARE_EVERY) {
        let _infallible = writeln!(text, "let {RARE_WORD} = {number};");
    }
    text
}

/// A small generator of its own: the tree must be the same with every version of every crate.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}
