// Elements of BITS bits, PER to a word.
const PER: u32 = 32u / BITS;
fn part(word: u32, s: u32) -> u32 { return (word >> (BITS * (s % PER))) & (0xffffffffu >> (32u - BITS)); }
