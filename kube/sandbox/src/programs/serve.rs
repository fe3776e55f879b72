//! Servers: `jeremyot/serve`, which says who it is, and a web server with one page.

use super::arguments::Flags;
use super::http::{Reply, serve};
use super::{Context, Run, failed, template};
use std::net::IpAddr;

const MESSAGE: &str = "hello from {{env \"POD_NAME\"}} at {{addr}}";
const TEXT: &str = "text/plain";
const HTML: &str = "text/html";

/// Answers `--message` on `--port`, and with `--udp-port` to datagrams.
pub(super) fn message(context: &Context) -> Run {
    let flags = Flags::parse(&context.given());
    let read = flags.and_then(|flags| {
        let udp = flags.get("udp-port").map(|_| flags.port("udp-port", 0)).transpose()?;
        Ok((flags.port("port", 8080)?, udp, flags.get("message").unwrap_or(MESSAGE).to_owned()))
    });
    let (port, udp, message) = match read {
        Ok(read) => read,
        Err(why) => return failed(context, &format!("serve: {why}")),
    };
    let (own, environment) = (context.address.to_string(), context.environment.clone());
    let datagrams = match udp
        .map(|port| super::echo::udp(context, port, template::render(&message, &environment, &own).into()))
    {
        Some(Err(why)) => return failed(context, &format!("serve: {why}")),
        Some(Ok(run)) => run,
        None => Box::pin(std::future::pending()),
    };
    let connections = listen(context, port, move |_, address| {
        (200, TEXT, template::render(&message, &environment, &address.to_string()) + "\n")
    });
    Box::pin(async move {
        tokio::select! {
            code = connections => code,
            code = datagrams => code,
        }
    })
}

/// A small page on port 80.
pub(super) fn page(context: &Context) -> Run {
    let pod = context.pod.clone();
    listen(context, 80, move |path, address| match path {
        "/" | "/index.html" => (
            200,
            HTML,
            format!(
                "<!doctype html>\n<title>{pod}</title>\n<h1>It works</h1>\n<p>This is {pod} at {address}.</p>\n"
            ),
        ),
        _ => (404, HTML, "<!doctype html>\n<title>404</title>\n<h1>Not found</h1>\n".to_owned()),
    })
}

fn listen(
    context: &Context,
    port: u16,
    reply: impl Fn(&str, IpAddr) -> Reply + Send + Sync + 'static,
) -> Run {
    match context.network.listen_tcp(context.at(port)) {
        Ok((listener, place)) => {
            context.note(&place);
            Box::pin(async move {
                let _place = place;
                serve(listener, reply).await
            })
        }
        Err(error) => failed(context, &format!("cannot listen on TCP port {port}: {error}")),
    }
}
