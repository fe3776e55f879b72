//! The one place that makes prose of placement's reasons.

use atoll_api::names::reason::binding;

use super::affinity::Unfit;
use super::select::Nowhere;

impl Nowhere {
    /// One word for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoMembers | Self::NoneFits(_) => binding::NO_CLUSTER_FIT,
            Self::TooFew { .. } | Self::TwoFields => binding::UNSCHEDULABLE,
        }
    }

    /// A sentence for people.
    pub fn text(&self) -> String {
        match self {
            Self::NoMembers => "there is no member cluster".to_owned(),
            Self::NoneFits(unfit) => {
                let each: Vec<_> = unfit.iter().map(|(id, why)| format!("{id} {}", why.text())).collect();
                format!("0/{} clusters fit: {}", unfit.len(), each.join(", "))
            }
            Self::TooFew { field, wanted, found } => {
                format!("the spread constraint by {field} needs at least {wanted}, but {found} fit")
            }
            Self::TwoFields => "spreadConstraints have more than one field besides cluster".to_owned(),
        }
    }
}

impl Unfit {
    /// The end of a sentence that begins with the cluster.
    pub fn text(&self) -> String {
        match self {
            Self::NotNamed => "is not in clusterNames".to_owned(),
            Self::Excluded => "is in exclude".to_owned(),
            Self::Labels => "does not match the label selector".to_owned(),
            Self::Place(field) => format!("does not match the {field}"),
            Self::Tainted { key, effect } => {
                format!("has the taint {key}:{effect}, which the policy does not tolerate")
            }
        }
    }
}
