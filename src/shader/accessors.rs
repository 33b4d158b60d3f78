use std::fmt::Write;

use super::{Access, Elem, Role, RoleType};

/// Declares one binding and, for a tensor, the functions that read and write its elements in the compute type.
///
/// `load_x(i)` reads element i, `load4_x(quad)` elements 4 quad to 4 quad + 3; `store4_x(quad, v)` writes four at once and
/// `store_x(i, v)` one. Elements of one byte share words, so they have no `store_x`. A tensor of whole words that `code` never
/// takes four at a time is an array of scalars: that spares the arithmetic of finding a scalar in a vector.
pub(super) fn declare(text: &mut String, binding: usize, role: &Role, code: &[&str]) {
    let Role { name, holds, access } = *role;
    let mode = if access == Access::Write { "read_write" } else { "read" };
    let fours = [format!("load4_{name}"), format!("store4_{name}"), format!("{name}[")];
    let scalars = !code.iter().any(|code| fours.iter().any(|four| code.contains(four)));
    let element = match holds {
        RoleType::Array(wgsl) => wgsl,
        RoleType::Tensor(Elem::F32) if scalars => "f32",
        RoleType::Tensor(Elem::I32) if scalars => "i32",
        RoleType::Tensor(Elem::F32) => "vec4<f32>",
        RoleType::Tensor(Elem::F16) => "vec4<f16>",
        RoleType::Tensor(Elem::I32) => "vec4<i32>",
        RoleType::Tensor(Elem::I8 | Elem::U8 | Elem::Bool) => "u32",
    };
    line(text, format_args!("@group(0) @binding({binding}) var<storage, {mode}> {name}: array<{element}>;"));
    match holds {
        RoleType::Tensor(elem @ (Elem::F32 | Elem::I32)) if scalars => {
            let t = elem.compute_type();
            line(text, format_args!("fn load_{name}(i: u32) -> {t} {{ return {name}[i]; }}"));
            if access == Access::Write {
                line(text, format_args!("fn store_{name}(i: u32, v: {t}) {{ {name}[i] = v; }}"));
            }
        }
        RoleType::Tensor(elem) => {
            load(text, name, elem);
            if access == Access::Write {
                store(text, name, elem);
            }
        }
        RoleType::Array(_) => {}
    }
}

fn load(text: &mut String, name: &str, elem: Elem) {
    let t = elem.compute_type();
    let (one, four) = match elem {
        Elem::F32 | Elem::I32 => (format!("{name}[i >> 2u][i & 3u]"), format!("{name}[quad]")),
        Elem::F16 => (format!("f32({name}[i >> 2u][i & 3u])"), format!("vec4<f32>({name}[quad])")),
        Elem::I8 => {
            (format!("i32({name}[i >> 2u] << (24u - 8u * (i & 3u))) >> 24u"), format!("unpack4xI8({name}[quad])"))
        }
        Elem::U8 | Elem::Bool => (
            format!("i32(({name}[i >> 2u] >> (8u * (i & 3u))) & 255u)"),
            format!("vec4<i32>(unpack4xU8({name}[quad]))"),
        ),
    };
    line(text, format_args!("fn load_{name}(i: u32) -> {t} {{ return {one}; }}"));
    line(text, format_args!("fn load4_{name}(quad: u32) -> vec4<{t}> {{ return {four}; }}"));
}

fn store(text: &mut String, name: &str, elem: Elem) {
    let t = elem.compute_type();
    let four = match elem {
        Elem::F32 | Elem::I32 => "v",
        Elem::F16 => "vec4<f16>(v)",
        Elem::I8 => "pack4xI8(v)",
        Elem::U8 | Elem::Bool => "pack4xU8(vec4<u32>(v))",
    };
    line(text, format_args!("fn store4_{name}(quad: u32, v: vec4<{t}>) {{ {name}[quad] = {four}; }}"));
    let one = match elem {
        Elem::F32 | Elem::I32 => "v",
        Elem::F16 => "f16(v)",
        Elem::I8 | Elem::U8 | Elem::Bool => return,
    };
    line(text, format_args!("fn store_{name}(i: u32, v: {t}) {{ {name}[i >> 2u][i & 3u] = {one}; }}"));
}

fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(args);
    text.push('\n');
}
