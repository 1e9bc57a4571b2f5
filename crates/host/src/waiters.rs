//! Lists of waiting processes.

use crate::file::NONE;

/// Processes that wait for the same thing, in the order of arrival. The links are stored outside,
/// one per process, since no process waits for two things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain {
            head: NONE,
            tail: NONE,
        }
    }
}

impl Chain {
    pub fn push(&mut self, links: &mut [u32], process: u32) {
        links[process as usize] = NONE;
        match self.tail {
            NONE => self.head = process,
            tail => links[tail as usize] = process,
        }
        self.tail = process;
    }

    pub fn pop(&mut self, links: &[u32]) -> Option<u32> {
        let process = self.head;
        if process == NONE {
            return None;
        }
        self.head = links[process as usize];
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(process)
    }

    /// Removes a process from any place in the chain. A process that is not in the chain is
    /// ignored.
    pub fn remove(&mut self, links: &mut [u32], process: u32) {
        let (mut before, mut at) = (NONE, self.head);
        while at != NONE {
            let next = links[at as usize];
            if at == process {
                match before {
                    NONE => self.head = next,
                    before => links[before as usize] = next,
                }
                if next == NONE {
                    self.tail = before;
                }
                return;
            }
            (before, at) = (at, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_leave_a_chain_in_the_order_in_which_they_came() {
        let mut links = [NONE; 5];
        let mut chain = Chain::default();
        assert_eq!(chain.pop(&links), None);
        for process in [3, 1, 4, 0] {
            chain.push(&mut links, process);
        }
        chain.remove(&mut links, 4);
        chain.remove(&mut links, 2);
        assert_eq!(chain.pop(&links), Some(3));
        chain.remove(&mut links, 0);
        chain.push(&mut links, 2);
        assert_eq!(chain.pop(&links), Some(1));
        assert_eq!(chain.pop(&links), Some(2));
        assert_eq!(chain.pop(&links), None);
        chain.push(&mut links, 2);
        assert_eq!(chain.pop(&links), Some(2));
    }
}
