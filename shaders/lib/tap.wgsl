// Where element k of window o lies; beyond every size when that is outside.
fn tap(o: u32, k: u32, stride: u32, padding: u32, dilation: u32) -> u32 { return o * stride + k * dilation - padding; }
