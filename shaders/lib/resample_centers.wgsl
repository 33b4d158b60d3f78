// Between pixels, whose centers lie half a pixel from the corners.
const BETWEEN: bool = true;
fn place(o: u32, ratio: f32) -> f32 { return max((f32(o) + 0.5) * ratio - 0.5, 0.0); }
