//! Prefixes, CDATA, comments: the same said in other letters.

use crate::support::stand;
use crate::{BPMN, content, deploy};

#[tokio::test(flavor = "multi_thread")]
async fn case_162_a_model_is_the_same_under_every_prefix() {
    let body = r#"<@definitions xmlns@="NS" targetNamespace="urn:n"><@process id="p" isExecutable="true">
        <@startEvent id="s"/><@exclusiveGateway id="g" default="b"/><@task id="t"/><@endEvent id="e"/>
        <@sequenceFlow id="f" sourceRef="s" targetRef="g"/><@sequenceFlow id="b" sourceRef="g" targetRef="e"/>
        <@sequenceFlow id="a" sourceRef="g" targetRef="t"><@conditionExpression>=n = 1</@conditionExpression></@sequenceFlow>
        </@process></@definitions>"#;
    let mut seen = Vec::new();
    for prefix in ["bpmn:", "bpmn2:", "semantic:", ""] {
        let colon = if prefix.is_empty() { "" } else { ":" };
        let declared = format!("xmlns{colon}{}=", prefix.trim_end_matches(':'));
        let text = body
            .replace("xmlns@=", &declared)
            .replace("NS", BPMN)
            .replace('@', prefix);
        let stand = stand().await;
        let deployed = deploy(&stand, "p.bpmn", text.as_bytes()).await.unwrap();
        assert!(deployed.warnings.is_empty(), "{prefix}: {:?}", deployed.warnings);
        let mut ways = Vec::new();
        for n in [1, 2] {
            let instance = stand.run("p", &format!(r#"{{"n": {n}}}"#)).await.instance;
            stand.idle().await;
            ways.push(stand.events(instance).await);
        }
        let without: Vec<_> = content(text.as_bytes())
            .into_iter()
            .map(|line| line.replace(prefix, ""))
            .collect();
        seen.push((without, ways));
    }
    assert!(seen.iter().all(|other| *other == seen[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_163_a_text_is_the_same_as_cdata_as_entities_and_between_comments() {
    let spellings = [
        "<![CDATA[=if n < 2 & 'x y' then 1  else 2]]>",
        "=if n &lt; 2 &amp; 'x y' then 1  else 2",
        "=if n <!-- a comment -->&#60; 2 <![CDATA[&]]> 'x<?pi?> y' then 1  else<!-- --> 2",
        "\n   =if n &lt; 2 &#x26; 'x y' then 1  else 2  \n",
    ];
    let places = ["documentation", "script", "conditionExpression"];
    let mut texts = Vec::new();
    for spelling in spellings {
        let text = format!(
            r#"<b:definitions xmlns:b="{BPMN}" targetNamespace="urn:n"><b:process id="p" isExecutable="true"><b:documentation>{spelling}</b:documentation>
            <b:startEvent id="s"/><b:scriptTask id="t" scriptFormat="x"><b:script>{spelling}</b:script></b:scriptTask>
            <b:sequenceFlow id="f" sourceRef="s" targetRef="t"><b:conditionExpression>{spelling}</b:conditionExpression></b:sequenceFlow>
            </b:process></b:definitions>"#
        );
        let parsed = tidegate_bpmn::parse("p.bpmn", text.as_bytes(), &Default::default());
        let document = parsed.document.expect("a document");
        for place in places {
            let found = document.elements.iter().find(|element| element.tag == place);
            // White space around a text says nothing; the one within does.
            texts.push(found.expect(place).text.trim().to_owned());
        }
    }
    let expected = "=if n < 2 & 'x y' then 1  else 2";
    assert_eq!(texts, vec![expected; spellings.len() * places.len()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_163_a_condition_in_cdata_is_evaluated() {
    let conditions = ["<![CDATA[=n < 2]]>", "=n &lt; 2", " =n <!-- less -->&lt; 2 "];
    for condition in conditions {
        let text = format!(
            r#"<b:definitions xmlns:b="{BPMN}" targetNamespace="urn:n"><b:process id="p" isExecutable="true"><b:startEvent id="s"/>
            <b:exclusiveGateway id="g" default="d"/><b:endEvent id="low"/><b:endEvent id="high"/><b:sequenceFlow id="f" sourceRef="s" targetRef="g"/>
            <b:sequenceFlow id="d" sourceRef="g" targetRef="high"/>
            <b:sequenceFlow id="c" sourceRef="g" targetRef="low"><b:conditionExpression>{condition}</b:conditionExpression></b:sequenceFlow>
            </b:process></b:definitions>"#
        );
        let stand = stand().await;
        deploy(&stand, "p.bpmn", text.as_bytes()).await.unwrap();
        for (n, end) in [(1, "low"), (2, "high")] {
            let instance = stand.run("p", &format!(r#"{{"n": {n}}}"#)).await.instance;
            stand.idle().await;
            assert_eq!(
                stand.times(instance, &format!("ElementCompleted {end}")).await,
                1,
                "{condition}"
            );
        }
    }
}
