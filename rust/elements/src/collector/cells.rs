//! The cells of a table that has too many to list: which are in view, and what becomes of each.

use super::answers::{NULL, set};
use super::{Asked, Collector};
use crate::ask::Ask;
use crate::wire::{Malformed, Reader, Value};

impl Collector {
    /// Which cells of a table are in view.
    pub(super) fn of_grid(&mut self, asked: Asked, mut body: Reader) -> Result<(), Malformed> {
        if asked.ask == Ask::Cell {
            return self.cell(asked, body);
        }
        let Some(app) = self.apps.get_mut(&asked.app) else { return Ok(()) };
        let bus = &app.bus;
        let Some(node) = app.tree.get_mut(asked.node).filter(|node| node.reference == asked.reference) else {
            return Ok(());
        };
        let mut grid = node.grid.take().unwrap_or_default();
        match asked.ask {
            Ask::Columns => {
                if let Value::Number(number) = body.variant()? {
                    grid.columns = number as i32;
                }
            }
            Ask::First | Ask::Last => {
                let (owner, path) = body.object()?;
                let (corner, index) = if asked.ask == Ask::First { (0, Ask::FirstIndex) } else { (1, Ask::LastIndex) };
                grid.corners[corner] = if owner == bus && path != NULL { path.into() } else { Box::from("") };
                grid.indices[corner] = None;
                node.ask_again(index);
            }
            _ => grid.indices[usize::from(asked.ask == Ask::LastIndex)] = Some(body.i32()?),
        }
        node.grid = Some(grid);
        node.known |= asked.ask.bit();
        if app.lay_out(asked.node, &mut self.next_reference) {
            self.version += 1;
        }
        self.pursue(asked.app, asked.node);
        Ok(())
    }

    /// Where the object of a cell is.
    fn cell(&mut self, asked: Asked, mut body: Reader) -> Result<(), Malformed> {
        let Some(app) = self.apps.get_mut(&asked.app) else { return Ok(()) };
        let (owner, path) = body.object()?;
        let is_there = owner == app.bus && path != NULL;
        if let Some(node) = app.tree.get_mut(asked.node).filter(|node| node.reference == asked.reference)
            && let Some(cell) = node.cell.as_mut()
        {
            node.known |= Ask::Cell.bit();
            if is_there {
                cell.path = path.into();
                for ask in [Ask::State, Ask::Name, Ask::Extents, Ask::Text] {
                    node.ask_again(ask);
                }
            } else {
                node.known |= Ask::State.bit();
                self.version += u64::from(set(&mut node.states, 0));
            }
        }
        self.pursue(asked.app, asked.node);
        Ok(())
    }

    /// A cell is another one than before: its reference is given to no other.
    pub(super) fn replace(&mut self, asked: Asked) {
        let Some(app) = self.apps.get_mut(&asked.app) else { return };
        let table = app.tree.get(asked.node).and_then(|node| node.parent);
        app.tree.remove(asked.node);
        self.version += 1;
        if let Some(table) = table {
            app.lay_out(table, &mut self.next_reference);
            self.pursue(asked.app, table);
        }
    }
}
