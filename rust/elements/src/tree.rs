//! The objects of one application, and how they are linked.

use std::collections::{HashMap, HashSet};

use crate::node::Node;

/// Objects of one application that are kept.
pub(crate) const MOST_NODES: usize = 20_000;
/// Children of one object that are looked at.
pub(crate) const MOST_CHILDREN: usize = 1_000;
/// How deep one element may be in others.
pub(crate) const DEEPEST: u16 = 100;

/// The objects of one application. The first is its root.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Option<Node>>,
    free: Vec<usize>,
    by_path: HashMap<Box<str>, usize>,
    /// Whether objects were left out because there are too many, or they are too deep.
    pub(crate) cut: bool,
}

impl Tree {
    pub(crate) fn get(&self, id: usize) -> Option<&Node> {
        self.nodes.get(id)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: usize) -> Option<&mut Node> {
        self.nodes.get_mut(id)?.as_mut()
    }

    /// Where the object is that has a reference.
    pub(crate) fn position(&self, reference: u64) -> Option<usize> {
        self.nodes.iter().position(|node| node.as_ref().is_some_and(|node| node.reference == reference))
    }

    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flatten()
    }

    pub(crate) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut().flatten()
    }

    /// The object at `path`, which is new if it is not known; None where there are too many.
    pub(crate) fn intern(&mut self, path: &str, next_reference: &mut u64) -> Option<usize> {
        if let Some(id) = self.find(path) {
            return Some(id);
        }
        if self.by_path.len() >= MOST_NODES {
            self.cut = true;
            return None;
        }
        *next_reference += 1;
        let node = Some(Node::new(path, *next_reference));
        let id = if let Some(id) = self.free.pop() {
            self.nodes[id] = node;
            id
        } else {
            self.nodes.push(node);
            self.nodes.len() - 1
        };
        self.by_path.insert(path.into(), id);
        Some(id)
    }

    /// Makes `children` those of `parent`, in this order; what was one and is not in the list any more is removed.
    ///
    /// Returns whether anything is different now.
    pub(crate) fn link(&mut self, parent: usize, children: &[usize]) -> bool {
        let Some(depth) = self.get(parent).map(|node| node.depth + 1) else { return false };
        let mut kept = Vec::with_capacity(children.len());
        let mut there = HashSet::with_capacity(children.len());
        for &child in children {
            if depth > DEEPEST {
                self.cut = true;
                break;
            }
            // An application may say that an object is in itself, or several times in another.
            if !self.is_above(child, parent) && there.insert(child) {
                kept.push(child);
            }
        }
        let before = std::mem::take(&mut self.nodes[parent].as_mut().expect("it was there").children);
        let same = before == kept;
        for &child in &kept {
            if let Some(old) = self.get(child).and_then(|node| node.parent).filter(|old| *old != parent)
                && let Some(old) = self.get_mut(old)
            {
                old.children.retain(|each| *each != child);
            }
            if let Some(node) = self.get_mut(child) {
                node.parent = Some(parent);
                node.depth = depth;
            }
        }
        if !same {
            for gone in before {
                if !there.contains(&gone) && self.get(gone).is_some_and(|node| node.parent == Some(parent)) {
                    self.remove(gone);
                }
            }
        }
        if let Some(node) = self.get_mut(parent) {
            node.children = kept;
        }
        !same
    }

    /// Does something with all that is in an object.
    pub(crate) fn below(&mut self, id: usize, mut with: impl FnMut(&mut Node)) {
        let mut going = self.get(id).map(|node| node.children.clone()).unwrap_or_default();
        while let Some(node) = going.pop().and_then(|id| self.get_mut(id)) {
            going.extend(&node.children);
            with(node);
        }
    }

    fn is_above(&self, id: usize, below: usize) -> bool {
        let mut at = Some(below);
        while let Some(each) = at {
            if each == id {
                return true;
            }
            at = self.get(each).and_then(|node| node.parent);
        }
        false
    }

    /// Removes an object and all that is in it.
    pub(crate) fn remove(&mut self, id: usize) {
        if let Some(parent) = self.get(id).and_then(|node| node.parent)
            && let Some(parent) = self.get_mut(parent)
        {
            parent.children.retain(|each| *each != id);
        }
        let mut going = vec![id];
        while let Some(id) = going.pop() {
            if let Some(node) = self.nodes.get_mut(id).and_then(Option::take) {
                self.by_path.remove(&node.path);
                self.free.push(id);
                going.extend(node.children);
            }
        }
    }
}
