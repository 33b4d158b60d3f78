// How factors lie in shared memory: a step takes BK terms k of the tile's columns n, in octets.
const OCTETS: u32 = BK / 8u;
// vec4s of a fragment.
const FRAGMENT: u32 = FRAG * FRAG / 4u;
