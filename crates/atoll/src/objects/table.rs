//! Tables as a server makes them, printed as kubectl prints them. Pure.

use serde_json::Value;

use super::text;
use crate::output;

/// How a table is to options.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableOptions {
    /// With the columns that are left out otherwise.
    pub(crate) wide: bool,
    /// With a first column for the cluster, which stands in the rows.
    pub(crate) clusters: bool,
    /// With a column for the namespace, before those of the table.
    pub(crate) namespaces: bool,
    /// Put before names, as `pod/`; for tables of several kinds.
    pub(crate) prefix: String,
}

/// Prints a table, and further rows of it later: columns keep their widths.
#[derive(Debug)]
pub(crate) struct TablePrinter {
    options: TableOptions,
    columns: Vec<Column>,
    widths: Vec<usize>,
    headed: bool,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    shown: bool,
    /// Holds the object's name.
    named: bool,
}

impl TablePrinter {
    pub(crate) fn new(options: TableOptions) -> Self {
        Self { options, columns: Vec::new(), widths: Vec::new(), headed: false }
    }

    /// The text of a `Table`; nothing if it has no rows.
    pub(crate) fn print(&mut self, table: &Value) -> String {
        let list = |field: &str| table[field].as_array().cloned().unwrap_or_default();
        let columns = list("columnDefinitions");
        // Later tables of a watch may come without.
        if !columns.is_empty() {
            self.columns = columns.iter().map(|column| self.column(column)).collect();
        }
        let rows: Vec<Vec<String>> = list("rows").iter().map(|row| self.row(row)).collect();
        if rows.is_empty() {
            return String::new();
        }
        let mut lines = Vec::new();
        if !self.headed {
            self.headed = true;
            lines.push(self.header());
        }
        lines.extend(rows);
        output::columns(&lines, &mut self.widths)
    }

    fn column(&self, column: &Value) -> Column {
        let name = text(column, "/name");
        let shown = self.options.wide || column["priority"].as_i64().unwrap_or(0) == 0;
        let named = text(column, "/format") == "name" || name.eq_ignore_ascii_case("name");
        Column { name: name.to_uppercase(), shown, named }
    }

    fn header(&self) -> Vec<String> {
        let cluster = self.options.clusters.then(|| "CLUSTER".to_owned());
        let namespace = self.options.namespaces.then(|| "NAMESPACE".to_owned());
        let names = self.columns.iter().filter(|column| column.shown).map(|column| column.name.clone());
        cluster.into_iter().chain(namespace).chain(names).collect()
    }

    fn row(&self, row: &Value) -> Vec<String> {
        let cluster = self.options.clusters.then(|| text(row, "/cluster").to_owned());
        let namespace = self.options.namespaces.then(|| text(row, "/object/metadata/namespace").to_owned());
        let cells = row["cells"].as_array().into_iter().flatten().zip(&self.columns);
        let cells = cells.filter(|(_, column)| column.shown).map(|(value, column)| {
            let prefix = if column.named { self.options.prefix.as_str() } else { "" };
            format!("{prefix}{}", cell(value))
        });
        cluster.into_iter().chain(namespace).chain(cells).collect()
    }
}

/// One cell: the first line of a text, anything else as it is. Control characters do not reach the terminal.
fn cell(value: &Value) -> String {
    let plain = |text: &str| text.chars().filter(|letter| !letter.is_control()).collect::<String>();
    match value {
        Value::Null => String::new(),
        Value::String(text) => match text.find(['\n', '\r', '\u{c}']) {
            Some(end) => format!("{}...", plain(&text[..end])),
            None => plain(text),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods() -> Value {
        json!({
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "priority": 0},
                {"name": "Ready", "type": "string", "priority": 0},
                {"name": "Restarts", "type": "integer", "priority": 0},
                {"name": "IP", "type": "string", "priority": 1},
            ],
            "rows": [
                {"cells": ["web-1", "1/1", 0, "127.0.1.1"], "object": {"metadata": {"namespace": "shop"}}},
                {"cells": ["a", "0/1\nmore", 12, null], "object": {"metadata": {"namespace": "default"}}},
            ],
        })
    }

    #[test]
    fn a_table_looks_like_kubectls() {
        let print = |options| TablePrinter::new(options).print(&pods());
        let want = "\
NAME    READY    RESTARTS
web-1   1/1      0
a       0/1...   12
";
        assert_eq!(print(TableOptions::default()), want);
        let want = "\
NAMESPACE   NAME        READY    RESTARTS   IP
shop        pod/web-1   1/1      0          127.0.1.1
default     pod/a       0/1...   12
";
        assert_eq!(
            print(TableOptions { wide: true, clusters: false, namespaces: true, prefix: "pod/".to_owned() }),
            want
        );
    }

    #[test]
    fn rows_of_several_clusters_say_whose_they_are() {
        let mut table = pods();
        (table["rows"][0]["cluster"], table["rows"][1]["cluster"]) = ("paris".into(), "tokyo".into());
        let want = "\
CLUSTER   NAMESPACE   NAME    READY    RESTARTS
paris     shop        web-1   1/1      0
tokyo     default     a       0/1...   12
";
        let options = TableOptions { clusters: true, namespaces: true, ..TableOptions::default() };
        assert_eq!(TablePrinter::new(options).print(&table), want);
    }

    #[test]
    fn further_rows_stand_below_the_first() {
        let mut printer = TablePrinter::new(TableOptions::default());
        printer.print(&pods());
        let later = json!({"rows": [{"cells": ["b", "1/1", 1, ""]}]});
        assert_eq!(printer.print(&later), "b       1/1      1\n");
        assert_eq!(printer.print(&json!({"rows": []})), "");
    }

    #[test]
    fn narrow_columns_are_six_wide() {
        let table = json!({"columnDefinitions": [{"name": "A"}, {"name": "B"}], "rows": [{"cells": [1, 2]}]});
        assert_eq!(TablePrinter::new(TableOptions::default()).print(&table), "A     B\n1     2\n");
    }
}
