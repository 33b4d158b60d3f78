use crate::error::Error;

/// Element type of a tensor, with ExecuTorch's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ScalarType {
    /// Unsigned 8 bits.
    Byte = 0,
    /// Signed 8 bits.
    Char = 1,
    /// Signed 16 bits.
    Short = 2,
    /// Signed 32 bits.
    Int = 3,
    /// Signed 64 bits.
    Long = 4,
    /// IEEE half precision.
    Half = 5,
    /// IEEE single precision.
    Float = 6,
    /// IEEE double precision.
    Double = 7,
    /// One byte, 0 or 1.
    Bool = 11,
    /// The upper half of a `Float`.
    BFloat16 = 15,
}

impl ScalarType {
    const ALL: [ScalarType; 10] = [
        Self::Byte,
        Self::Char,
        Self::Short,
        Self::Int,
        Self::Long,
        Self::Half,
        Self::Float,
        Self::Double,
        Self::Bool,
        Self::BFloat16,
    ];

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::Byte | Self::Char | Self::Bool => 1,
            Self::Short | Self::Half | Self::BFloat16 => 2,
            Self::Int | Self::Float => 4,
            Self::Long | Self::Double => 8,
        }
    }

    pub(crate) fn from_number(number: i32) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|known| *known as i32 == number)
            .ok_or_else(|| Error::host(format!("tensor: found scalar type {number}, expected one of {:?}", Self::ALL)))
    }
}

/// A Rust type that a tensor's elements can be read and written as.
pub trait Element: bytemuck::Pod {
    /// The element type that it stands for.
    const SCALAR_TYPE: ScalarType;
}

macro_rules! elements {
    ($($rust:ty => $scalar:ident),* $(,)?) => {
        $(impl Element for $rust {
            const SCALAR_TYPE: ScalarType = ScalarType::$scalar;
        })*
    };
}

elements! {
    u8 => Byte,
    i8 => Char,
    i16 => Short,
    i32 => Int,
    i64 => Long,
    half::f16 => Half,
    f32 => Float,
    f64 => Double,
    half::bf16 => BFloat16,
}
