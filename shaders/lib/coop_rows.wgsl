// Shared memory has a row of terms for each column, 8 halves apart from a multiple of BK, so that the rows of a fragment lie in
// different banks.
const STRIDE: u32 = BK / 4u + 2u;
const HELD: u32 = BN * STRIDE;
fn factor(n: u32, k: u32) -> MatB { return coopLoad<MatB>(&ws[n * STRIDE + k / 4u], STRIDE); }
