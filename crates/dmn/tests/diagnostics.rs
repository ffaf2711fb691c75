//! What is wrong in a model is said all at once, with code and place.

use tidegate_dmn::{DecisionCode, parse, parse_all};
use tidegate_expression::{Limits, NoScope, Value};

const HEAD: &str =
    r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" namespace="n" name="n">"#;

/// The findings as `line:column code element`.
fn findings(xml: &str) -> Vec<String> {
    let (_, diagnostics) = parse("test.dmn", xml.as_bytes());
    let finding = |found: &tidegate_model::diagnostic::Diagnostic| {
        assert_eq!(found.resource, "test.dmn");
        assert!(
            !found.is_error() || found.hint.is_some() || found.code == "malformed-xml",
            "{found}"
        );
        let element = found.element_id.as_deref().unwrap_or("-");
        format!("{}:{} {} {element}", found.line, found.column, found.code)
    };
    diagnostics.iter().map(finding).collect()
}

fn check(body: &str, expected: &[&str]) {
    assert_eq!(
        findings(&format!("{HEAD}\n{body}\n</definitions>")),
        expected,
        "{body}"
    );
}

#[test]
fn files_that_are_not_read() {
    for (xml, code) in [
        ("", "empty-file"),
        (" \n ", "empty-file"),
        ("{}", "malformed-xml"),
        ("<definitions>", "malformed-xml"),
        ("<!DOCTYPE d [<!ENTITY a 'b'>]><d/>", "doctype"),
        ("<process/>", "not-dmn"),
        (
            r#"<definitions xmlns="https://example.org/"/>"#,
            "unknown-namespace",
        ),
    ] {
        let (decisions, diagnostics) = parse("x", xml.as_bytes());
        assert!(decisions.is_none(), "{xml}");
        assert_eq!(diagnostics.len(), 1, "{xml}");
        assert_eq!(diagnostics[0].code, code, "{xml}");
    }
    let (_, diagnostics) = parse("x", b"<a>\xff</a>");
    assert_eq!(diagnostics[0].code, "bad-encoding");
}

#[test]
fn all_editions_and_encodings_are_read() {
    for namespace in [
        "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
        "http://www.omg.org/spec/DMN/20180521/MODEL/",
        "https://www.omg.org/spec/DMN/20191111/MODEL/",
        "https://www.omg.org/spec/DMN/20211108/MODEL/",
        "https://www.omg.org/spec/DMN/20230324/MODEL/",
    ] {
        let xml = format!(
            r#"<d:definitions xmlns:d="{namespace}" namespace="n" name="n"><d:decision id="a" name="A"><d:literalExpression>
            <d:text><![CDATA[1 < 2]]></d:text></d:literalExpression></d:decision></d:definitions>"#
        );
        let wide: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(xml.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        for bytes in [xml.as_bytes(), &wide] {
            let (decisions, diagnostics) = parse("x", bytes);
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            let value = decisions
                .unwrap()
                .evaluate("A", &NoScope, &Limits::default())
                .unwrap()
                .value;
            assert_eq!(value, Value::Boolean(true));
        }
    }
}

#[test]
fn findings_have_places() {
    check(
        "<decision id=\"d\" name=\"D\">\n <literalExpression><text>1 +\n  * 2</text></literalExpression></decision>",
        &["4:3 feel-syntax d"],
    );
    check("<decision id=\"d\" name=\"D\"/>", &["2:1 no-logic d"]);
    check(
        r##"<decision id="d" name="D"><informationRequirement><requiredInput href="#x"/></informationRequirement>
<literalExpression typeRef="nothing"><text>1</text></literalExpression></decision>"##,
        &["2:51 dangling-reference d", "3:1 unknown-type d"],
    );
    check(
        r#"<itemDefinition id="t" name="t"><typeRef>t</typeRef></itemDefinition>"#,
        &["2:1 type-cycle t"],
    );
    check(
        r#"<import name="other" namespace="https://example.org/" importType="x"/>"#,
        &["2:1 unknown-import -"],
    );
    check(
        r#"<decision id="d" name="D"><decisionTable hitPolicy="BEST"><input/><output/>
<rule id="r"><inputEntry><text>-</text></inputEntry></rule></decisionTable></decision>"#,
        &[
            "2:27 unknown-hit-policy d",
            "2:59 missing-expression d",
            "3:1 rule-length r",
        ],
    );
    check(
        r#"<decision id="d" name="D"><literalExpression expressionLanguage="javascript"><text>1</text></literalExpression></decision>"#,
        &["2:27 unsupported-language d"],
    );
    check(
        r#"<businessKnowledgeModel id="b" name="B"><encapsulatedLogic kind="Java"/></businessKnowledgeModel>"#,
        &["2:41 external-function b"],
    );
}

#[test]
fn decisions_that_need_each_other() {
    let requires = |from: &str, to: &str| {
        format!(
            "<decision id=\"{from}\" name=\"{from}\"><informationRequirement><requiredDecision href=\"#{to}\"/>\
             </informationRequirement><literalExpression><text>1</text></literalExpression></decision>\n"
        )
    };
    let body = format!(
        "{}{}{}{}",
        requires("a", "b"),
        requires("b", "c"),
        requires("c", "a"),
        requires("d", "a")
    );
    let xml = format!("{HEAD}\n{body}</definitions>");
    assert_eq!(findings(&xml), ["2:1 requirement-cycle a"]);
    let decisions = parse("x", xml.as_bytes()).0.unwrap();
    let error = decisions.evaluate("d", &NoScope, &Limits::default()).unwrap_err();
    assert_eq!(error.code, DecisionCode::Broken);
}

#[test]
fn models_import_each_other() {
    let main = r##"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" namespace="main" name="main">
<import name="lib" namespace="library" importType="https://www.omg.org/spec/DMN/20191111/MODEL/"/>
<decision id="d" name="D"><variable name="D" typeRef="lib.tSize"/>
<informationRequirement><requiredDecision href="library#base"/></informationRequirement>
<knowledgeRequirement><requiredKnowledge href="library#twice"/></knowledgeRequirement>
<literalExpression><text>lib.twice(lib.base)</text></literalExpression></decision></definitions>"##;
    let library = r##"<definitions xmlns="https://www.omg.org/spec/DMN/20180521/MODEL/" namespace="library" name="library">
<itemDefinition name="tSize"><typeRef>number</typeRef></itemDefinition>
<businessKnowledgeModel id="twice" name="twice"><encapsulatedLogic><formalParameter name="x" typeRef="tSize"/>
<literalExpression><text>2 * x</text></literalExpression></encapsulatedLogic></businessKnowledgeModel>
<decision id="base" name="base"><literalExpression><text>21</text></literalExpression></decision></definitions>"##;
    let (decisions, diagnostics) =
        parse_all(&[("main.dmn", main.as_bytes()), ("library.dmn", library.as_bytes())]);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let decisions = decisions.unwrap();
    let evaluated = decisions.evaluate("D", &NoScope, &Limits::default()).unwrap();
    assert_eq!(evaluated.value.to_json(), "42");
    let made: Vec<&str> = evaluated.trail.iter().map(|step| &*step.decision_id).collect();
    assert_eq!(made, ["base", "d"]);
    assert_eq!(
        decisions
            .decisions()
            .map(|decision| decision.id)
            .collect::<Vec<_>>(),
        ["d", "base"]
    );
}
