//! Which images are built in. The one table that pods, messages and documents are made from.

/// What runs for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Serve,
    Request,
    Echo,
    Web,
    Tools,
    Pause,
    /// A command of this machine.
    Process(String),
}

/// An image that the sandbox knows, under any tag.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    /// Its name without tag.
    pub image: &'static str,
    /// What it does here.
    pub what: &'static str,
    program: Program,
}

/// What an image that runs a local command begins with.
const PROCESS: &str = "process:";

/// Every image that is built in.
pub const BUILT_IN: [BuiltIn; 9] = [
    image("jeremyot/serve", "answers HTTP on --port (8080) with --message", Program::Serve),
    image("jeremyot/request", "asks --address over HTTP for --duration", Program::Request),
    image("alpine/socat", "answers TCP or UDP as its LISTEN and SYSTEM:echo arguments say", Program::Echo),
    image("nginx", "answers HTTP on port 80 with a small page", Program::Web),
    image("httpd", "answers HTTP on port 80 with a small page", Program::Web),
    image("nicolaka/netshoot", "sleeps; exec has nc, nslookup, dig, curl, wget", Program::Tools),
    image("busybox", "sleeps; exec has nc, nslookup, wget", Program::Tools),
    image("alpine", "sleeps; exec has nc, nslookup, wget", Program::Tools),
    image("pause", "waits", Program::Pause),
];

const fn image(image: &'static str, what: &'static str, program: Program) -> BuiltIn {
    BuiltIn { image, what, program }
}

/// An image that the sandbox can't run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the sandbox has no container runtime and can't pull \"{image}\": built in are {}; or use \"process:<command>\", which runs a command of this machine",
    names()
)]
pub struct UnknownImage {
    /// The image as the pod has it.
    pub image: String,
}

fn names() -> String {
    BUILT_IN.map(|one| one.image).join(", ")
}

/// What runs for an image.
pub(crate) fn find(image: &str) -> Result<Program, UnknownImage> {
    if let Some(line) = image.strip_prefix(PROCESS) {
        return Ok(Program::Process(line.trim().to_owned()));
    }
    let name = plain(image);
    let known = BUILT_IN.into_iter().find(|known| known.image == name);
    known.map(|known| known.program).ok_or_else(|| UnknownImage { image: image.to_owned() })
}

/// The name without registry, tag and digest.
fn plain(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let name = name[last..].find(':').map_or(name, |colon| &name[..last + colon]);
    let name =
        ["docker.io/", "registry.k8s.io/"].iter().find_map(|host| name.strip_prefix(host)).unwrap_or(name);
    name.strip_prefix("library/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_name_whatever_its_tag() {
        for (image, want) in [
            ("jeremyot/serve:0a40de8", Some(Program::Serve)),
            ("docker.io/jeremyot/serve", Some(Program::Serve)),
            ("docker.io/library/nginx:1.27@sha256:00", Some(Program::Web)),
            ("registry.k8s.io/pause:3.10", Some(Program::Pause)),
            ("process:python3 -m http.server", Some(Program::Process("python3 -m http.server".to_owned()))),
            ("host:5000/nginx", None),
            ("postgres:17", None),
        ] {
            assert_eq!(find(image).ok(), want, "{image}");
        }
    }

    #[test]
    fn who_asks_for_another_image_is_told_which_there_are() {
        let text = find("postgres:17").unwrap_err().to_string();
        for part in ["postgres:17", "jeremyot/serve", "nginx", "process:<command>"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
