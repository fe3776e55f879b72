//! What an error of the API means to us.

use std::time::Duration;

use kube::core::Status;

use crate::core::event::Failure;

/// How long to wait when a server is overloaded and does not say how long.
const OVERLOADED: Duration = Duration::from_secs(1);

/// Sorts an error by what has to be done about it.
pub(crate) fn of(error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else { return Failure::Unreachable(error.to_string()) };
    match status.code {
        409 if status.is_already_exists() => Failure::AlreadyExists,
        409 => Failure::Conflict,
        404 => Failure::NotFound,
        403 if is_terminating(status) => Failure::NamespaceTerminating,
        401 | 403 => Failure::Forbidden(status.message.clone()),
        400 | 413 | 415 | 422 => Failure::Invalid(status.message.clone()),
        429 => Failure::Later(Some(named(status).unwrap_or(OVERLOADED))),
        _ => match named(status) {
            Some(named) => Failure::Later(Some(named)),
            None => Failure::Unreachable(status.message.clone()),
        },
    }
}

/// The HTTP code of the answer, if there was one.
pub fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether there is no such object, or no such kind: the API answers the latter in plain text, without a reason.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn named(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str, details: &serde_json::Value) -> Failure {
        let status = serde_json::json!({"code": code, "reason": reason, "message": "m", "details": details});
        of(&kube::Error::Api(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn an_answer_says_what_is_to_be_done() {
        let none = serde_json::json!({});
        let going = serde_json::json!({"causes": [{"reason": "NamespaceTerminating"}]});
        let wait = serde_json::json!({"retryAfterSeconds": 3});
        for (got, want) in [
            (api(409, "Conflict", &none), Failure::Conflict),
            (api(409, "AlreadyExists", &none), Failure::AlreadyExists),
            (api(404, "NotFound", &none), Failure::NotFound),
            (api(403, "Forbidden", &none), Failure::Forbidden("m".to_owned())),
            (api(403, "Forbidden", &going), Failure::NamespaceTerminating),
            (api(422, "Invalid", &none), Failure::Invalid("m".to_owned())),
            (api(429, "TooManyRequests", &wait), Failure::Later(Some(Duration::from_secs(3)))),
            (api(429, "", &none), Failure::Later(Some(OVERLOADED))),
            (api(503, "", &wait), Failure::Later(Some(Duration::from_secs(3)))),
            (api(500, "", &none), Failure::Unreachable("m".to_owned())),
        ] {
            assert_eq!(got, want);
        }
    }
}
