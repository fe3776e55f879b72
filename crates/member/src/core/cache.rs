//! What the cluster holds of ours: versions and prints, no contents.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use atoll_api::names::condition;
use atoll_engine::few;
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, Namespace, ServiceKey, ServiceName, SliceName};
use atoll_engine::network::Family;
use atoll_engine::time::Time;

use litemap::LiteMap;

use super::event::{MisnamedExport, OwnImport, OwnService, OwnSlice, SeenExport};
use super::object::{
    Attached, ConditionBody, Fingerprint, Fingerprinter, Kind, ObjectName, PropertyName, Version,
};
use super::sync::Epoch;

/// Everything of ours, by service.
#[derive(Debug, Default)]
pub struct Cache {
    /// Objects of ours.
    pub held: BTreeMap<ServiceKey, Held>,
    /// `ServiceExports`, whose conditions are ours.
    pub exports: HashMap<ServiceKey, HeldExport>,
    /// `ServiceExports` with names that no Service can have.
    pub misnamed: BTreeMap<(Namespace, Arc<str>), HeldExport>,
    /// Properties, whoever made them.
    pub properties: BTreeMap<PropertyName, HeldProperty>,
    owner: HashMap<ObjectName, ServiceKey>,
    /// Objects of others with names that ours could need.
    pub foreign: BTreeMap<ObjectName, Epoch>,
    /// Makes prints.
    pub printer: Fingerprinter,
}

/// What is held of one service.
#[derive(Debug, Default)]
pub struct Held {
    /// Derived Services; more than one while a name changes.
    pub services: LiteMap<ServiceName, HeldService>,
    /// The ServiceImport.
    pub import: Option<HeldImport>,
    /// The slices.
    pub slices: LiteMap<SliceName, HeldSlice>,
}

impl Held {
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.import.is_none() && self.slices.is_empty()
    }
}

/// One object as it was last seen.
#[derive(Debug, Clone)]
pub struct Copy {
    /// Which state.
    pub version: Version,
    /// What it says.
    pub print: Fingerprint,
    /// A write was refused because of this state: read before the next.
    pub doubted: bool,
    /// What we wrote last and what came of it: a server may default or drop fields, and asking again changes nothing.
    pub answered: Option<(Fingerprint, Fingerprint)>,
    /// The list in which it was last seen.
    pub epoch: Epoch,
    /// Written since that list began.
    pub fresh: bool,
}

impl Copy {
    /// Whether it says what it should, as far as the server lets it.
    pub fn says(&self, wanted: Fingerprint) -> bool {
        self.print == wanted || self.answered == Some((wanted, self.print))
    }

    /// The copy that replaces this one, and whether that is news; none if we know better. Watches and answers of
    /// writes overtake each other.
    fn newer(
        before: Option<&Self>,
        version: Version,
        print: Fingerprint,
        epoch: Epoch,
    ) -> Option<(Self, bool)> {
        if before.is_some_and(|before| before.version.revision > version.revision) {
            return None;
        }
        let same = before.filter(|before| before.version.uid == version.uid);
        let answered = same.and_then(|before| before.answered);
        let news = same.is_none_or(|before| before.version != version || before.print != print);
        let doubted = !news && same.is_some_and(|before| before.doubted);
        Some((Self { version, print, doubted, answered, epoch, fresh: false }, news))
    }
}

/// A derived Service.
#[derive(Debug)]
pub struct HeldService {
    /// As seen.
    pub copy: Copy,
    /// Whether it has no cluster IP; that can't be changed.
    pub headless: bool,
    /// Its families; the first can't be changed.
    pub families: Vec<Family>,
    /// Its cluster IPs.
    pub ips: Vec<IpAddr>,
}

/// A ServiceImport.
#[derive(Debug)]
pub struct HeldImport {
    /// As seen, but its status.
    pub copy: Copy,
    /// Its stale marks.
    pub stale: Option<Arc<str>>,
    /// Its addresses.
    pub ips: Vec<IpAddr>,
    /// The clusters that it is imported from, as its status says.
    pub sources: Vec<ClusterId>,
    /// What its status says.
    pub status: Fingerprint,
    /// What we wrote last as its status, and what came of it.
    pub status_answered: Option<(Fingerprint, Fingerprint)>,
    /// Since when its conditions are what they are.
    pub since: Vec<Since>,
}

/// How what was seen compares with what was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It has changed.
    News,
    /// It is what it was.
    Same,
    /// We know a later state: the answer to a write has overtaken a list or a watch.
    Older,
}

/// Since when a condition has its status, and what stands for all that it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since(pub Arc<str>, pub Option<bool>, pub Time, pub Fingerprint);

/// A slice.
#[derive(Debug)]
pub struct HeldSlice {
    /// As seen.
    pub copy: Copy,
    /// Which intent it serves.
    pub intent: Intent,
    /// Where it comes from.
    pub source: Option<ClusterId>,
    /// What it hangs on.
    pub attached: Attached,
}

/// A ServiceExport.
#[derive(Debug)]
pub struct HeldExport {
    /// As seen, but only its conditions.
    pub copy: Copy,
    /// Since when they are what they are.
    pub since: Vec<Since>,
    /// What they say, but for the message of `Ready`.
    pub outline: Fingerprint,
}

/// A property.
#[derive(Debug)]
pub struct HeldProperty {
    /// Which state.
    pub version: Version,
    /// Whether we made it.
    pub ours: bool,
    /// Its value.
    pub value: String,
    /// The list in which it was last seen.
    pub epoch: Epoch,
}

