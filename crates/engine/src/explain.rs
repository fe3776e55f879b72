//! For one importer: each candidate endpoint of a service, and the fact that let it in or kept it out.

use std::net::IpAddr;

use crate::facts::EndpointConditions;
use crate::names::{ClusterId, SliceName};
use crate::network::AddressRefused;
use crate::plan::{ImportPlan, Plan, SlicesFrom, Unknown, WhyAbsent, WhyNothing, WhyUntouched};
use crate::reason::{Kept, SliceNote};

/// What an importer has of a service, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation {
    /// It imports the service; these are the candidates.
    Imports(Vec<Candidate>),
    /// It does not.
    DoesNot(WhyAbsent),
    /// It is left alone.
    LeftAlone(WhyUntouched),
    /// It is no member.
    NoMember,
}

/// An endpoint, or a source as a whole, and its fate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidate {
    /// An address that is in.
    In {
        /// Its cluster.
        source: ClusterId,
        /// Its slice, by the name it has there.
        slice: SliceName,
        /// The address.
        address: IpAddr,
        /// Its conditions: consumers look at them.
        conditions: EndpointConditions,
        /// Why it is in.
        why: Kept,
    },
    /// An address that is out.
    Refused {
        /// Its cluster.
        source: ClusterId,
        /// Its slice, by the name it has there.
        slice: SliceName,
        /// The address.
        address: IpAddr,
        /// Why it is out.
        why: AddressRefused,
    },
    /// All that a source has is out.
    Nothing {
        /// The source.
        source: ClusterId,
        /// Why.
        why: WhyNothing,
    },
    /// What a source has is as it was.
    AsItWas {
        /// The source.
        source: ClusterId,
        /// Why.
        why: Unknown,
    },
}

/// Reads off a plan what an importer gets.
pub fn explain(plan: &Plan, importer: &ClusterId) -> Explanation {
    let slices = match plan.clusters.get(importer).map(|cluster| &cluster.import) {
        None => return Explanation::NoMember,
        Some(ImportPlan::Absent(why)) => return Explanation::DoesNot(*why),
        Some(ImportPlan::Untouched(why)) => return Explanation::LeftAlone(*why),
        Some(ImportPlan::Present { slices, .. }) => slices,
    };
    let mut candidates = Vec::new();
    for (source, from) in &**slices {
        let source = source.clone();
        match from {
            SlicesFrom::Nothing(why) => candidates.push(Candidate::Nothing { source, why: *why }),
            SlicesFrom::KeepWhatIsThere(why) => candidates.push(Candidate::AsItWas { source, why: *why }),
            SlicesFrom::Exactly(list, why) => {
                for slice in &**list {
                    for endpoint in &slice.endpoints {
                        candidates.extend(endpoint.addresses.iter().map(|&address| Candidate::In {
                            source: source.clone(),
                            slice: slice.original.clone(),
                            address,
                            conditions: endpoint.conditions,
                            why: *why,
                        }));
                    }
                    for note in &slice.notes {
                        match note {
                            &SliceNote::AddressRefused { address, why } => {
                                let (source, slice) = (source.clone(), slice.original.clone());
                                candidates.push(Candidate::Refused { source, slice, address, why });
                            }
                            SliceNote::PortRenamed { .. } | SliceNote::PortDropped { .. } => {}
                        }
                    }
                }
            }
        }
    }
    Explanation::Imports(candidates)
}
