//! Decisions, inputs, knowledge and services, and what they require.

use std::collections::HashSet;
use std::sync::Arc;

use roxmltree::Node;
use tidegate_model::diagnostic::Diagnostic;

use crate::parse::Compiler;
use crate::parse::model::name;
use crate::parse::xml::Read;
use crate::program::{Element, Kind, Need, Service};

const KINDS: &[&str] = &[
    "inputData",
    "decision",
    "businessKnowledgeModel",
    "decisionService",
];

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    pub(super) fn elements(&mut self) -> Vec<Element> {
        let (mut drafts, mut elements) = (Vec::new(), Vec::new());
        for model in 0..self.models.len() {
            self.model = model;
            let Some(root) = self.here().map(|model| model.root) else {
                continue;
            };
            for node in root.kids().filter(|node| KINDS.contains(&node.local())) {
                let Some(label) = node.value("name").or_else(|| node.value("id")) else {
                    let finding =
                        Diagnostic::error("missing-name", format!("a <{}> has no name", node.local()));
                    self.complain(finding.hint("give it a name and an id"), node);
                    continue;
                };
                let label = name(label);
                let id: Arc<str> = node.value("id").map_or_else(|| label.clone(), Arc::from);
                if self
                    .element_numbers
                    .insert((model, id.clone()), elements.len())
                    .is_some()
                {
                    let finding = Diagnostic::error("duplicate-id", format!("the id \"{id}\" is used twice"));
                    self.complain(finding.hint("give each element its own id"), node);
                }
                let variable = node.kid("variable");
                let read_as = variable.and_then(|variable| variable.value("name"));
                let result = variable.map_or(crate::types::Type::Any, |variable| self.type_of(variable));
                elements.push(Element {
                    id,
                    variable: read_as.map_or_else(|| label.clone(), name),
                    name: label,
                    kind: Kind::Input,
                    result,
                    needs: Vec::new(),
                    undeclared: Vec::new(),
                    model,
                    place: self.place(node),
                    broken: false,
                });
                drafts.push((model, node));
            }
        }
        for (number, (model, node)) in drafts.iter().enumerate() {
            self.model = *model;
            let (needs, complete) = self.needs(*node, &elements);
            if let Some(element) = elements.get_mut(number) {
                element.needs = needs;
                element.broken = !complete;
            }
        }
        for (number, (model, node)) in drafts.into_iter().enumerate() {
            self.model = model;
            let added = self.bring_into_sight(number, &elements);
            self.read.clear();
            let mut complete = true;
            let kind = match node.local() {
                "decision" => Kind::Decision(self.decision_logic(node)),
                "businessKnowledgeModel" => {
                    let logic = node.kid("encapsulatedLogic");
                    if logic.is_none() {
                        self.complain(
                            Diagnostic::warning("no-logic", "the business knowledge model has no logic"),
                            node,
                        );
                    }
                    Kind::Knowledge(logic.map(|logic| Arc::new(self.definition(logic))))
                }
                "decisionService" => {
                    let (service, all_found) = self.service(node, &elements);
                    complete = all_found;
                    Kind::Service(service)
                }
                _ => Kind::Input,
            };
            for name in added {
                self.names.remove(&name);
            }
            let mut undeclared = std::mem::take(&mut self.read);
            for need in elements
                .get(number)
                .map(|element| element.needs.as_slice())
                .unwrap_or_default()
            {
                let target = elements.get(need.target).map(|target| &target.variable);
                if let Some(name) = need.import.as_ref().or(target) {
                    undeclared.remove(name);
                }
            }
            if let Some(element) = elements.get_mut(number) {
                if matches!(kind, Kind::Decision(_)) {
                    element.undeclared = undeclared.into_iter().collect();
                }
                element.kind = kind;
                element.broken |= !complete;
            }
        }
        elements
    }

    fn decision_logic(&mut self, node: Node<'a, 'i>) -> Option<crate::program::Boxed> {
        let logic = self.expression(node);
        if logic.is_none() {
            let finding = Diagnostic::warning("no-logic", "the decision has no logic; its result is null");
            self.complain(finding.hint("add a decision table or a literal expression"), node);
        }
        logic
    }

    /// Makes the names known that the logic of an element may read.
    fn bring_into_sight(&mut self, number: usize, elements: &[Element]) -> Vec<Arc<str>> {
        let mut added = Vec::new();
        let needs = elements
            .get(number)
            .map(|element| element.needs.as_slice())
            .unwrap_or_default();
        for need in needs {
            let target = elements.get(need.target).map(|target| target.variable.clone());
            for name in target.iter().chain(&need.import) {
                if self.names.add(name) {
                    added.push(name.clone());
                }
            }
        }
        added
    }

    /// What an element requires, and whether all of it was found.
    fn needs(&mut self, node: Node<'a, 'i>, elements: &[Element]) -> (Vec<Need>, bool) {
        let (mut needs, mut complete) = (Vec::new(), true);
        let mut seen = HashSet::new();
        for requirement in node.kids() {
            let wanted: &[&str] = match requirement.local() {
                "informationRequirement" => &["requiredInput", "requiredDecision"],
                "knowledgeRequirement" => &["requiredKnowledge"],
                _ => continue,
            };
            for reference in requirement.kids().filter(|kid| wanted.contains(&kid.local())) {
                let Some(target) = self.target(reference) else {
                    complete = false;
                    continue;
                };
                if !seen.insert(target) {
                    continue;
                }
                let knowledge = reference.local() == "requiredKnowledge";
                let import = elements
                    .get(target)
                    .and_then(|element| self.import_name(element.model));
                needs.push(Need {
                    target,
                    import,
                    knowledge,
                });
            }
        }
        (needs, complete)
    }

    /// The name of the import through which a model is reached.
    fn import_name(&self, model: usize) -> Option<Arc<str>> {
        self.here()?.import_of(model)?.name.clone()
    }

    /// The element that the `href` of a node points to.
    fn target(&mut self, node: Node<'a, 'i>) -> Option<usize> {
        let Some(reference) = node.value("href") else {
            let finding = Diagnostic::error("missing-reference", format!("<{}> has no href", node.local()));
            self.complain(finding.hint("point it to an element with href=\"#id\""), node);
            return None;
        };
        let (namespace, id) = reference.rsplit_once('#').unwrap_or(("", reference));
        let here = self.here()?;
        let model = if namespace.is_empty() || namespace == here.namespace {
            Some(self.model)
        } else {
            let by_namespace = self.models.iter().position(|model| model.namespace == namespace);
            by_namespace.or_else(|| self.models.iter().position(|model| *model.resource == *namespace))
        };
        let found = model.and_then(|model| self.element_numbers.get(&(model, id.into())).copied());
        if found.is_none() {
            let finding = Diagnostic::error(
                "dangling-reference",
                format!("there is no element \"{reference}\""),
            );
            let hint = "correct the reference, or add the element or the imported model";
            self.complain(finding.hint(hint), node);
        }
        found
    }

    /// A service, and whether all of it was found.
    fn service(&mut self, node: Node<'a, 'i>, elements: &[Element]) -> (Service, bool) {
        let mut complete = true;
        let mut of = |name: &str| -> Vec<usize> {
            let references: Vec<Node<'a, 'i>> = node.named(name).collect();
            let found: Vec<usize> = references
                .iter()
                .filter_map(|reference| self.target(*reference))
                .collect();
            complete &= found.len() == references.len();
            found
        };
        let (mut inputs, decisions, outputs) = (of("inputData"), of("inputDecision"), of("outputDecision"));
        inputs.extend(decisions);
        if outputs.is_empty() && complete {
            let finding = Diagnostic::error("no-output", "the decision service has no output decision");
            self.complain(finding.hint("add an <outputDecision href=\"#...\"/>"), node);
            complete = false;
        }
        let parameter = |input: &usize| elements.get(*input).map(|element| element.variable.clone());
        let parameters = inputs.iter().filter_map(parameter).collect();
        (
            Service {
                parameters,
                inputs,
                outputs,
            },
            complete,
        )
    }

    /// Reports decisions that need each other.
    pub(super) fn cycle(&mut self, elements: &mut [Element], cycle: &[usize]) {
        let label = |number: &usize| {
            elements
                .get(*number)
                .map_or_else(String::new, |element| element.name.to_string())
        };
        const SHOWN: usize = 8;
        let mut names: Vec<String> = cycle.iter().take(SHOWN).map(label).collect();
        if cycle.len() > SHOWN {
            names.push("...".to_owned());
        }
        names.extend(cycle.first().map(label));
        let mut finding = Diagnostic::error(
            "requirement-cycle",
            format!("decisions need each other: {}", names.join(" -> ")),
        )
        .hint("remove one of the requirements");
        for (index, number) in cycle.iter().enumerate() {
            let Some(element) = elements.get_mut(*number) else {
                continue;
            };
            element.broken = true;
            if index == 0 {
                finding = finding
                    .element(Some(&element.id))
                    .resource(&element.place.resource);
                (finding.line, finding.column) = (element.place.line, element.place.column);
            }
        }
        self.report(finding);
    }
}
