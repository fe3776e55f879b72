//! Field selection said as indexing.
//!
//! The interpreter answers `false` for a field of something that has none, and fails for an optional field that is
//! absent; its indexing does both as CEL demands.

use kube_cel::cel::common::ast::operators::{INDEX, OPT_INDEX, OPT_SELECT};
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

pub(super) fn select_as_index(tree: &mut IdedExpr) {
    match &mut tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            if call.func_name == OPT_SELECT {
                OPT_INDEX.clone_into(&mut call.func_name);
            }
            call.target.iter_mut().for_each(|target| select_as_index(target));
            call.args.iter_mut().for_each(select_as_index);
        }
        Expr::Comprehension(loops) => {
            for part in [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ] {
                select_as_index(part);
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(select_as_index),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| entry_value(&mut entry.expr)),
        Expr::Struct(made) => made.entries.iter_mut().for_each(|entry| entry_value(&mut entry.expr)),
        Expr::Select(select) => {
            select_as_index(&mut select.operand);
            if !select.test {
                let operand = std::mem::take(select.operand.as_mut());
                let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
                let args = vec![operand, IdedExpr { id: tree.id, expr: field }];
                tree.expr = Expr::Call(CallExpr { func_name: INDEX.to_owned(), target: None, args });
            }
        }
    }
}

fn entry_value(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => select_as_index(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            select_as_index(&mut entry.key);
            select_as_index(&mut entry.value);
        }
    }
}
