//! Components that stop, die or freeze.

use super::Fault;
use crate::cluster::Cluster;
use crate::component::Component;
use crate::error::{Error, Result};
use crate::process::Process;
use rustix::process::Signal;
use std::time::Duration;

/// How long a component gets to stop by itself.
const GRACE: Duration = Duration::from_secs(15);

impl Cluster {
    /// Ends `component` politely; healing starts it again.
    pub fn stop(&self, component: Component) -> Result<Fault> {
        self.running(component)?.end(GRACE)?;
        Ok(self.down(component, "stopped"))
    }

    /// Ends `component` at once; healing starts it again.
    pub fn kill(&self, component: Component) -> Result<Fault> {
        self.running(component)?.kill()?;
        Ok(self.down(component, "killed"))
    }

    /// Ends `component` politely and starts it again.
    pub fn restart(&self, component: Component) -> Result<()> {
        self.stop(component)?.heal()
    }

    /// Freezes `component`: it keeps its sockets and answers nothing. Healing lets it go on.
    pub fn freeze(&self, component: Component) -> Result<Fault> {
        let process = self.running(component)?;
        process.freeze()?;
        let what = format!("{} of {} frozen", component.name(), self.name());
        Ok(Fault::new(what, move || thaw(process)))
    }

    fn running(&self, component: Component) -> Result<Process> {
        self.process(component).ok_or_else(|| {
            Error::refused(
                format!("{} of {} does not run", component.name(), self.name()),
                "another fault may have ended it: heal that first",
            )
        })
    }

    fn down(&self, component: Component, how: &str) -> Fault {
        let cluster = self.clone();
        Fault::new(format!("{} of {} {how}", component.name(), self.name()), move || {
            if cluster.process(component).is_none() {
                cluster.start(component)?;
            }
            Ok(())
        })
    }
}

/// The program that put the component into its namespaces stops when the component does, so wake both.
fn thaw(process: Process) -> Result<()> {
    let parent = process.parent();
    process.signal(Signal::CONT)?;
    parent.map_or(Ok(()), |parent| parent.signal(Signal::CONT))
}
