// The score plus the mask; never exactly LOWEST, which stands for keys that a row does not see.
fn score(x: f32, s: u32, key: u32, mask0: u32) -> f32 {
    let sum = x + f32(load_mask(mask0 + s * p.mask_row + key * p.mask_key));
    return select(sum, -3.4028232e38, sum == LOWEST);
}
