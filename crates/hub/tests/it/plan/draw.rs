//! Draws what may happen: objects applied and deleted in members and in the hub, so that names, ports and addresses clash often.

use serde_json::{Value, json};

/// Some changes at once.
pub(super) type Step = Vec<Change>;

/// A change.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// Which member; none is the hub.
    pub(super) member: Option<usize>,
    pub(super) delete: bool,
    pub(super) object: Value,
}

/// Numbers from a seed: the same on every machine.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, many: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap_or_default() % many
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(super) fn step(&mut self, members: usize) -> Step {
        if self.below(20) == 0 {
            return vec![self.sharing_policy()];
        }
        let (member, namespace, name) =
            (self.below(members), self.one(&["shop", "shop", "bank"]), self.one(&["web", "api"]));
        let at = |kind: &str, api: &str, name: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        let mut changes = Vec::new();
        let mut change = |delete, object| changes.push(Change { member: Some(member), delete, object });
        let service = self.service(at("Service", "v1", name));
        let slice_name = format!("{name}-{}", self.below(2));
        let slice = self.slice(at("EndpointSlice", "discovery.k8s.io/v1", &slice_name), name, member);
        let mut export = at("ServiceExport", "multicluster.x-k8s.io/v1beta1", name);
        if self.below(3) == 0 {
            export["spec"] = json!({"exportedLabels": {"team": self.one(&["red", "blue"])}});
        }
        match self.below(12) {
            0 | 1 => [service, slice, export].into_iter().for_each(|object| change(false, object)),
            2 => change(false, service),
            3..=5 => change(false, slice),
            6 => change(false, export),
            7 => [service, export].into_iter().for_each(|object| change(false, object)),
            8 => change(true, service),
            9 => change(true, slice),
            10 => change(true, export),
            _ => {
                change(false, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bank"}}));
            }
        }
        changes
    }

    fn service(&mut self, mut object: Value) -> Value {
        let admin = json!({"name": "admin", "port": self.one(&[81, 82]), "protocol": "TCP"});
        let http = json!({"name": "http", "port": self.one(&[80, 80, 88]), "protocol": "TCP"});
        let ports = if self.below(3) == 0 { vec![http, admin] } else { vec![http] };
        object["spec"] = json!({"ports": ports, "sessionAffinity": self.one(&["None", "None", "ClientIP"])});
        if self.below(6) == 0 {
            object["spec"]["clusterIP"] = "None".into();
        }
        object
    }

    fn slice(&mut self, mut object: Value, of: &str, member: usize) -> Value {
        let address = |member: usize, number: usize| format!("10.{}.0.{}", member + 1, number + 1);
        let endpoints: Vec<Value> = (0..self.below(4))
            .map(|number| json!({"addresses": [address(member, number)], "conditions": {"ready": self.below(4) > 0}}))
            .collect();
        object["metadata"]["labels"] = json!({"kubernetes.io/service-name": of});
        object["addressType"] = "IPv4".into();
        object["ports"] = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
        object["endpoints"] = endpoints.into();
        object
    }

    fn sharing_policy(&mut self) -> Change {
        let into = self.one(&[&["member1", "member2"][..], &["member3"], &["*"]]);
        let object = json!({"apiVersion": "atoll.dev/v1alpha1", "kind": "SharingPolicy", "metadata": {"name": "shop"},
            "spec": {"namespaces": ["shop"], "exportFrom": ["*"], "importInto": into}});
        Change { member: None, delete: self.below(2) == 0, object }
    }
}
