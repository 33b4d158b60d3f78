// Sums of whole tiles, one padded matrix per slice of k, for `sum_slices`.
fn row_stride() -> u32 { return p.tiles_n * BN; }
fn first_element(slice: u32) -> u32 { return slice * p.tiles_m * BM * p.tiles_n * BN; }
fn finish(at: Region, surplus: bool) {}
