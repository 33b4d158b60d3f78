//! Writes out loops that are marked `// unroll`, one block per turn with the counter as a constant. Drivers keep arrays in
//! registers only where every index is a constant, and do not unroll large bodies of their own accord.

use std::collections::HashMap;

/// Turns that a marked loop may have.
const MOST_TURNS: u32 = 64;

/// `text` with every loop written out whose header has the form `for (var i = 0u; i < LIMIT; i++) { // unroll`, or that
/// ends in this mark on its own line. LIMIT is made of `u32` constants of the text and counters of loops around it; a loop
/// that cannot be written out is left as it is.
pub(super) fn unroll(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let constants = lines.iter().filter_map(|line| {
        let (name, rest) = line.strip_prefix("const ")?.split_once(':')?;
        let (_, value) = rest.trim().strip_prefix("u32")?.split_once('=')?;
        Some((name.trim(), value.split(';').next()?.trim()))
    });
    let scope = Scope { constants: constants.collect(), counters: Vec::new() };
    let mut out = String::with_capacity(text.len() * 2);
    expand(&lines, &scope, &mut out);
    out
}

#[derive(Clone)]
struct Scope<'a> {
    constants: HashMap<&'a str, &'a str>,
    counters: Vec<(&'a str, u32)>,
}

struct Loop<'a> {
    counter: &'a str,
    limit: &'a str,
    /// What follows the header on its line, without the mark.
    rest: &'a str,
}

const MARK: &str = "// unroll";

fn header(line: &str) -> Option<Loop<'_>> {
    let code = line.trim().strip_suffix(MARK)?.trim_end();
    let (start, rest) = code.strip_prefix("for (var ")?.split_once(';')?;
    let (limit, rest) = rest.split_once(';')?;
    let (step, rest) = rest.split_once(')')?;
    let (counter, zero) = start.split_once(" = ")?;
    let limit = limit.trim().strip_prefix(counter)?.trim_start().strip_prefix('<')?;
    let plain = zero == "0u" && step.trim().strip_suffix("++") == Some(counter);
    plain.then_some(Loop { counter, limit, rest: rest.trim().strip_prefix('{')? })
}

fn expand<'a>(lines: &[&'a str], scope: &Scope<'a>, out: &mut String) {
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        at += 1;
        let found = header(line).and_then(|found| {
            let turns = evaluate(found.limit, scope, 0).filter(|&turns| turns <= MOST_TURNS)?;
            Some((found, turns))
        });
        let Some((found, turns)) = found else {
            *out += line;
            out.push('\n');
            continue;
        };
        let one_line = found.rest.trim_end().strip_suffix('}');
        let end = if one_line.is_some() { at } else { at + body_length(lines.get(at..).unwrap_or_default()) };
        let own = [one_line.unwrap_or_default()];
        let body = if one_line.is_some() { &own[..] } else { lines.get(at..end).unwrap_or_default() };
        for turn in 0..turns {
            *out += &format!("{{ const {} = {turn}u;\n", found.counter);
            let mut inner = scope.clone();
            inner.counters.push((found.counter, turn));
            expand(body, &inner, out);
            *out += "}\n";
        }
        at = if one_line.is_some() { end } else { end + 1 };
    }
}

/// Lines before the one that closes the block in which `lines` begin.
fn body_length(lines: &[&str]) -> usize {
    let mut depth = 1;
    for (index, line) in lines.iter().enumerate() {
        for c in line.split("//").next().unwrap_or_default().chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
        }
        if depth <= 0 {
            return index;
        }
    }
    lines.len()
}

/// Deepest nesting of constants and parentheses.
const DEEPEST: u32 = 32;

fn evaluate(text: &str, scope: &Scope<'_>, depth: u32) -> Option<u32> {
    if depth > DEEPEST {
        return None;
    }
    let mut parser = Parser { rest: text, scope, depth };
    let value = parser.sum()?;
    parser.rest.trim().is_empty().then_some(value)
}

struct Parser<'a, 'b> {
    rest: &'a str,
    scope: &'b Scope<'b>,
    depth: u32,
}

impl Parser<'_, '_> {
    fn take(&mut self, symbols: &str) -> Option<char> {
        let rest = self.rest.trim_start();
        let found = rest.chars().next().filter(|&c| symbols.contains(c))?;
        self.rest = rest.get(found.len_utf8()..)?;
        Some(found)
    }

    fn sum(&mut self) -> Option<u32> {
        let mut value = self.product()?;
        while let Some(sign) = self.take("+-") {
            let next = self.product()?;
            value = if sign == '+' { value.checked_add(next)? } else { value.checked_sub(next)? };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<u32> {
        let mut value = self.atom()?;
        while let Some(sign) = self.take("*/%") {
            let next = self.atom()?;
            value = match sign {
                '*' => value.checked_mul(next)?,
                '/' => value.checked_div(next)?,
                _ => value.checked_rem(next)?,
            };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<u32> {
        if self.take("(").is_some() {
            self.depth += 1;
            let value = if self.depth > DEEPEST { None } else { self.sum() };
            return value.filter(|_| self.take(")").is_some());
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        if let Ok(number) = word.strip_suffix('u').unwrap_or(word).parse() {
            return Some(number);
        }
        let counter = self.scope.counters.iter().rev().find(|(name, _)| *name == word);
        match counter {
            Some((_, value)) => Some(*value),
            None => evaluate(self.scope.constants.get(word)?, self.scope, self.depth + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_loops_are_written_out() {
        let text = "const A: u32 = 4u;\nconst B: u32 = A / 2u;\nfn f() {\n    for (var i = 0u; i < B; i++) { // unroll\n        \
                    for (var j = 0u; j < i + 1u; j++) { g(i, j); } // unroll\n        h({i});\n    }\n    tail();\n}\n";
        let blocks = "{ const i = 0u;\n{ const j = 0u;\n g(i, j); \n}\n        h({i});\n}\n{ const i = 1u;\n{ const j = 0u;\n \
                      g(i, j); \n}\n{ const j = 1u;\n g(i, j); \n}\n        h({i});\n}\n";
        let expected = format!("const A: u32 = 4u;\nconst B: u32 = A / 2u;\nfn f() {{\n{blocks}    tail();\n}}\n");
        assert_eq!(unroll(text), expected);
    }

    #[test]
    fn other_loops_are_left_alone() {
        for text in [
            "for (var i = 0u; i < 3u; i++) { g(i); }\n",
            "for (var i = 0u; i < p.n; i++) { g(i); } // unroll\n",
            "for (var i = 1u; i < 3u; i++) { g(i); } // unroll\n",
            "for (var i = 0u; i < 1000u; i++) { g(i); } // unroll\n",
            "for (var i = 0u; i < 3u; i += 2u) { g(i); } // unroll\n",
            "const A: u32 = A;\nfor (var i = 0u; i < A; i++) { g(i); } // unroll\n",
        ] {
            assert_eq!(unroll(text), text);
        }
    }

    #[test]
    fn limits_are_computed_as_wgsl_does() {
        let scope = Scope {
            constants: HashMap::from([("N", "3u * (4u + M)"), ("M", "10u / 4u % 2u")]),
            counters: vec![("i", 7)],
        };
        for (text, value) in
            [("N", Some(12)), ("i - 2u", Some(5)), ("2u - i", None), ("1u / (i - 7u)", None), ("(1u", None)]
        {
            assert_eq!(evaluate(text, &scope, 0), value, "{text}");
        }
    }
}
