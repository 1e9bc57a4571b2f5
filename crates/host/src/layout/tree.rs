//! Trees of directories on a file system.
//!
//! A [`TreePlan`] lists the directories, and the files with their sizes. [`TreePlan::lay`] writes a plan to an
//! [`Ext3`]. One plan can be laid out on several file systems, which then hold copies of one tree.

use super::{Directory, Ext3, FileLayout, LayoutError};
use headtime_units::{Bytes, Lba};
use headtime_workload::Random;

/// Parameters of a tree. The default is about the source tree of Linux 2.6.31.
///
/// Rests on: counts of that tree from memory, 29,100 files with 365 MB in 1,760 directories (trust: moderate).
/// Published counts for 2.6.20 to 2.6.27 grow from 21,280 to 24,354 files.
///
/// The shape is assumed. Sizes are log-normal with a median of 5.6 KB. The mean of 12.5 KB fixes the spread. The
/// largest file then has about 1 MB, as in the real tree. Files crowd in some directories (log-normal weights).
/// Directories are at most `depth_max` deep.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSpec {
    /// Files; 1 to 10 million.
    pub files: u32,
    /// Directories, including the tree's own; 1 to 1 million.
    pub directories: u32,
    /// Directories directly in the tree's own directory; at least 1. The others lie anywhere below.
    pub top: u32,
    /// Most directories above a file, 1 to 100.
    pub depth_max: u32,
    /// Median size of the files; 1 byte to 1 GiB.
    pub median: Bytes,
    /// Standard deviation of the logarithm of the size; 0 to 3. The mean is the median times
    /// e^(spread²/2).
    pub spread: f64,
    /// Standard deviation of the logarithm of a directory's share of the files; 0 to 3.
    pub crowding: f64,
    /// Bytes of a name, in the mean; 1 to 255.
    pub name_bytes: u32,
}

impl Default for TreeSpec {
    fn default() -> TreeSpec {
        TreeSpec {
            files: 29_100,
            directories: 1_760,
            top: 21,
            depth_max: 6,
            median: Bytes(5_600),
            spread: 1.27,
            crowding: 1.2,
            name_bytes: 11,
        }
    }
}

/// Order in which the files of a directory were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Written {
    /// In the order of names, with directories between the files, as in an archive of the sources. A directory is
    /// listed by hash. A reader therefore finds the files of one directory near each other, but in no order.
    #[default]
    Unpacked,
    /// In the order in which the directory is listed. A recursive copy within one file system leaves this order, since
    /// source and copy hash alike. A reader finds all files in order.
    Copied,
}

impl Written {
    /// Name of the order: `unpacked` or `copied`.
    pub const fn name(self) -> &'static str {
        match self {
            Written::Unpacked => "unpacked",
            Written::Copied => "copied",
        }
    }

    /// The order with this name.
    ///
    /// # Errors
    ///
    /// If no order has this name.
    pub fn from_name(name: &str) -> Result<Written, LayoutError> {
        match name {
            "unpacked" => Ok(Written::Unpacked),
            "copied" => Ok(Written::Copied),
            _ => Err(LayoutError::Tree {
                key: "written",
                found: name.to_owned(),
                allowed: "unpacked, copied",
            }),
        }
    }
}

/// A directory's entry: an index into [`Tree::directories`] or [`Tree::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Directory(u32),
    File(u32),
}

/// Directories and files of a tree, before they are laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct TreePlan {
    /// Entries of each directory in the order of their names; the first is the tree's own.
    directories: Vec<Vec<Entry>>,
    /// Bytes of each file.
    sizes: Vec<u64>,
    name_bytes: u32,
}

/// A directory of a [`Tree`].
#[derive(Clone, Debug, PartialEq)]
pub struct TreeDirectory {
    /// The directory in its file system, for callers that add entries.
    pub directory: Directory,
    pub inode_block: Lba,
    /// Blocks of the directory, in the order in which a listing reads them.
    pub blocks: Vec<Lba>,
    /// Entries of the directory, in the order of a listing.
    pub entries: Vec<Entry>,
}

