//! What the `ConfigMaps` of all services amount to for one balancer.

use std::collections::BTreeMap;

use atoll_lb::Desired;
use atoll_lb::config::{Config, ConfigError};

use crate::configmap;

/// The configuration of each service, by the name of its `ConfigMap`.
pub(crate) type Services = BTreeMap<String, Config>;

/// What can be used of these texts by their names: where one can't, what could before stays. And what is wrong with which.
pub(crate) fn usable(
    texts: &BTreeMap<String, String>,
    before: &Services,
) -> (Services, Vec<(String, ConfigError)>) {
    let (mut usable, mut wrong) = (Services::new(), Vec::new());
    for (name, text) in texts {
        let checked = Config::read(text).and_then(|config| config.check().map(|_| config));
        let config = match checked {
            Ok(config) => Some(config),
            Err(error) => {
                wrong.push((name.clone(), error));
                before.get(name).cloned()
            }
        };
        usable.extend(config.map(|config| (name.clone(), config)));
    }
    (usable, wrong)
}

/// What a balancer does for all these services: checked, and as one configuration. One that can't be used is left out; [`usable`] says why.
pub(crate) fn together(services: &Services) -> (Desired, Config) {
    let (mut desired, mut whole) = (Desired::default(), Config::default());
    for config in services.values() {
        let Ok(checked) = config.check() else { continue };
        for (listener, entry) in checked.listeners.into_iter().zip(&config.listeners) {
            // The first of two that want the same address and port has it: the hub gives them to one only.
            if desired.listeners.iter().all(|one| one.key() != listener.key()) {
                desired.listeners.push(listener);
                whole.listeners.push(entry.clone());
            }
        }
    }
    (desired, whole)
}

/// What [`together`] put into one configuration, by service again. A listener is called `<namespace>/<service>:<port>`.
pub(crate) fn apart(whole: Config) -> Services {
    let mut services = Services::new();
    for listener in whole.listeners {
        let service = listener.name.rsplit_once(':').and_then(|(service, _)| service.split_once('/'));
        if let Some((namespace, service)) = service {
            let name = configmap::name(namespace, service);
            services.entry(name).or_default().listeners.push(listener);
        }
    }
    services
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{self, tests};

    fn published() -> Config {
        render::config(&tests::key(), &tests::spec(), &tests::vips())
    }

    fn services(list: &[(&str, &Config)]) -> Services {
        list.iter().map(|(name, config)| ((*name).to_owned(), (*config).clone())).collect()
    }

    #[test]
    fn a_text_that_cannot_be_used_leaves_what_could_before() {
        let good = published();
        let (_, whole) = together(&services(&[("lb.shop.web", &good)]));
        let before = apart(whole);
        assert_eq!(before.keys().collect::<Vec<_>>(), ["lb.shop.web"]);
        let later = good.text().replace("\"version\":1", "\"version\":2");
        for (bad, of) in [(&*later, "lb.shop.web"), ("", "lb.shop.web"), ("{", "lb.shop.new")] {
            let texts = BTreeMap::from([(of.to_owned(), bad.to_owned())]);
            let (now, wrong) = usable(&texts, &before);
            assert_eq!(wrong.len(), 1, "{bad}");
            assert_eq!(now.get(of), before.get(of));
        }
        // A field that this version does not know is no reason to refuse the rest.
        let newer = good.text().replace("\"listeners\"", "\"hints\":1,\"listeners\"");
        let texts = BTreeMap::from([("lb.shop.web".to_owned(), newer)]);
        assert_eq!(usable(&texts, &Services::new()), (services(&[("lb.shop.web", &good)]), Vec::new()));
        assert_eq!(usable(&BTreeMap::new(), &before), (Services::new(), Vec::new()), "gone is gone");
    }

    #[test]
    fn one_bad_text_leaves_out_itself_only_and_the_whole_is_a_file() {
        let good = published();
        let texts = BTreeMap::from([
            ("bad".to_owned(), "listeners: [{}]".to_owned()),
            ("good".into(), good.text()),
            ("twin".into(), good.text()),
        ]);
        let (usable, wrong) = usable(&texts, &Services::new());
        assert_eq!((usable.len(), &*wrong[0].0, wrong.len()), (2, "bad", 1));
        let (desired, whole) = together(&usable);
        let file = atoll_lb::config::parse(&whole.text());
        assert_eq!((desired.listeners.len(), &file), (4, &good.check()));
        let mut with_bad = usable;
        let mut bad = good.clone();
        bad.listeners.extend_from_within(..1);
        with_bad.insert("bad".to_owned(), bad);
        assert_eq!(together(&with_bad), (desired, whole));
    }
}
