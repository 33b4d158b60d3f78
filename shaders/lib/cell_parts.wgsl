// Cells that are words gathered from PER elements.
fn cell(i: u32) -> u32 {
    var word = 0u;
    for (var e = 0u; e < PER; e++) {
        let s = source(i * PER + e);
        word |= part(x[s / PER], s) << (BITS * e);
    }
    return word;
}
