//! Kubernetes' own resources: one line each, with the rules that a real API server has with them.

use crate::resources::resource::{Names, Resource, Scale, SchemaRef, Stored, Subresource};
use crate::resources::strategy::{Generation, KindRules, Orphans, Special};
use atoll_apimachinery::builtin;
use atoll_apimachinery::meta::NameRule;

/// The verbs of a resource that can only be asked.
const ASK: &[&str] = &["create"];
/// Namespaces are not deleted by the dozen.
const NO_COLLECTIONS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// A resource under construction.
struct Line(Resource);

fn line(group: &str, version: &str, kind: &str, plural: &str, short: &[&str]) -> Line {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let names = Names {
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short: owned(short),
        categories: Vec::new(),
    };
    let schema = SchemaRef::built_in(group, version, kind);
    let stored = Stored { group: group.to_owned(), plural: plural.to_owned(), version: version.to_owned() };
    Line(Resource::new(group, version, names, true, schema, KindRules::default(), Vec::new(), stored))
}

impl Line {
    fn cluster(mut self) -> Self {
        self.0.namespaced = false;
        self
    }

    fn category(mut self, category: &str) -> Self {
        self.0.names.categories.push(category.to_owned());
        self
    }

    fn with(mut self, subresource: Subresource) -> Self {
        self.0.subresources.push(subresource);
        self
    }

    fn status(self) -> Self {
        self.with(Subresource::Status)
    }

    fn scale(self, selector: Option<&str>) -> Self {
        self.with(Subresource::Scale(Scale {
            spec: "spec.replicas".to_owned(),
            status: "status.replicas".to_owned(),
            selector: selector.map(str::to_owned),
        }))
    }

    fn rules(mut self, change: impl FnOnce(&mut KindRules)) -> Self {
        change(&mut self.0.rules);
        self
    }

    fn generation(self, generation: Generation) -> Self {
        self.rules(|rules| rules.generation = generation)
    }

    fn special(self, special: Special) -> Self {
        self.rules(|rules| rules.special = special)
    }

    fn names(self, rule: NameRule) -> Self {
        self.rules(|rules| rules.name = rule)
    }

    fn shows_deleted(self) -> Self {
        self.rules(|rules| rules.shows_deleted = true)
    }

    /// A PUT of an object that is not there makes it.
    fn upsert(self) -> Self {
        self.rules(|rules| rules.create_on_update = true)
    }

    /// A PUT has to say which state it was made from.
    fn conditional(self) -> Self {
        self.rules(|rules| rules.unconditional_update = false)
    }

    fn orphans(self, orphans: Orphans) -> Self {
        self.rules(|rules| rules.orphans = orphans)
    }

    fn verbs(mut self, verbs: &'static [&'static str]) -> Self {
        self.0.verbs = verbs;
        self
    }

    fn stored_as(mut self, group: &str, version: &str) -> Self {
        group.clone_into(&mut self.0.stored.group);
        version.clone_into(&mut self.0.stored.version);
        self
    }
}

/// Every built-in resource.
pub(super) fn all() -> Vec<Resource> {
    [core(), apps(), batch(), others(), policies(), reviews()]
        .into_iter()
        .flatten()
        .map(|mut line| {
            line.0.rules.resets = builtin::resets(&line.0.group, &line.0.names.kind, None);
            line.0.rules.status_resets = builtin::resets(&line.0.group, &line.0.names.kind, Some("status"));
            line.0
        })
        .collect()
}

fn core() -> Vec<Line> {
    use Generation::Spec;
    let v1 = |kind, plural, short: &[&str]| line("", "v1", kind, plural, short);
    vec![
        v1("ConfigMap", "configmaps", &["cm"]).special(Special::ConfigMap),
        v1("Endpoints", "endpoints", &["ep"]).upsert(),
        v1("Event", "events", &["ev"]).upsert().orphans(Orphans::Unsupported).special(Special::Event),
        v1("LimitRange", "limitranges", &["limits"]).upsert(),
        v1("Namespace", "namespaces", &["ns"])
            .cluster()
            .with(Subresource::Finalize)
            .status()
            .names(NameRule::Label)
            .shows_deleted()
            .verbs(NO_COLLECTIONS)
            .special(Special::Namespace),
        v1("Node", "nodes", &["no"]).cluster().status(),
        v1("PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"]).status().shows_deleted(),
        v1("PersistentVolume", "persistentvolumes", &["pv"]).cluster().status().shows_deleted(),
        v1("Pod", "pods", &["po"])
            .category("all")
            .with(Subresource::Attach)
            .with(Subresource::Exec)
            .with(Subresource::Log)
            .status()
            .shows_deleted()
            .generation(Spec)
            .special(Special::Pod),
        v1("PodTemplate", "podtemplates", &[]).shows_deleted().generation(Generation::Template),
        v1("ReplicationController", "replicationcontrollers", &["rc"])
            .category("all")
            .scale(Some("spec.selector"))
            .status()
            .generation(Spec)
            .orphans(Orphans::ByDefault),
        v1("ResourceQuota", "resourcequotas", &["quota"]).status().shows_deleted(),
        v1("Secret", "secrets", &[]).special(Special::Secret),
        v1("ServiceAccount", "serviceaccounts", &["sa"]).with(Subresource::Token).shows_deleted(),
        v1("Service", "services", &["svc"])
            .category("all")
            .status()
            .names(NameRule::Label)
            .shows_deleted()
            .upsert()
            .special(Special::Service),
    ]
}

