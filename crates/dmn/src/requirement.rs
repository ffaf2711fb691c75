//! The graph of requirements: in which order to make decisions, and which of them can never be made.

use std::collections::HashMap;

use crate::program::{Element, Program};

/// The elements whose values the goals need, goals included, each after those that it needs itself. What is known is
/// not looked behind. No recursion: the chain may be as long as the model.
pub(crate) fn order<V>(program: &Program, goals: &[usize], known: &HashMap<usize, V>) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; program.elements.len()];
    for goal in goals {
        let mut path = vec![(*goal, 0)];
        while let Some((number, next)) = path.pop() {
            let Some(element) = program.elements.get(number) else {
                continue;
            };
            if next == 0 {
                match seen.get_mut(number) {
                    Some(flag) if !*flag && !known.contains_key(&number) => *flag = true,
                    _ => continue,
                }
            }
            match element.needs.get(next) {
                Some(need) => {
                    path.push((number, next + 1));
                    if !need.knowledge {
                        path.push((need.target, 0));
                    }
                }
                None => order.push(number),
            }
        }
    }
    order
}

/// Circles that are told. Decisions of others are not made either: what they need never has a value.
const MAX_CYCLES: usize = 100;

/// The circles in which decisions need each other's values. Functions may call themselves: limits end them.
pub(crate) fn cycles(elements: &[Element]) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::New; elements.len()];
    let mut cycles = Vec::new();
    for start in 0..elements.len() {
        if marks.get(start) != Some(&Mark::New) {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((number, next)) = path.last_mut() {
            let number = *number;
            if let Some(mark) = marks.get_mut(number) {
                *mark = Mark::OnPath;
            }
            let needs = elements
                .get(number)
                .map(|element| element.needs.as_slice())
                .unwrap_or_default();
            let Some(need) = needs.get(*next) else {
                if let Some(mark) = marks.get_mut(number) {
                    *mark = Mark::Done;
                }
                path.pop();
                continue;
            };
            *next += 1;
            if need.knowledge {
                continue;
            }
            match marks.get(need.target) {
                Some(Mark::New) => path.push((need.target, 0)),
                Some(Mark::OnPath) if cycles.len() < MAX_CYCLES => {
                    let from = path
                        .iter()
                        .position(|(number, _)| *number == need.target)
                        .unwrap_or(0);
                    let cycle = path.get(from..).unwrap_or_default();
                    cycles.push(cycle.iter().map(|(number, _)| *number).collect());
                }
                _ => {}
            }
        }
    }
    cycles
}