/// A file of a [`Tree`].
#[derive(Clone, Debug, PartialEq)]
pub struct TreeFile {
    /// Index of the file's directory, and hash of the file's name there.
    pub directory: u32,
    pub hash: u32,
    pub inode_block: Lba,
    /// Places of the file's blocks.
    pub layout: FileLayout,
}

/// A tree of directories on a file system.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// All directories; the first is the tree's own.
    pub directories: Vec<TreeDirectory>,
    pub files: Vec<TreeFile>,
}

/// Directory or file that a [`Walk`] visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// A directory, before its entries.
    Directory(u32),
    File(u32),
}

/// Walks a tree as `grep -r` does. A directory is listed when the walk reaches it. The entries are visited in the order
/// of the list, and subdirectories are entered at once.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    tree: &'a Tree,
    /// Directories on the way down, with the next entry of each.
    path: Vec<(u32, usize)>,
    begun: bool,
}

impl TreeSpec {
    /// Draws a tree with these parameters. The seed fixes the tree.
    ///
    /// # Errors
    ///
    /// If a number is out of its range.
    pub fn plan(&self, seed: u64) -> Result<TreePlan, LayoutError> {
        self.check()?;
        let mut shape = Random::keyed(seed, 1, 0);
        // Directories are numbered so that a parent comes before its children.
        let count = self.directories as usize;
        let mut depth = vec![0_u32; count];
        let mut directories: Vec<Vec<Entry>> = vec![Vec::new(); count];
        // Directories that may have children.
        let mut open: Vec<u32> = Vec::new();
        for number in 1..self.directories {
            let parent = if number <= self.top || open.is_empty() {
                0
            } else {
                open[shape.below(open.len() as u64) as usize]
            };
            depth[number as usize] = depth[parent as usize] + 1;
            if depth[number as usize] + 1 < self.depth_max {
                open.push(number);
            }
            directories[parent as usize].push(Entry::Directory(number));
        }
        // Running sums of the weights, as integers, which are exact.
        let mut weights = Random::keyed(seed, 1, 1);
        let mut sum = 0_u64;
        let sums: Vec<u64> = (0..count)
            .map(|_| {
                sum += (libm::exp(self.crowding * weights.normal()) * 65_536.0) as u64 + 1;
                sum
            })
            .collect();
        let mut sizes = Vec::with_capacity(self.files as usize);
        let mut draw = Random::keyed(seed, 1, 2);
        for file in 0..self.files {
            let size = self.median.0 as f64 * libm::exp(self.spread * draw.normal());
            sizes.push((size as u64).max(1));
            let place = draw.below(sum);
            let directory = sums.partition_point(|&sum| sum <= place);
            directories[directory].push(Entry::File(file));
        }
        let mut names = Random::keyed(seed, 1, 3);
        for entries in &mut directories {
            names.shuffle(entries);
        }
        Ok(TreePlan {
            directories,
            sizes,
            name_bytes: self.name_bytes,
        })
    }

    fn check(&self) -> Result<(), LayoutError> {
        let wrong = |key, found: String, allowed| {
            Err(LayoutError::Tree {
                key,
                found,
                allowed,
            })
        };
        if !(1..=10_000_000).contains(&self.files) {
            return wrong("files", self.files.to_string(), "1 to 10000000");
        }
        if !(1..=1_000_000).contains(&self.directories) {
            return wrong("directories", self.directories.to_string(), "1 to 1000000");
        }
        if self.top == 0 {
            return wrong("top", self.top.to_string(), "1 or more");
        }
        if !(1..=100).contains(&self.depth_max) {
            return wrong("depth_max", self.depth_max.to_string(), "1 to 100");
        }
        if !(1..=1 << 30).contains(&self.median.0) {
            return wrong("median", self.median.to_string(), "1B to 1GiB");
        }
        if !(0.0..=3.0).contains(&self.spread) {
            return wrong("spread", self.spread.to_string(), "0 to 3");
        }
        if !(0.0..=3.0).contains(&self.crowding) {
            return wrong("crowding", self.crowding.to_string(), "0 to 3");
        }
        if !(1..=255).contains(&self.name_bytes) {
            return wrong("name_bytes", self.name_bytes.to_string(), "1 to 255");
        }
        Ok(())
    }
}

