//! Expressions in CEL, as CRD rules and admission policies use them.

mod bounds;
mod check;
mod convert;
mod cost;
mod program;
mod rewrite;
mod run;
mod words;

pub(crate) use check::{check, check_names, fields_of};
pub(crate) use convert::{plain, typed};
pub use cost::Budget;
pub(crate) use cost::{DEAR, Exceeded};

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
    program: program::Node,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It fails with these values.
    Failed(String),
    /// It cost too much before it had one.
    Exceeded(Exceeded),
}

impl Failure {
    /// What is said of it.
    pub(crate) fn into_words(self) -> String {
        match self {
            Self::Failed(why) => why,
            Self::Exceeded(exceeded) => exceeded.words().to_owned(),
        }
    }
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
        parsed(source).map(|tree| Self { program: program::Node::of(&tree), tree })
    }

    /// May it cost much even where the input is small?
    pub(crate) fn is_dear(&self) -> bool {
        program::nesting(&self.tree) > 1
    }

    /// Does it mention this variable?
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        self.tree.references().has_variable(variable)
    }

    /// Its value with these variables, or why it has none. What it costs is taken from the budget.
    pub(crate) fn value(&self, variables: &[(&str, Value)], budget: &mut Budget) -> Result<Value, Failure> {
        run::run(&self.program, variables, budget).map_err(|stop| match stop {
            run::Stop::Failed(error) => Failure::Failed(words::of_running(&error)),
            run::Stop::Dear(exceeded) => Failure::Exceeded(exceeded),
        })
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
