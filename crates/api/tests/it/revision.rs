//! An installed CRD is replaced only if it is older.

use atoll_api::crds;
use atoll_api::names::label;
use atoll_api::revision::{Kept, Labels, MCS, Older, Release, Revision, Verdict, judge};

fn labels(release: Option<&str>, revision: Option<&str>) -> Labels {
    [(label::MCS_RELEASE, release), (label::MCS_REVISION, revision)]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
        .collect()
}

#[test]
fn only_an_older_crd_is_replaced() {
    let ours = Revision { revision: 2, ..MCS }; // v0.5.2, revision 2
    let pre = |text| Release::parse(text).unwrap();
    for (release, revision, want) in [
        (None, None, Verdict::Replace(Older::Unlabelled)),
        (None, Some("7"), Verdict::Replace(Older::Unlabelled)),
        (Some("v0.5.1"), Some("9"), Verdict::Replace(Older::Release(Release::new(0, 5, 1)))),
        (Some("v0.5.1"), None, Verdict::Replace(Older::Release(Release::new(0, 5, 1)))),
        (Some("0.5.1"), Some("0"), Verdict::Replace(Older::Release(Release::new(0, 5, 1)))),
        (Some("v0.5.2-rc.1"), Some("9"), Verdict::Replace(Older::Release(pre("v0.5.2-rc.1")))),
        (Some("v0.5.2"), None, Verdict::Replace(Older::NoRevision)),
        (Some("v0.5.2"), Some("1"), Verdict::Replace(Older::Revision(1))),
        (Some("v0.5.2"), Some("2"), Verdict::Keep(Kept::Same)),
        (Some("v0.5.2"), Some("3"), Verdict::Keep(Kept::NewerRevision(3))),
        (Some("v0.5.10"), Some("0"), Verdict::Keep(Kept::NewerRelease(Release::new(0, 5, 10)))),
        (Some("v0.6.0-rc.1"), None, Verdict::Keep(Kept::NewerRelease(pre("v0.6.0-rc.1")))),
        (Some("main"), Some("0"), unreadable(label::MCS_RELEASE, "main")),
        (Some("v0.5"), Some("0"), unreadable(label::MCS_RELEASE, "v0.5")),
        (Some("v0.5.2"), Some("-1"), unreadable(label::MCS_REVISION, "-1")),
    ] {
        let got =
            judge(&ours, &["v1alpha1", "v1beta1"], &labels(release, revision), &["v1alpha1".to_owned()]);
        assert_eq!(got, want, "{release:?} {revision:?}");
    }
}

fn unreadable(label: &'static str, value: &str) -> Verdict {
    Verdict::Keep(Kept::Unreadable { label, value: value.to_owned() })
}

#[test]
fn crd_that_stores_a_version_we_do_not_have_is_kept() {
    let stored = ["v1beta1".to_owned(), "v1".to_owned()];
    let verdict = judge(&MCS, &["v1alpha1", "v1beta1"], &labels(None, None), &stored);
    assert_eq!(verdict, Verdict::Keep(Kept::StoresUnknownVersion("v1".to_owned())));
}

#[test]
fn releases_are_ordered_as_semver_orders_them() {
    let order = [
        "v0.9.0",
        "v0.10.0-alpha",
        "v0.10.0-alpha.1",
        "v0.10.0-alpha.beta",
        "v0.10.0-beta.2",
        "v0.10.0-beta.11",
        "v0.10.0",
    ];
    let parsed = order.map(|text| Release::parse(text).unwrap());
    assert!(parsed.is_sorted(), "{parsed:?}");
    assert_eq!(parsed.map(|release| release.to_string()), order);
    for wrong in ["", "v", "v1", "v1.2", "v1.2.3.4", "v1.+2.3", "v1..3", "v1.2.3-", "v1.2.3-rc..1", "vv1.2.3"]
    {
        assert_eq!(Release::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn our_own_crds_are_not_replaced_by_themselves() {
    for crd in crds::all() {
        assert_eq!(crds::judge(&crd, &crd), Verdict::Keep(Kept::Same), "{:?}", crd.metadata.name);
        let mut foreign = crd.clone();
        foreign.metadata.labels = None;
        assert_eq!(
            crds::judge(&crd, &foreign),
            Verdict::Replace(Older::Unlabelled),
            "{:?}",
            crd.metadata.name
        );
    }
}
