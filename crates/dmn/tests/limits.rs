//! What comes from outside must not crash, hang or eat memory. Every case runs on a small stack.

use std::fmt::Write;
use std::time::{Duration, Instant};

use tidegate_dmn::{Decisions, parse};
use tidegate_expression::{Limits, NoScope, Value};

/// Well below the 2 MiB of a usual thread. Builds with optimisation need a fraction of it.
const STACK: usize = 1280 << 10;
/// Generous: the machine may be busy, and what has no limit takes minutes.
const QUICK: Duration = Duration::from_secs(60);

const HEAD: &str =
    r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" namespace="n" name="n">"#;

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let started = Instant::now();
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(test)
        .unwrap()
        .join()
        .unwrap();
    assert!(started.elapsed() < QUICK, "took {:?}", started.elapsed());
}

fn model(body: &str) -> Decisions {
    let (decisions, diagnostics) = parse("x", format!("{HEAD}{body}</definitions>").as_bytes());
    let errors: Vec<_> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .take(3)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    decisions.unwrap()
}

fn code(decisions: &Decisions, decision: &str) -> &'static str {
    match decisions.evaluate(decision, &NoScope, &Limits::default()) {
        Ok(evaluated) => panic!("{}", evaluated.value),
        Err(error) => error.code.as_str(),
    }
}

#[test]
fn hostile_files_are_refused() {
    on_a_small_stack(|| {
        let code = |xml: &str| {
            let (_, diagnostics) = parse("x", xml.as_bytes());
            diagnostics
                .first()
                .map(|diagnostic| diagnostic.code.clone())
                .unwrap_or_default()
        };
        assert_eq!(code(&"<a>".repeat(100_000)), "too-deep");
        let mut attributes = "<a ".to_owned();
        (0..100_000).for_each(|number| write!(attributes, "a{number}='' ").unwrap());
        assert_eq!(code(&format!("{attributes}/>")), "too-many-attributes");
        assert_eq!(code(&"<a xmlns:x='y'>".repeat(10_000)), "too-many-namespaces");
        assert_eq!(code(&" ".repeat(17 << 20)), "file-too-large");
        assert_eq!(
            code(&format!("<a>{}</a>", "<b/>".repeat(1_100_000))),
            "too-many-nodes"
        );
        for part in ["<", "<a b='", "<!--", "<![CDATA[", "<?", "&", "<a", "</a>", "]]>"] {
            code(&part.repeat(20_000));
        }
        let deep = |count: usize| {
            let open = "<list>".repeat(count);
            let close = "</list>".repeat(count);
            format!("{HEAD}<decision id=\"d\" name=\"d\">{open}{close}</decision></definitions>")
        };
        assert_eq!(code(&deep(60)), "");
        assert_eq!(code(&deep(100)), "too-deep");
        assert_eq!(code(&deep(100_000)), "too-deep");
    });
}

#[test]
fn runaway_functions_end() {
    on_a_small_stack(|| {
        let knowledge = |body: &str| {
            model(&format!(
                r##"<businessKnowledgeModel id="f" name="f"><encapsulatedLogic><formalParameter name="x"/>{body}
                </encapsulatedLogic><knowledgeRequirement><requiredKnowledge href="#f"/></knowledgeRequirement>
                </businessKnowledgeModel><decision id="d" name="d">
                <knowledgeRequirement><requiredKnowledge href="#f"/></knowledgeRequirement>
                <literalExpression><text>f(1)</text></literalExpression></decision>"##
            ))
        };
        let literal = |text: &str| format!("<literalExpression><text>{text}</text></literalExpression>");
        assert_eq!(
            code(&knowledge(&literal("f(x + 1)")), "d"),
            "expression-depth-limit"
        );
        assert_eq!(
            code(&knowledge(&literal("[f(x), f(x)]")), "d"),
            "expression-depth-limit"
        );
        // As much as fits inside each other between one call and the next.
        let nested = |inner: &str| {
            let open = "<context><contextEntry>".repeat(20);
            let close = "</contextEntry></context>".repeat(20);
            format!("{open}{inner}{close}")
        };
        assert_eq!(
            code(&knowledge(&nested(&literal("f(x)"))), "d"),
            "expression-depth-limit"
        );
        let table = "<decisionTable><input><inputExpression><text>f(x)</text></inputExpression></input><output/>\
                     <rule><inputEntry><text>f(?)</text></inputEntry><outputEntry><text>1</text></outputEntry></rule>\
                     </decisionTable>";
        assert_eq!(code(&knowledge(table), "d"), "expression-depth-limit");
        let invocation = "<invocation><literalExpression><text>f</text></literalExpression><binding><parameter name=\"x\"/>\
                          <literalExpression><text>1</text></literalExpression></binding></invocation>";
        assert_eq!(code(&knowledge(invocation), "d"), "expression-depth-limit");
        let filter = format!(
            "<filter><in>{}</in><match>{}</match></filter>",
            literal("[1]"),
            literal("f(item)")
        );
        assert_eq!(code(&knowledge(&filter), "d"), "expression-depth-limit");
        let branches = literal("if x > 20 then 1 else f(x + 1) + f(x + 1)");
        assert_eq!(code(&knowledge(&branches), "d"), "expression-step-limit");
    });
}

