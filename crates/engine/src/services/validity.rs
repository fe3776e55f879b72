//! Is an export a constituent of its service, and what does it bring?

use crate::facts::{ExportFact, ServiceFact, ServiceType};
use crate::limits::{self, LONGEST_AFFINITY};
use crate::memory::Offer;
use crate::names::ServiceKey;
use crate::reason::Invalid;

/// Judges an export by the Service of its name.
pub fn judge(key: &ServiceKey, export: &ExportFact, service: Option<&ServiceFact>) -> Result<Offer, Invalid> {
    if key.is_kubernetes_api() {
        return Err(Invalid::KubernetesApi);
    }
    let service = service.ok_or(Invalid::NoService)?;
    if service.derived {
        return Err(Invalid::DerivedService);
    }
    match service.service_type {
        ServiceType::ExternalName => return Err(Invalid::ExternalName),
        ServiceType::ClusterIp | ServiceType::NodePort | ServiceType::LoadBalancer => {}
    }
    limits::of_export(export, service).map_err(Invalid::TooMuch)?;
    // No API server takes another, and the derived Services of all importers would be refused with it.
    let timeout = service.client_ip_timeout.filter(|seconds| (1..=LONGEST_AFFINITY).contains(seconds));
    Ok(Offer {
        headless: service.headless,
        ports: service.ports.clone(),
        families: service.families.clone(),
        session_affinity: service.session_affinity,
        client_ip_timeout: timeout,
        internal_traffic_policy: service.internal_traffic_policy,
        traffic_distribution: service.traffic_distribution,
        labels: export.labels.clone(),
        annotations: export.annotations.clone(),
        liveness: export.liveness,
        locality: export.locality,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{export, key, service};

    #[test]
    fn an_affinity_that_no_api_takes_does_not_break_the_import_for_all_clusters() {
        for (said, want) in
            [(Some(0), None), (Some(1), Some(1)), (Some(86_400), Some(86_400)), (Some(u32::MAX), None)]
        {
            let service = ServiceFact { client_ip_timeout: said, ..service(&[("http", 80)]) };
            assert_eq!(judge(&key("shop/web"), &export(1), Some(&service)).unwrap().client_ip_timeout, want);
        }
    }

    #[test]
    fn only_a_service_of_its_own_with_endpoints_can_be_exported() {
        let web = service(&[("http", 80)]);
        let typed = |service_type| ServiceFact { service_type, ..web.clone() };
        for (name, service, want) in [
            ("shop/web", None, Some(Invalid::NoService)),
            ("shop/web", Some(web.clone()), None),
            ("shop/web", Some(typed(ServiceType::NodePort)), None),
            ("shop/web", Some(typed(ServiceType::LoadBalancer)), None),
            ("shop/web", Some(typed(ServiceType::ExternalName)), Some(Invalid::ExternalName)),
            ("shop/web", Some(ServiceFact { derived: true, ..web.clone() }), Some(Invalid::DerivedService)),
            ("default/kubernetes", Some(web.clone()), Some(Invalid::KubernetesApi)),
            ("shop/kubernetes", Some(web.clone()), None),
        ] {
            assert_eq!(judge(&key(name), &export(1), service.as_ref()).err(), want, "{name} {service:?}");
        }
    }
}
