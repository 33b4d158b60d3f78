//! A kernel variant as a value, and the WGSL text that it stands for.
//!
//! WGSL does not care about the order of declarations, so a variant needs no template: its text is a prelude (aliases,
//! constants, bindings with their accessors, one-line functions) followed by a plain body and the pieces linked to it.

mod accessors;
mod assemble;
mod sources;
mod unroll;

pub use assemble::{LIVE_VECTORS, assemble};
pub use sources::{Source, source};

use crate::graph::DType;

/// Element type of a tensor in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// 32-bit float.
    F32,
    /// 16-bit float; needs the f16 feature.
    F16,
    /// 32-bit signed integer.
    I32,
    /// 8-bit signed integer, four to a word.
    I8,
    /// 8-bit unsigned integer, four to a word.
    U8,
    /// 0 or 1, four to a word.
    Bool,
}

impl Elem {
    /// How the device holds `dtype`: 64-bit types are narrowed, halves widened where f16 is missing.
    pub fn of(dtype: DType, f16: bool) -> Elem {
        match dtype {
            DType::Bool => Elem::Bool,
            DType::U8 => Elem::U8,
            DType::I8 => Elem::I8,
            DType::I32 | DType::I64 => Elem::I32,
            DType::F16 if f16 => Elem::F16,
            DType::F16 | DType::F32 | DType::F64 => Elem::F32,
        }
    }

    /// Bytes of one element.
    pub fn size(self) -> u32 {
        match self {
            Elem::F32 | Elem::I32 => 4,
            Elem::F16 => 2,
            Elem::I8 | Elem::U8 | Elem::Bool => 1,
        }
    }

    /// WGSL type in which kernels compute with such elements.
    pub fn compute_type(self) -> &'static str {
        match self {
            Elem::F32 | Elem::F16 => "f32",
            _ => "i32",
        }
    }

    /// True for floating-point elements.
    pub fn is_float(self) -> bool {
        matches!(self, Elem::F32 | Elem::F16)
    }
}

/// Whether a kernel reads or also writes a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and written.
    Write,
}

/// What a binding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleType {
    /// Elements of a tensor, with accessors `load_NAME(i)`, `load4_NAME(i / 4)` and, when written, `store_NAME`,
    /// `store4_NAME`.
    Tensor(Elem),
    /// A plain array of this WGSL type, named `NAME`.
    Array(&'static str),
}

/// One binding of a kernel, in binding order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role {
    /// Name in the body.
    pub name: &'static str,
    /// Contents.
    pub holds: RoleType,
    /// Read or written.
    pub access: Access,
}

/// A constant of the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Const {
    /// `u32`
    U32(u32),
    /// `bool`
    Bool(bool),
}

/// A kernel variant: the key of its pipeline, and all that its text depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Main text.
    pub body: Source,
    /// Further text, for functions that the body calls.
    pub links: Vec<Source>,
    /// Bindings of group 0.
    pub roles: Vec<Role>,
    /// `const NAME = value;`
    pub consts: Vec<(&'static str, Const)>,
    /// `alias NAME = type;`
    pub aliases: Vec<(&'static str, &'static str)>,
    /// Whole one-line functions.
    pub functions: Vec<String>,
}

impl Kernel {
    /// A variant of `body` without links, bindings or constants.
    pub fn new(body: Source) -> Kernel {
        let (links, roles, consts, aliases, functions) = Default::default();
        Kernel { body, links, roles, consts, aliases, functions }
    }

    /// Adds linked text.
    pub fn link(mut self, source: Source) -> Kernel {
        self.links.push(source);
        self
    }

    /// Adds a tensor that is read.
    pub fn reads(self, name: &'static str, elem: Elem) -> Kernel {
        self.role(name, RoleType::Tensor(elem), Access::Read)
    }

    /// Adds a tensor that is written.
    pub fn writes(self, name: &'static str, elem: Elem) -> Kernel {
        self.role(name, RoleType::Tensor(elem), Access::Write)
    }

    /// Adds a plain array that is read.
    pub fn array(self, name: &'static str, wgsl: &'static str) -> Kernel {
        self.role(name, RoleType::Array(wgsl), Access::Read)
    }

    /// Adds a binding.
    pub fn role(mut self, name: &'static str, holds: RoleType, access: Access) -> Kernel {
        self.roles.push(Role { name, holds, access });
        self
    }

    /// Adds a `u32` constant.
    pub fn set(mut self, name: &'static str, value: u32) -> Kernel {
        self.consts.push((name, Const::U32(value)));
        self
    }

    /// Adds a `bool` constant.
    pub fn flag(mut self, name: &'static str, value: bool) -> Kernel {
        self.consts.push((name, Const::Bool(value)));
        self
    }

    /// Adds a type alias.
    pub fn alias(mut self, name: &'static str, wgsl: &'static str) -> Kernel {
        self.aliases.push((name, wgsl));
        self
    }

    /// Adds a function.
    pub fn function(mut self, text: impl Into<String>) -> Kernel {
        self.functions.push(text.into());
        self
    }
}
