// Packed words are fetched two at a time.
alias Words = vec2<u32>;
fn word(words: Words, j: u32) -> u32 { return words[j]; }
