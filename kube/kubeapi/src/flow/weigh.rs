//! What is heavy, and what is too much. Pure.

use crate::http::request::RequestInfo;

/// From here on a body is read only by those who have a place for it in memory.
pub(crate) const LARGE_BODY: usize = 16 << 10;
/// From here on a body, or the object that it changes, is worth a thread of its own: about a millisecond.
const HEAVY_BODY: usize = 32 << 10;
/// From here on objects are worth it that are listed.
pub(crate) const HEAVY_LIST: usize = 128 << 10;
/// The most that a body may take when it is read.
const MOST_READ: usize = 40 << 20;

/// How a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Always at once: whoever asks whether the API lives must get an answer.
    Health,
    /// It goes on until client or server ends it.
    Long,
    Short,
}

impl Traffic {
    pub(crate) fn of(info: &RequestInfo) -> Self {
        let Some(target) = &info.target else {
            let page = info.path.trim_matches('/').split('/').next().unwrap_or_default();
            return if matches!(page, "healthz" | "livez" | "readyz") { Self::Health } else { Self::Short };
        };
        let follows = || info.query.flag("follow") == Some(true);
        match (info.verb, target.subresource.as_str()) {
            ("watch", _) | (_, "exec" | "attach") => Self::Long,
            (_, "log") if follows() => Self::Long,
            _ => Self::Short,
        }
    }
}

/// The most bytes that the body of a request may have; none are read where there is nothing to say.
pub(crate) fn most_bytes(info: &RequestInfo, most: usize) -> usize {
    match info.verb {
        "get" | "list" | "watch" | "head" | "options" => 0,
        "delete" | "deletecollection" => most.min(64 << 10),
        _ => most,
    }
}

/// What is known of a request before it is carried out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Bytes of its body.
    pub(crate) body: usize,
    /// Bytes of the object that it changes.
    pub(crate) stored: usize,
    /// Bytes of what it lists, as far as they were counted.
    pub(crate) listed: usize,
    /// Rules or policies are asked that cost much.
    pub(crate) dear: bool,
}

impl Load {
    pub(crate) fn is_heavy(self) -> bool {
        self.dear || self.body >= HEAVY_BODY || self.stored >= HEAVY_BODY || self.listed >= HEAVY_LIST
    }
}

/// Is a body worth a thread of its own?
pub(crate) fn is_heavy_body(body: &[u8]) -> bool {
    body.len() >= HEAVY_BODY
}

/// What an answer with one object counts as, if it has to be counted: as a list does. What is made anew of it (YAML, a table) takes
/// many times its bytes.
pub(crate) fn shown(bytes: usize, formed: bool) -> usize {
    match formed {
        true if bytes >= HEAVY_BODY => bytes.saturating_mul(8).max(HEAVY_LIST),
        false if bytes >= HEAVY_LIST => bytes,
        true | false => 0,
    }
}

/// Does this request look at many objects, if there are many?
pub(crate) fn lists(info: &RequestInfo) -> bool {
    match info.verb {
        "deletecollection" => true,
        // A page of a few objects can be long: each may have megabytes.
        "list" => info.named.is_empty(),
        _ => false,
    }
}

/// Would reading this text (JSON or YAML) take too much memory? A map of one field takes some 700 bytes, however short it is
/// written.
pub(crate) fn is_too_much(text: &[u8]) -> bool {
    let (mut quote, mut escaped, mut bytes) = (None, false, text.len());
    for byte in text {
        if let Some(open) = quote {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                _ if *byte == open => quote = None,
                // A quote that is not closed on its line is none, in YAML.
                b'\n' => quote = None,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quote = Some(b'"'),
            b'{' => bytes += 700,
            b'[' => bytes += 64,
            b',' => bytes += 40,
            b'\n' => bytes += 64,
            _ => {}
        }
    }
    bytes > MOST_READ
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn info(method: &Method, path: &str, query: &str) -> RequestInfo {
        RequestInfo::parse(method, path, query).unwrap()
    }

    #[test]
    fn what_goes_on_is_told_from_what_ends() {
        let pod = "/api/v1/namespaces/a/pods/b";
        for (method, path, query, want) in [
            (Method::GET, "/healthz", "", Traffic::Health),
            (Method::GET, "/readyz/ping", "", Traffic::Health),
            (Method::GET, "/livez", "verbose", Traffic::Health),
            (Method::GET, "/healthzz", "", Traffic::Short),
            (Method::GET, "/api/v1/pods", "watch=true", Traffic::Long),
            (Method::GET, "/api/v1/pods", "", Traffic::Short),
            (Method::GET, &format!("{pod}/log"), "follow=true", Traffic::Long),
            (Method::GET, &format!("{pod}/log"), "", Traffic::Short),
            (Method::POST, &format!("{pod}/exec"), "command=sh", Traffic::Long),
            (Method::PATCH, pod, "", Traffic::Short),
        ] {
            assert_eq!(Traffic::of(&info(&method, path, query)), want, "{method} {path}?{query}");
        }
    }

    #[test]
    fn a_body_is_read_only_where_there_is_something_to_say() {
        let most = |method: &Method, path: &str| most_bytes(&info(method, path, ""), 1 << 20);
        assert_eq!(most(&Method::GET, "/api/v1/namespaces/a/pods/b"), 0);
        assert_eq!(most(&Method::GET, "/api/v1/pods"), 0);
        assert_eq!(most(&Method::DELETE, "/api/v1/namespaces/a/pods/b"), 64 << 10);
        assert_eq!(most(&Method::POST, "/api/v1/namespaces/a/pods"), 1 << 20);
    }

    #[test]
    fn small_requests_stay_on_their_thread() {
        assert!(!Load { body: 2000, stored: 3000, listed: 50_000, dear: false }.is_heavy());
        for load in [
            Load { body: 100_000, ..Load::default() },
            Load { stored: 100_000, ..Load::default() },
            Load { listed: 200_000, ..Load::default() },
            Load { dear: true, ..Load::default() },
        ] {
            assert!(load.is_heavy(), "{load:?}");
        }
        let list = |query| lists(&info(&Method::GET, "/api/v1/pods", query));
        for (query, want) in [
            ("", true),
            ("limit=500", true),
            ("limit=1", true),
            ("limit=50&labelSelector=a", true),
            ("fieldSelector=metadata.name%3Da", false),
        ] {
            assert_eq!(list(query), want, "{query}");
        }
    }

    #[test]
    fn one_large_object_counts_as_a_list_does() {
        for (bytes, formed, heavy) in [
            (1000, false, false),
            (1000, true, false),
            (64 << 10, false, false), // as it is stored
            (64 << 10, true, true),   // as YAML or a table
            (1 << 20, false, true),
        ] {
            let listed = shown(bytes, formed);
            assert_eq!(Load { listed, ..Load::default() }.is_heavy(), heavy, "{bytes} {formed}");
        }
    }

    #[test]
    fn many_small_maps_are_too_much_and_long_strings_are_not() {
        let maps = format!("[{}{{}}]", r#"{"a":1},"#.repeat(300_000));
        assert!(is_too_much(maps.as_bytes()));
        let text = format!(r#"{{"data":{{"table":"{}"}}}}"#, "{1,2},".repeat(500_000));
        assert!(!is_too_much(text.as_bytes()));
        let slice =
            format!("[{}]", r#"{"addresses":["10.0.0.1"],"conditions":{"ready":true}},"#.repeat(10_000));
        assert!(!is_too_much(slice.as_bytes()));
    }
}
