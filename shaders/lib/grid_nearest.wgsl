fn interpolated(plane: u32, y: f32, x: f32) -> f32 {
    return pixel(plane, round(padded(y, p.rows)), round(padded(x, p.columns)));
}
