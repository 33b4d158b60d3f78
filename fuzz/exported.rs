//! A real program.

/// The payload of a Llama that ExecuTorch's own exporter wrote.
pub fn payload() -> &'static [u8] {
    let program = include_bytes!("../tests/fixtures/tiny_llama.pte");
    let start = program.windows(4).position(|word| word == b"VH00").unwrap() - 4;
    let end = u32::from_le_bytes(program[start + 18..start + 22].try_into().unwrap());
    &program[start..start + end as usize]
}
