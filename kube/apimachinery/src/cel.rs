//! Expressions in CEL, as CRD rules and admission policies use them.

mod bounds;
mod check;
mod convert;
mod rewrite;
mod words;

pub(crate) use check::{check, check_names, fields_of};
pub(crate) use convert::{plain, typed};

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value};
use std::sync::{Arc, LazyLock};

/// The functions of CEL and of Kubernetes; registered once.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut functions = Context::default().with_all();
    functions.add_function("string", string);
    functions
});

/// `string(…)` of a truth value too, which the library leaves out.
fn string(context: &FunctionContext<'_, '_>, This(value): This<Value>) -> Result<Value, ExecutionError> {
    match value {
        Value::Bool(truth) => Ok(Value::String(Arc::new(truth.to_string()))),
        other => kube_cel::cel::functions::string(context, This(other)),
    }
}

/// Most bytes of an expression: far more than anyone writes, and what a parser can stand.
const SOURCE_MOST: usize = 64 * 1024;

/// An expression, compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    tree: IdedExpr,
}

impl Expression {
    /// Compiles a source text, or says why not.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        if source.len() > SOURCE_MOST {
            return Err(format!("the expression is longer than {SOURCE_MOST} bytes"));
        }
        if let Some(why) = bounds::too_deep(source) {
            return Err(why);
        }
        parsed(source).map(|tree| Self { tree })
    }

    /// Does it mention this variable?
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        self.tree.references().has_variable(variable)
    }

    /// Its value with these variables, or why it has none.
    pub(crate) fn value(&self, variables: &[(&str, Value)]) -> Result<Value, String> {
        let mut scope = FUNCTIONS.new_inner_scope();
        for (name, value) in variables {
            scope.add_variable_from_value(*name, value.clone());
        }
        Value::resolve(&self.tree, &scope).map_err(|error| words::of_running(&error))
    }

    /// Its syntax tree.
    pub(crate) fn tree(&self) -> &IdedExpr {
        &self.tree
    }
}

/// Parses on a stack of its own: the parser takes some sixty kilobytes for every bracket.
fn parsed(source: &str) -> Result<IdedExpr, String> {
    const STACK: usize = 16 << 20;
    let parse = || {
        let parser = Parser::default().enable_optional_syntax(true);
        let mut tree = parser.parse(source).map_err(|errors| words::of_parsing(source, &errors))?;
        rewrite::select_as_index(&mut tree);
        if bounds::depth(&tree) > bounds::DEPTH_MOST { Err(bounds::words()) } else { Ok(tree) }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, parse);
        let thread = thread.map_err(|error| format!("no thread to compile in: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the expression can't be compiled".to_owned()))
    })
}

/// A value that may be absent, for rules with `optionalOldSelf`.
pub(crate) fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}
