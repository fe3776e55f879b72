//! Carries out what the core commands. It chooses nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::core::{Call, Command, Core, Event, Note, Outcome, Write};
use crate::provider::{Failure, Key, Provider, ProviderError, async_trait};

/// Calls of a provider at once; the next ones wait.
const AT_ONCE: usize = 16;
/// A provider of our own process has no deadline of its own.
const DEADLINE: Duration = Duration::from_secs(60);

/// Writes the objects that services are.
#[async_trait]
pub trait Services: Send + Sync + 'static {
    /// Writes; the text says why it failed. An object that is gone needs no writing: that is no failure.
    async fn write(&self, key: &Key, write: &Write) -> Result<(), String>;
    /// Tells the user.
    async fn note(&self, key: &Key, note: Note, text: &str);
}

/// Keeps balancers what `events` say they should be, until the sender is dropped. Whoever starts it sends every service that there is first.
pub async fn run(
    provider: Arc<dyn Provider>,
    services: Arc<dyn Services>,
    mut events: mpsc::UnboundedReceiver<Event>,
) {
    let started = Instant::now();
    let mut core = Core::default();
    let (ended, mut ends) = mpsc::unbounded_channel();
    let door = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let now = started.elapsed();
        let wait = core.next().map_or(Duration::from_secs(3600), |at| at.saturating_sub(now));
        let commands = tokio::select! {
            event = events.recv() => match event {
                Some(event) => core.step(event, started.elapsed()),
                None => return,
            },
            Some(event) = ends.recv() => core.step(event, started.elapsed()),
            () = sleep(wait.max(Duration::from_millis(1))) => core.tick(started.elapsed()),
        };
        for command in commands {
            let (provider, services) = (Arc::clone(&provider), Arc::clone(&services));
            let (ended, door) = (ended.clone(), Arc::clone(&door));
            tokio::spawn(async move {
                let event = match command {
                    Command::Call(key, call) => {
                        let answer = guarded(provider, key.clone(), call, &door).await;
                        Event::Answered(key, answer)
                    }
                    Command::Write(key, write) => {
                        let outcome = services.write(&key, &write).await;
                        Event::Wrote(key, outcome)
                    }
                    Command::Note(key, note, text) => return services.note(&key, note, &text).await,
                };
                // The controller listens no more: it is over.
                let _ = ended.send(event);
            });
        }
    }
}

/// One call that ends, whatever the provider does.
async fn guarded(
    provider: Arc<dyn Provider>,
    key: Key,
    call: Call,
    door: &Semaphore,
) -> Result<Outcome, ProviderError> {
    let _place = door.acquire().await;
    // In a task of its own: one that panics must not take its service with it.
    let calling = tokio::spawn(async move {
        match call {
            Call::Get => provider.get(&key).await.map(Outcome::Found),
            Call::Ensure(spec) => provider.ensure(&key, &spec).await.map(Outcome::Made),
            Call::Update(spec) => provider.update(&key, &spec).await.map(Outcome::Made),
            Call::EnsureDeleted => provider.ensure_deleted(&key).await.map(|()| Outcome::Deleted),
        }
    });
    let abort = calling.abort_handle();
    match timeout(DEADLINE, calling).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(died)) => {
            Err(ProviderError { kind: Failure::Passing, text: format!("the provider panicked: {died}") })
        }
        Err(_) => {
            abort.abort();
            let text = format!("the provider did not answer within {} s", DEADLINE.as_secs());
            Err(ProviderError { kind: Failure::NoAnswer, text })
        }
    }
}
