// Packed words are fetched one at a time.
alias Words = u32;
fn word(words: Words, j: u32) -> u32 { return words; }
