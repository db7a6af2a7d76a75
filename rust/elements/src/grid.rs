//! A table that has more cells than are listed: those in view are found by their rows and columns.
//!
//! Calc's sheet has 2^34 cells, and gives each a new object whenever it is asked for it. So a cell is known by its place.

use crate::ask::Ask;

/// Cells of one table that are looked at.
pub(crate) const MOST_CELLS: i32 = 3_000;

/// Where a cell is in its table, and where its object is.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) row: i32,
    pub(crate) column: i32,
    /// Empty while it is not known.
    pub(crate) path: Box<str>,
    /// It was chosen, and had the same text when it was asked again. Calc gives the text of a cell that was emptied until another
    /// one is written, and then its new object has none.
    pub(crate) may_be_empty: bool,
}

impl Cell {
    /// What is asked about a cell that shows; its role is known.
    pub(crate) const WANTED: u32 = Ask::Name.bit() | Ask::Extents.bit() | Ask::Text.bit();
}

/// Which cells of a table are in view.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pub(crate) columns: i32,
    /// The objects of the first cell and of the last one; empty where there is none.
    pub(crate) corners: [Box<str>; 2],
    /// Which children they are; None while that is not known.
    pub(crate) indices: [Option<i32>; 2],
}

impl Grid {
    /// What no longer holds once the table was scrolled.
    pub(crate) const CORNERS: u32 = Ask::First.bit() | Ask::Last.bit() | Ask::FirstIndex.bit() | Ask::LastIndex.bit();

    /// Questions about a table, or one of its cells, that no other object is asked.
    pub(crate) const QUESTIONS: u32 = Self::CORNERS | Ask::Columns.bit() | Ask::Cell.bit();

    /// What is asked about a table to know which of its cells are in view.
    pub(crate) fn wanted(grid: Option<&Self>, known: u32) -> u32 {
        let mut wanted = Ask::Columns.bit() | Ask::First.bit() | Ask::Last.bit();
        for (corner, (object, index)) in
            [(Ask::First, Ask::FirstIndex), (Ask::Last, Ask::LastIndex)].into_iter().enumerate()
        {
            if known & object.bit() != 0 && grid.is_some_and(|grid| !grid.corners[corner].is_empty()) {
                wanted |= index.bit();
            }
        }
        wanted
    }

    /// The rows and columns in view, each from the first to the last; None where they are not known, Err where they are too many.
    pub(crate) fn view(&self) -> Result<Option<[(i32, i32); 2]>, TooMany> {
        let [Some(first), Some(last)] = self.indices else { return Ok(None) };
        if self.columns < 1 || first < 0 || last < 0 {
            return Ok(None);
        }
        let rows = (first / self.columns, last / self.columns);
        let columns = (first % self.columns, last % self.columns);
        let (high, wide) = (rows.1 - rows.0 + 1, columns.1 - columns.0 + 1);
        if high < 1 || wide < 1 {
            return Ok(None);
        }
        if high.checked_mul(wide).is_none_or(|cells| cells > MOST_CELLS) {
            Err(TooMany)
        } else {
            Ok(Some([rows, columns]))
        }
    }
}

/// More cells are in view than are looked at.
#[derive(Debug)]
pub(crate) struct TooMany;
