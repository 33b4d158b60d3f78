// How factors lie in shared memory: a step takes BK terms k of the tile's columns n, in octets.
const OCTETS: u32 = BK / 8u;
// Rows of `ws` are 8 halves apart from a multiple of BK, so that the rows of a fragment lie in different banks.
const STRIDE: u32 = BK / 4u + 2u;
// vec4s of a fragment.
const FRAGMENT: u32 = FRAG * FRAG / 4u;
