use std::hash::{Hash, Hasher};

/// A piece of WGSL that is part of this crate, known by its name.
#[derive(Clone, Copy)]
pub struct Source {
    name: &'static str,
    text: &'static str,
}

impl Source {
    /// File name below `shaders/`, without the ending.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// WGSL text.
    pub fn text(&self) -> &'static str {
        self.text
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.name == other.name
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// A [`Source`] from its file name and text; use the `source!` macro.
pub const fn source(name: &'static str, text: &'static str) -> Source {
    Source { name, text }
}

/// The file `shaders/NAME.wgsl` as a [`Source`].
#[macro_export]
macro_rules! source {
    ($name:literal) => {
        $crate::shader::source($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/", $name, ".wgsl")))
    };
}
