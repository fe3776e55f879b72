//! What is left of an explanation, if one cluster is asked about. Pure.

use atoll_api::explain::{ClusterPart, Import, Remark, ServiceExplanation, worst};
use atoll_api::names::code::Severity;

use crate::commands::ask::similar;
use crate::failure::Failure;

/// Only what `cluster` has, and what comes from `from`.
pub(super) fn to(
    mut whole: ServiceExplanation,
    cluster: Option<&str>,
    from: Option<&str>,
) -> Result<ServiceExplanation, Failure> {
    if cluster.is_none() && from.is_none() {
        return Ok(whole);
    }
    for name in [cluster, from].into_iter().flatten() {
        known(&whole, name)?;
    }
    if let Some(cluster) = cluster {
        whole.clusters.retain(|part| part.cluster == cluster || Some(part.cluster.as_str()) == from);
    }
    for part in &mut whole.clusters {
        if from.is_some_and(|from| part.cluster != from) {
            part.export = None;
        }
        // What the source itself imports is no answer to what comes from it.
        let both = cluster.zip(from).is_some_and(|(cluster, from)| cluster != from && part.cluster == from);
        for import in std::iter::once(&mut part.import).chain(&mut part.dispatch) {
            import.sources.retain(|source| !both && from.is_none_or(|from| source.cluster == from));
        }
    }
    if let Some(template) = &mut whole.template {
        template.placements.retain(|one| cluster.is_none_or(|cluster| one.cluster == cluster));
    }
    let of_clusters = worst(whole.clusters.iter().flat_map(remarks)).cloned();
    let of_all = whole.verdict.clone();
    whole.verdict = match of_clusters {
        Some(remark) if remark.severity > Severity::Info => remark,
        Some(remark) if of_all.severity > Severity::Info => remark,
        Some(_) | None => of_all,
    };
    Ok(whole)
}

fn known(whole: &ServiceExplanation, name: &str) -> Result<(), Failure> {
    let names: Vec<&str> = whole.clusters.iter().map(|part| part.cluster.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let near = similar(name, names.iter().copied());
    let hint = match near.first() {
        Some(near) => format!("did you mean `{near}`? `atoll clusters` lists the members"),
        None => format!("the members are {}", names.join(", ")),
    };
    Err(Failure::usage(&format!("`{name}` is not a member of the clusterset {}", whole.clusterset), &hint))
}

/// Every reason that a cluster has, but for those of single endpoints.
pub(super) fn remarks(part: &ClusterPart) -> impl Iterator<Item = &Remark> {
    let export = part.export.iter().flat_map(|export| &export.remarks);
    part.member
        .iter()
        .chain(export)
        .chain(of_import(&part.import))
        .chain(part.dispatch.iter().flat_map(of_import))
}

fn of_import(import: &Import) -> impl Iterator<Item = &Remark> {
    import.remarks.iter().chain(import.sources.iter().flat_map(|source| &source.remarks))
}