fn apps() -> Vec<Line> {
    use Generation::Spec;
    let v1 = |kind, plural, short: &[&str]| line("apps", "v1", kind, plural, short);
    let selector = Some("status.selector");
    vec![
        v1("ControllerRevision", "controllerrevisions", &[]),
        v1("DaemonSet", "daemonsets", &["ds"]).category("all").status().generation(Spec),
        v1("Deployment", "deployments", &["deploy"])
            .category("all")
            .scale(selector)
            .status()
            .generation(Generation::SpecOrAnnotations),
        v1("ReplicaSet", "replicasets", &["rs"]).category("all").scale(selector).status().generation(Spec),
        v1("StatefulSet", "statefulsets", &["sts"]).category("all").scale(selector).status().generation(Spec),
    ]
}

fn batch() -> Vec<Line> {
    let v1 = |kind, plural, short: &[&str]| line("batch", "v1", kind, plural, short);
    vec![
        v1("CronJob", "cronjobs", &["cj"]).category("all").status().generation(Generation::Spec),
        v1("Job", "jobs", &[])
            .category("all")
            .status()
            .generation(Generation::Spec)
            .orphans(Orphans::ByDefault)
            .special(Special::Job),
    ]
}

fn others() -> Vec<Line> {
    use Generation::{Once, Spec};
    let hpa = line("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"]);
    let rbac = |kind, plural| {
        line("rbac.authorization.k8s.io", "v1", kind, plural, &[])
            .names(NameRule::PathSegment)
            .upsert()
            .special(Special::Rbac)
    };
    vec![
        line("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[])
            .generation(Generation::ContentOrLabels),
        line("coordination.k8s.io", "v1", "Lease", "leases", &[]).upsert().conditional(),
        rbac("ClusterRoleBinding", "clusterrolebindings").cluster(),
        rbac("ClusterRole", "clusterroles").cluster(),
        rbac("RoleBinding", "rolebindings"),
        rbac("Role", "roles"),
        line("networking.k8s.io", "v1", "IngressClass", "ingressclasses", &[]).cluster().generation(Spec),
        line("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"]).status().generation(Spec),
        line("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", &["netpol"]).generation(Spec),
        hpa.category("all").status(),
        line("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"])
            .status()
            .generation(Spec)
            .conditional(),
        line("events.k8s.io", "v1", "Event", "events", &["ev"])
            .upsert()
            .orphans(Orphans::Unsupported)
            .stored_as("", "v1")
            .special(Special::Event),
        line("storage.k8s.io", "v1", "StorageClass", "storageclasses", &["sc"]).cluster().shows_deleted(),
        line("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"])
            .cluster()
            .generation(Once),
        line(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            &["crd", "crds"],
        )
        .cluster()
        .category("api-extensions")
        .status()
        .generation(Spec)
        .conditional()
        .special(Special::Definition),
        line("apiregistration.k8s.io", "v1", "APIService", "apiservices", &[])
            .cluster()
            .category("api-extensions")
            .status()
            .conditional(),
    ]
}

fn policies() -> Vec<Line> {
    let v1 = |kind, plural| {
        line("admissionregistration.k8s.io", "v1", kind, plural, &[])
            .cluster()
            .category("api-extensions")
            .conditional()
    };
    let spec = Generation::Spec;
    vec![
        v1("MutatingWebhookConfiguration", "mutatingwebhookconfigurations").generation(Generation::Content),
        v1("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
            .status()
            .generation(spec)
            .special(Special::Policy),
        v1("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings").generation(spec),
        v1("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
            .generation(Generation::Content),
    ]
}

fn reviews() -> Vec<Line> {
    let review = |group, kind, plural| line(group, "v1", kind, plural, &[]).cluster().verbs(ASK);
    let authorization = "authorization.k8s.io";
    vec![
        review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
        review("authentication.k8s.io", "TokenReview", "tokenreviews"),
        line(authorization, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", &[]).verbs(ASK),
        review(authorization, "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
        review(authorization, "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
        review(authorization, "SubjectAccessReview", "subjectaccessreviews"),
    ]
}
