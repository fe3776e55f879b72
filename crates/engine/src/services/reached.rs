//! Which clusters import a service, read off the plans of its importers. It depends on no endpoint: a slice change changes nothing here.

use std::sync::Arc;

use crate::facts::Contact;
use crate::names::ClusterId;
use crate::plan::{ImportPlan, WhyAbsent, WhyUntouched};
use crate::reason::ImportReady;
use crate::reason::reach::{NotImported, Reach};

/// Where a service that is exported is imported. What is as it was stays the same object.
pub fn by(imports: &[(&ClusterId, Contact, ImportPlan)], before: Option<Arc<Reach>>) -> Arc<Reach> {
    let mut reach = Reach::default();
    for (id, contact, import) in imports {
        let imports = match import {
            ImportPlan::Present { import, .. } => match import.ready {
                ImportReady::Ready => Ok(()),
                ImportReady::IpFamilyNotSupported { .. } => Err(NotImported::NoFamily),
                ImportReady::NamesTaken { .. } => Err(NotImported::NamesTaken),
                ImportReady::NoPortAsked { .. } => Err(NotImported::NoSuchPort),
            },
            ImportPlan::Absent(WhyAbsent::NoNamespace) => Err(NotImported::NoNamespace),
            ImportPlan::Absent(WhyAbsent::NotAsked) => Err(NotImported::NotAsked),
            ImportPlan::Absent(WhyAbsent::Fenced(_)) => {
                reach.fenced += 1;
                continue;
            }
            ImportPlan::Untouched(WhyUntouched::NamespaceTerminating) => {
                Err(NotImported::NamespaceTerminating)
            }
            ImportPlan::Untouched(WhyUntouched::NotHeard) if contact.lost().is_some() => {
                Err(NotImported::NotHeard)
            }
            ImportPlan::Untouched(
                WhyUntouched::NotHeard
                | WhyUntouched::NothingKnown
                | WhyUntouched::PlacementUnknown
                | WhyUntouched::AuthorRefused, // of MultiClusterServices only
            )
            | ImportPlan::Absent(WhyAbsent::NotExported) => {
                reach.awaited = true;
                continue;
            }
        };
        reach.add(id, imports);
    }
    match before {
        Some(before) if *before == reach => before,
        Some(_) | None => Arc::new(reach),
    }
}
