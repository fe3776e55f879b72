//! How deep an expression may be. The parser calls itself for every bracket and operator, and has no bound of its own
//! that comes early enough.

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// Most brackets inside of each other.
const BRACKETS_MOST: usize = 32;
/// Most signs before one operand.
const SIGNS_MOST: usize = 32;
/// Most branches of `?:`.
const BRANCHES_MOST: usize = 32;
/// Most steps and operators.
const STEPS_MOST: usize = 400;

/// Most levels of the tree: running it takes the caller's stack.
pub(super) const DEPTH_MOST: usize = 48;

/// What is said of an expression that is too deep.
pub(super) fn words() -> String {
    "ERROR: <input>:-1:0: expression recursion limit exceeded: 250".to_owned()
}

/// How many levels a tree has.
pub(super) fn depth(tree: &IdedExpr) -> usize {
    let deepest = |trees: &mut dyn Iterator<Item = &IdedExpr>| trees.map(depth).max().unwrap_or_default();
    let entry = |entry: &EntryExpr| match entry {
        EntryExpr::StructField(field) => depth(&field.value),
        EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
    };
    1 + match &tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Call(call) => deepest(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::Comprehension(loops) => {
            let parts =
                [&loops.iter_range, &loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result];
            deepest(&mut parts.into_iter())
        }
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => map.entries.iter().map(|one| entry(&one.expr)).max().unwrap_or_default(),
        Expr::Struct(made) => made.entries.iter().map(|one| entry(&one.expr)).max().unwrap_or_default(),
        Expr::Select(select) => depth(&select.operand),
    }
}

/// Says why an expression is too deep, if it is.
pub(super) fn too_deep(source: &str) -> Option<String> {
    let (mut depth, mut deepest): (usize, usize) = (0, 0);
    let (mut signs, mut most_signs, mut branches, mut steps) = (0, 0, 0, 0);
    let mut quote = None;
    let mut escaped = false;
    for byte in source.bytes() {
        if let Some(open) = quote {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                _ if byte == open => quote = None,
                _ => {}
            }
            continue;
        }
        match byte {
            b'!' | b'-' => {
                signs += 1;
                most_signs = signs.max(most_signs);
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => signs = 0,
        }
        match byte {
            b'"' | b'\'' => quote = Some(byte),
            b'(' | b'[' | b'{' => {
                depth += 1;
                steps += 1;
                deepest = depth.max(deepest);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'?' => branches += 1,
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'&' | b'|' => steps += 1,
            _ => {}
        }
    }
    let over =
        deepest > BRACKETS_MOST || most_signs > SIGNS_MOST || branches > BRANCHES_MOST || steps > STEPS_MOST;
    over.then(words)
}
