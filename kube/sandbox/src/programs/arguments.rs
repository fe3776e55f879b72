//! Arguments as Kubernetes and the documents' programs read them. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// Puts variables in place of `$(NAME)`; `$$(NAME)` is `$(NAME)` itself, and so is one that is not set.
pub(crate) fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let inside = rest.strip_prefix('(').and_then(|after| after.split_once(')'));
        match inside.and_then(|(name, after)| environment.get(name).map(|value| (value, after))) {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => out.push('$'),
        }
    }
    out + rest
}

/// Flags in the form `--name=value` or `--name value`.
#[derive(Debug)]
pub(super) struct Flags(Vec<(String, String)>);

impl Flags {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut flags = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
                .ok_or_else(|| format!("not a flag: {argument}"))?;
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (name, rest.next().ok_or_else(|| format!("--{name} needs a value"))?.clone()),
            };
            flags.push((name.to_owned(), value));
        }
        Ok(Self(flags))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn port(&self, name: &str, default: u16) -> Result<u16, String> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("--{name}: not a port: {text}"))
    }

    pub(super) fn duration(&self, name: &str, default: Duration) -> Result<Duration, String> {
        let Some(text) = self.get(name) else { return Ok(default) };
        duration(text).ok_or_else(|| format!("--{name}: invalid duration (use ms, s, m or h): {text}"))
    }
}

/// `500ms`, `3s`, `2m`, `1h`; or as `sleep` has it, a number of seconds, or of days with a `d`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, seconds) = text.strip_suffix('d').map_or((text, 1.0), |days| (days, 86_400.0));
    match number.parse::<f64>() {
        Ok(count) => Duration::try_from_secs_f64(count * seconds).ok(),
        Err(_) => atoll_duration::parse(text).ok(),
    }
}

/// Splits `host:port`, `[v6]:port` and hosts without a port.
pub(super) fn host_and_port(text: &str, default: u16) -> (String, u16) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host.to_owned(), port),
            Err(_) => (text.to_owned(), default),
        },
        _ => (text.to_owned(), default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_where_they_are_set() {
        let environment = BTreeMap::from([("IP".to_owned(), "127.1.1.1".to_owned())]);
        for (text, want) in [
            ("at $(IP)!", "at 127.1.1.1!"),
            ("$(NOBODY) $IP $", "$(NOBODY) $IP $"),
            ("$$(IP) $(IP", "$(IP) $(IP"),
        ] {
            assert_eq!(expand(text, &environment), want, "{text}");
        }
    }

    #[test]
    fn durations_and_addresses_are_read_as_people_write_them() {
        for (text, want) in [
            ("3s", Some(3000)),
            ("250ms", Some(250)),
            ("2m", Some(120_000)),
            ("1", Some(1000)),
            ("2d", Some(172_800_000)),
            ("x", None),
        ] {
            assert_eq!(duration(text), want.map(Duration::from_millis), "{text}");
        }
        for (text, want) in [
            ("web", ("web", 80)),
            ("web:8080", ("web", 8080)),
            ("::1", ("::1", 80)),
            ("[::1]:9", ("[::1]", 9)),
        ] {
            assert_eq!(host_and_port(text, 80), (want.0.to_owned(), want.1), "{text}");
        }
    }
}
