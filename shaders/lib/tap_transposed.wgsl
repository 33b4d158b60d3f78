// The window whose element k lies at o; beyond every size when there is none.
fn tap(o: u32, k: u32, stride: u32, padding: u32, dilation: u32) -> u32 {
    let t = o + padding - k * dilation;
    return select(0xffffffffu, t / stride, t < 0x80000000u && t % stride == 0u);
}