impl TreePlan {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// Bytes of each file.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Writes the tree into a directory of a file system. `hashes` fixes the order in which directories are listed,
    /// like the hash seed that a file system draws when it is made.
    ///
    /// # Errors
    ///
    /// If the file system is full.
    pub fn lay(
        &self,
        fs: &mut Ext3,
        parent: &mut Directory,
        written: Written,
        hashes: u64,
    ) -> Result<Tree, LayoutError> {
        let mut random = Random::keyed(hashes, 2, 0);
        // Each entry with its hash, in the order of names.
        let hashed: Vec<Vec<(u32, Entry)>> = self
            .directories
            .iter()
            .map(|entries| {
                entries
                    .iter()
                    .map(|&entry| (random.bits(), entry))
                    .collect()
            })
            .collect();
        let listed: Vec<Vec<(u32, Entry)>> = hashed
            .iter()
            .map(|entries| {
                let mut entries = entries.clone();
                // Stable: equal hashes keep the order of the names, as collisions are listed.
                entries.sort_by_key(|&(hash, _)| hash);
                entries
            })
            .collect();
        let order = match written {
            Written::Unpacked => &hashed,
            Written::Copied => &listed,
        };
        let mut laid: Vec<Option<Directory>> = vec![None; self.directories.len()];
        let mut files: Vec<Option<TreeFile>> = vec![None; self.sizes.len()];
        laid[0] = Some(fs.make_directory(parent, self.name_bytes)?);
        let mut path = vec![(0_u32, 0_usize)];
        while let Some((number, next)) = path.last_mut() {
            let directory = *number;
            let Some(&(hash, entry)) = order[directory as usize].get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            let own = laid[directory as usize]
                .as_mut()
                .expect("it is made before its entries");
            match entry {
                Entry::Directory(child) => {
                    laid[child as usize] = Some(fs.make_directory(own, self.name_bytes)?);
                    path.push((child, 0));
                }
                Entry::File(file) => {
                    let layout = fs.make_file(own, self.name_bytes, self.sizes[file as usize])?;
                    files[file as usize] = Some(TreeFile {
                        directory,
                        hash,
                        inode_block: fs.inode_block(layout.inode),
                        layout,
                    });
                }
            }
        }
        let directories = laid
            .into_iter()
            .zip(listed)
            .map(|(directory, entries)| {
                let directory = directory.expect("every directory hangs on the tree's own");
                TreeDirectory {
                    inode_block: fs.inode_block(directory.inode()),
                    blocks: fs.directory_blocks(&directory).collect(),
                    entries: entries.into_iter().map(|(_, entry)| entry).collect(),
                    directory,
                }
            })
            .collect();
        let files = files
            .into_iter()
            .map(|file| file.expect("every file is in a directory"))
            .collect();
        Ok(Tree { directories, files })
    }
}

impl Tree {
    /// Walks the tree as `grep -r` does.
    pub fn walk(&self) -> Walk<'_> {
        Walk {
            tree: self,
            path: Vec::new(),
            begun: false,
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.layout.size).sum()
    }
}

impl Iterator for Walk<'_> {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        if !self.begun {
            self.begun = true;
            self.path.push((0, 0));
            return Some(Visit::Directory(0));
        }
        loop {
            let (directory, next) = self.path.last_mut()?;
            let Some(&entry) = self.tree.directories[*directory as usize]
                .entries
                .get(*next)
            else {
                self.path.pop();
                continue;
            };
            *next += 1;
            return Some(match entry {
                Entry::Directory(child) => {
                    self.path.push((child, 0));
                    Visit::Directory(child)
                }
                Entry::File(file) => Visit::File(file),
            });
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
