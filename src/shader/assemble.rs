use super::accessors::declare;
use super::unroll::unroll;
use super::{Const, Kernel};

/// Vectors of four per-call integers that kernels can see; one slot per SymInt.
pub const LIVE_VECTORS: usize = 256;

const COMMON: &str = "\
@group(1) @binding(0) var<uniform> p: Params;
@group(1) @binding(1) var<uniform> live_values: array<vec4<i32>, 256>;
fn live(slot: u32) -> i32 { return live_values[slot >> 2u][slot & 3u]; }
fn group_index(id: vec3<u32>, groups: vec3<u32>) -> u32 { return id.x + id.y * groups.x; }
";

/// The WGSL text of a variant. Only here are `enable` lines written.
pub fn assemble(kernel: &Kernel) -> String {
    let mut prelude = String::new();
    for (name, wgsl) in &kernel.aliases {
        prelude += &format!("alias {name} = {wgsl};\n");
    }
    for (name, value) in &kernel.consts {
        prelude += &match value {
            Const::U32(n) => format!("const {name}: u32 = {n}u;\n"),
            Const::Bool(b) => format!("const {name}: bool = {b};\n"),
        };
    }
    let sources = std::iter::once(&kernel.body).chain(&kernel.links);
    let functions = kernel.functions.iter().map(String::as_str);
    let code: Vec<&str> = sources.map(|source| source.text()).chain(functions).collect();
    for (binding, role) in kernel.roles.iter().enumerate() {
        declare(&mut prelude, binding, role, &code);
    }
    for function in &kernel.functions {
        prelude += function;
        prelude.push('\n');
    }
    prelude += COMMON;
    let mut text = prelude;
    for source in std::iter::once(&kernel.body).chain(&kernel.links) {
        text += source.text();
        text.push('\n');
    }
    let mut enables = String::new();
    for (token, feature) in [("f16", "f16"), ("coop_mat", "wgpu_cooperative_matrix")] {
        if words(&text).any(|word| word.starts_with(token)) {
            enables += &format!("enable {feature};\n");
        }
    }
    enables + &unroll(&text)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
}