#[test]
fn a_service_that_needs_itself_ends() {
    on_a_small_stack(|| {
        let decisions = model(
            r##"<decisionService id="s" name="s"><outputDecision href="#d"/></decisionService>
            <decision id="d" name="d"><knowledgeRequirement><requiredKnowledge href="#s"/></knowledgeRequirement>
            <literalExpression><text>s()</text></literalExpression></decision>"##,
        );
        assert_eq!(code(&decisions, "d"), "expression-depth-limit");
    });
}

#[test]
fn limits_hold_across_decisions() {
    on_a_small_stack(|| {
        // Each decision is cheap by itself; together they are not.
        let decision = |number: usize, text: &str| {
            let requirement = match number {
                0 => String::new(),
                _ => format!(
                    "<informationRequirement><requiredDecision href=\"#d{}\"/></informationRequirement>",
                    number - 1
                ),
            };
            format!(
                "<decision id=\"d{number}\" name=\"d{number}\">{requirement}<literalExpression><text>{text}</text>\
                 </literalExpression></decision>"
            )
        };
        let chain = |count: usize, text: &dyn Fn(usize) -> String| -> String {
            (0..count).map(|number| decision(number, &text(number))).collect()
        };
        let steps = chain(20, &|_| "count(for i in 1..100000 return i)".to_owned());
        assert_eq!(code(&model(&steps), "d19"), "expression-step-limit");
        let doubled = |number: usize| match number {
            0 => "\"0123456789abcdef\"".to_owned(),
            number => format!("d{} + d{}", number - 1, number - 1),
        };
        assert_eq!(code(&model(&chain(40, &doubled)), "d39"), "expression-size-limit");
        let nested = |number: usize| match number {
            0 => "[]".to_owned(),
            number => format!("[d{}]", number - 1),
        };
        assert_eq!(
            code(&model(&chain(300, &nested)), "d299"),
            "expression-depth-limit"
        );
        let long = |number: usize| match number {
            0 => "0".to_owned(),
            number => format!("d{} + 1", number - 1),
        };
        let decisions = model(&chain(20_000, &long));
        let evaluated = decisions
            .evaluate("d19999", &NoScope, &Limits::default())
            .unwrap();
        assert_eq!(evaluated.value, Value::from(19_999i64));
        assert_eq!(
            evaluated.trail.last().map(|step| &*step.decision_id),
            Some("d19999")
        );
    });
}

#[test]
fn boxed_loops_end() {
    on_a_small_stack(|| {
        let literal = |text: &str| format!("<literalExpression><text>{text}</text></literalExpression>");
        let mut body = literal("1");
        for number in 0..8 {
            body = format!(
                "<for iteratorVariable=\"i{number}\"><in>{}</in><return>{body}</return></for>",
                literal("for x in 1..100 return x")
            );
        }
        let decisions = model(&format!("<decision id=\"d\" name=\"d\">{body}</decision>"));
        assert_eq!(code(&decisions, "d"), "expression-step-limit");
        let endless = format!(
            "<decision id=\"d\" name=\"d\"><some iteratorVariable=\"i\"><in>{}</in><satisfies>{}</satisfies></some></decision>",
            literal("[1..1000000000000]"),
            literal("false")
        );
        let ended = code(&model(&endless), "d");
        assert!(
            ["expression-step-limit", "expression-size-limit"].contains(&ended),
            "{ended}"
        );
    });
}

#[test]
fn types_that_unfold_are_bounded() {
    on_a_small_stack(|| {
        let mut body = "<itemDefinition name=\"t0\"><typeRef>number</typeRef></itemDefinition>".to_owned();
        for number in 1..60 {
            let part = |name: &str| {
                format!(
                    "<itemComponent name=\"{name}\"><typeRef>t{}</typeRef></itemComponent>",
                    number - 1
                )
            };
            write!(
                body,
                "<itemDefinition name=\"t{number}\">{}{}</itemDefinition>",
                part("a"),
                part("b")
            )
            .unwrap();
        }
        body.push_str(
            "<itemDefinition name=\"loop\"><itemComponent name=\"next\"><typeRef>loop</typeRef></itemComponent></itemDefinition>\
             <decision id=\"d\" name=\"d\"><literalExpression><text>1 instance of t59 or {next: null} instance of loop</text>\
             </literalExpression></decision>",
        );
        let value = model(&body)
            .evaluate("d", &NoScope, &Limits::default())
            .unwrap()
            .value;
        assert_eq!(value, Value::Boolean(true));
    });
}

#[test]
fn damaged_files_do_not_hurt() {
    on_a_small_stack(|| {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below.max(1) as u64) as usize
        };
        for name in ["policies.dmn", "boxes.dmn"] {
            let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
            let whole = std::fs::read(path).unwrap();
            for _ in 0..400 {
                let mut bytes = whole.clone();
                for _ in 0..=random(3) {
                    let (at, length) = (random(bytes.len()), random(40));
                    let end = (at + length).min(bytes.len());
                    match random(3) {
                        0 => bytes[at] = random(256) as u8,
                        1 => drop(bytes.drain(at..end)),
                        _ => {
                            let from = random(whole.len());
                            let piece = whole[from..(from + length).min(whole.len())].to_vec();
                            bytes.splice(at..at, piece);
                        }
                    }
                }
                let (decisions, _) = parse(name, &bytes);
                let limits = Limits {
                    steps: 20_000,
                    ..Limits::default()
                };
                for decision in decisions.iter().flat_map(Decisions::decisions) {
                    let _ = decisions
                        .as_ref()
                        .map(|all| all.evaluate(decision.id, &NoScope, &limits));
                }
            }
        }
    });
}
