//! Files that want to read others, or to take all memory. Nothing is read, nothing is called, and it is quick.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::stand;
use crate::{BPMN, codes, deploy, file};

/// The diagnostics that a file is refused with, within a time that no file may exceed.
async fn refused(name: &str, bytes: &[u8]) -> Vec<tidegate::model::Diagnostic> {
    let stand = stand().await;
    let began = Instant::now();
    let found = deploy(&stand, name, bytes).await.unwrap_err();
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{name} took {:?}",
        began.elapsed()
    );
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn case_169_entities_are_refused_and_nothing_is_read_or_called() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "kept-for-myself").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let path = secret.path().display();
    let doctypes = [
        format!(r#"<!DOCTYPE definitions [<!ENTITY x SYSTEM "file://{path}">]>"#),
        format!(r#"<!DOCTYPE definitions [<!ENTITY x SYSTEM "{url}">]>"#),
        format!(r#"<!DOCTYPE definitions SYSTEM "{url}">"#),
        format!(r#"<!DOCTYPE definitions [<!ENTITY % x SYSTEM "{url}">%x;]>"#),
        r#"<!DOCTYPE definitions [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY x "&c;&c;&c;&c;&c;&c;&c;&c;">]>"#.to_owned(),
    ];
    let process = format!(
        r#"<definitions xmlns="{BPMN}" targetNamespace="urn:n"><process id="p" name="&x;" isExecutable="true"><startEvent id="s"/></process></definitions>"#
    );
    let decision = r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="d" name="&x;" namespace="urn:n"/>"#;
    for doctype in &doctypes {
        for (name, body) in [("p.bpmn", process.as_str()), ("d.dmn", decision)] {
            let found = refused(name, format!("{doctype}{body}").as_bytes()).await;
            let said: String = found.iter().map(ToString::to_string).collect();
            assert!(said.contains("DOCTYPE"), "{name}: {said}");
            assert!(!said.contains("kept-for-myself"));
        }
    }
    // An import is a hint to tools; it is not followed.
    let import = format!(
        r#"<import importType="http://www.w3.org/2001/XMLSchema" location="{url}" namespace="urn:far"/><process id="p" isExecutable="true"><startEvent id="s"/></process>"#
    );
    deploy(&stand().await, "p.bpmn", &file(&import)).await.unwrap();
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_169_files_that_are_too_large_or_too_deep_are_refused_at_once() {
    const MIB: usize = 1 << 20;
    let mut large = file("<process id=\"p\" isExecutable=\"true\"/>");
    large.resize(200 * MIB, b' ');
    assert_eq!(codes(&refused("p.bpmn", &large).await), ["too-large"]);
    let found = refused("d.dmn", &large).await;
    assert!(found.iter().all(|found| found.is_error()), "{found:?}");
    let (open, close) = ("<x:a>".repeat(100_000), "</x:a>".repeat(100_000));
    let deep = format!(
        r#"<definitions xmlns="{BPMN}" xmlns:x="urn:x" targetNamespace="urn:n"><process id="p" isExecutable="true"><extensionElements>{open}{close}</extensionElements></process></definitions>"#
    );
    assert_eq!(codes(&refused("p.bpmn", deep.as_bytes()).await), ["too-deep"]);
    let deep = deep.replace(BPMN, "https://www.omg.org/spec/DMN/20191111/MODEL/");
    let found = refused("d.dmn", deep.as_bytes()).await;
    assert!(found.iter().all(|found| found.is_error()), "{found:?}");
}
