// Sums go straight to their place; rows with a scale of their own, and biases, are put right afterwards by the subgroup that
// wrote them. The result has room for whole tiles of rows.
fn row_stride() -> u32 { return p.width; }
fn first_element(slice: u32) -> u32 { return 0u; }
fn finish(at: Region, surplus: bool) {
    storageBarrier();
    workgroupBarrier();
    let rows = select(min(WM, p.m - min(p.m, at.row)), 0u, surplus);
    var odd = BIAS;
    for (var r = at.lane; r < rows; r += LANES) { odd = odd || row_scale[at.row + r] != 1.0; }
    if (!subgroupAny(odd)) { return; }
    for (var r = 0u; r < rows; r++) {
        let m = at.row + r;
        for (var n = at.col + at.lane; n < at.col + WN; n += LANES) { out[m * p.width + n] = epilogue(m, n, out[m * p.width + n] * row_scale[m]); }
    }
}