/// The times in some conditions.
fn since(conditions: &[ConditionBody], printer: &Fingerprinter) -> Vec<Since> {
    let since = |c: &ConditionBody| Since(c.kind.clone(), c.status, c.since, printer.print(Some(c)));
    conditions.iter().map(since).collect()
}

/// Stands for what conditions of an export say, but for the message of `Ready`: it names other clusters.
pub fn outline(conditions: &[ConditionBody], printer: &Fingerprinter) -> Fingerprint {
    let but = |c: &ConditionBody| (*c.kind != *condition::export::READY).then(|| c.message.clone());
    let said: Vec<_> =
        conditions.iter().map(|c| (c.kind.clone(), c.status, c.reason.clone(), but(c))).collect();
    printer.print(Some(&said))
}

impl Cache {
    /// A derived Service was seen; false if we know better.
    pub fn service(&mut self, seen: OwnService, epoch: Epoch) -> bool {
        let print = self.printer.print(seen.body.as_ref());
        let services = &mut self.held.entry(seen.of).or_default().services;
        let before = services.get(&seen.name.name).map(|held| &held.copy);
        let Some((copy, news)) = Copy::newer(before, seen.version, print, epoch) else { return false };
        let OwnService { headless, families, ips, .. } = seen;
        few::make_room(services, 1);
        services.insert(seen.name.name, HeldService { copy, headless, families, ips });
        news
    }

    /// A slice was seen; false if we know better.
    pub fn slice(&mut self, seen: OwnSlice, epoch: Epoch) -> bool {
        let print = self.printer.print(seen.body.as_ref());
        let slices = &mut self.held.entry(seen.of).or_default().slices;
        let before = slices.get(&seen.name).map(|held| &held.copy);
        let Some((copy, news)) = Copy::newer(before, seen.version, print, epoch) else { return false };
        let OwnSlice { intent, source, attached, .. } = seen;
        few::make_room(slices, 1);
        slices.insert(seen.name, HeldSlice { copy, intent, source, attached });
        news
    }

    /// A ServiceImport was seen; false if we know better.
    pub fn import(&mut self, seen: OwnImport, epoch: Epoch) -> bool {
        let (print, status) =
            (self.printer.print(seen.body.as_ref()), self.printer.print(Some(&seen.status)));
        let slot = &mut self.held.entry(seen.key).or_default().import;
        let Some((copy, news)) =
            Copy::newer(slot.as_ref().map(|held| &held.copy), seen.version, print, epoch)
        else {
            return false;
        };
        let status_answered = slot.as_ref().and_then(|held| held.status_answered);
        let since = since(&seen.status.conditions, &self.printer);
        let (stale, ips, sources) = (seen.stale, seen.ips, seen.status.clusters);
        *slot = Some(HeldImport { copy, stale, ips, sources, status, status_answered, since });
        news
    }

    /// A ServiceExport was seen.
    pub fn export(&mut self, seen: &SeenExport, epoch: Epoch) -> Sight {
        let print = self.printer.print(Some(&seen.conditions));
        let before = self.exports.get(&seen.key).map(|held| &held.copy);
        let Some((copy, news)) = Copy::newer(before, seen.version.clone(), print, epoch) else {
            if let Some(held) = self.exports.get_mut(&seen.key) {
                held.copy.epoch = epoch;
            }
            return Sight::Older;
        };
        let since = since(&seen.conditions, &self.printer);
        let outline = outline(&seen.conditions, &self.printer);
        self.exports.insert(seen.key.clone(), HeldExport { copy, since, outline });
        if news { Sight::News } else { Sight::Same }
    }

    /// A ServiceExport was seen with a name that no Service can have; false if we know better.
    pub fn misnamed(&mut self, seen: MisnamedExport, epoch: Epoch) -> bool {
        let print = self.printer.print(Some(&seen.conditions));
        let at = (seen.namespace, seen.name);
        let before = self.misnamed.get(&at).map(|held| &held.copy);
        let Some((copy, news)) = Copy::newer(before, seen.version, print, epoch) else {
            if let Some(held) = self.misnamed.get_mut(&at) {
                held.copy.epoch = epoch;
            }
            return false;
        };
        let since = since(&seen.conditions, &self.printer);
        self.misnamed.insert(at, HeldExport { copy, since, outline: print });
        news
    }

    /// Forgets a service of which nothing is held.
    pub fn tidy(&mut self, key: &ServiceKey) {
        if self.held.get(key).is_some_and(Held::is_empty) {
            self.held.remove(key);
        }
    }

    /// Notes whose object this is; says whose it was, if that has changed.
    pub fn belongs(&mut self, object: ObjectName, of: &ServiceKey) -> Option<ServiceKey> {
        self.owner.insert(object, of.clone()).filter(|before| before != of)
    }

    /// The service that an object of ours belongs to.
    pub fn owner(&self, object: &ObjectName) -> Option<&ServiceKey> {
        self.owner.get(object)
    }

    /// Forgets a derived Service or a slice, whatever its state. Says of which service it was.
    pub fn drop_object(&mut self, object: &ObjectName) -> Option<ServiceKey> {
        let key = self.owner.remove(object)?;
        self.drop_from(&key, object);
        Some(key)
    }

    /// Forgets a derived Service or a slice of a service.
    pub fn drop_from(&mut self, key: &ServiceKey, object: &ObjectName) {
        if let Some(held) = self.held.get_mut(key) {
            match object.kind {
                Kind::Service => drop(held.services.remove(&*object.name)),
                Kind::Slice => drop(held.slices.remove(&*object.name)),
                Kind::Import => held.import = None,
                Kind::Namespace | Kind::Node | Kind::Export | Kind::Property => {}
            }
        }
        self.tidy(key);
    }
}
