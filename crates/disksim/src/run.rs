//! The files of a run: which there are, and the blocks in them.

use crate::error::ImportError;
use crate::findings::Findings;
use crate::syntax::{self, Block, Entry, Item, Tree, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Files may name files that name files; real ones go two deep.
const FILES_DEEP_MAX: usize = 8;
/// Largest number of files that may be named in all, since a file that is named twice at each depth multiplies. Real
/// runs name four.
const MOST_FILES: usize = 100;

/// Contents of the files of a run.
pub(crate) struct Run<'a> {
    beside: &'a mut dyn FnMut(&str) -> std::io::Result<String>,
    pub(crate) blocks: Vec<Block>,
    /// The block that an instance is made of, by the name of the instance.
    pub(crate) instances: BTreeMap<String, String>,
    pub(crate) topology: Vec<Tree>,
    pub(crate) found: Findings,
    /// Number of files that were named and read.
    files: usize,
    /// Folders of the files read, as they were named. A file may name others relative to its own folder.
    folders: Vec<String>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(beside: &'a mut dyn FnMut(&str) -> std::io::Result<String>) -> Run<'a> {
        Run {
            beside,
            blocks: Vec::new(),
            instances: BTreeMap::new(),
            topology: Vec::new(),
            found: Findings::default(),
            files: 0,
            folders: Vec::new(),
        }
    }

    /// The text of a file that another one names.
    pub(crate) fn read(
        &mut self,
        name: &str,
        named_in: &str,
        line: usize,
    ) -> Result<String, ImportError> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(ImportError::Syntax {
                file: named_in.to_string(),
                line,
                message: format!("more than {MOST_FILES} files are named in all"),
            });
        }
        let mut text = (self.beside)(name);
        for folder in self.folders.iter().rev() {
            if text.is_ok() {
                break;
            }
            let there = Path::new(folder).join(name);
            if let Ok(found) = (self.beside)(&there.to_string_lossy()) {
                text = Ok(found);
            }
        }
        if text.is_ok()
            && let Some(folder) = Path::new(name).parent()
            && !folder.as_os_str().is_empty()
        {
            self.folders.push(folder.to_string_lossy().into_owned());
        }
        text.map_err(|source| ImportError::Read {
            file: name.to_string(),
            named_in: Some(format!("{named_in}:{line}")),
            source,
        })
    }

    fn too_deep(file: &str, line: usize) -> ImportError {
        ImportError::Syntax {
            file: file.to_string(),
            line,
            message: format!("files that name files more than {FILES_DEEP_MAX} deep"),
        }
    }

    /// Reads a file, and the files that it names at its top level.
    pub(crate) fn load(&mut self, file: &str, text: &str) -> Result<(), ImportError> {
        self.load_at(file, text, 0)
    }

    fn load_at(&mut self, file: &str, text: &str, depth: usize) -> Result<(), ImportError> {
        for item in syntax::parse(file, text)? {
            match item {
                Item::Block(block) => self.add(block),
                Item::Source(name, line) => {
                    if depth == FILES_DEEP_MAX {
                        return Err(Run::too_deep(file, line));
                    }
                    let text = self.read(&name, file, line)?;
                    self.load_at(&name, &text, depth + 1)?;
                }
                Item::Instantiate { instances, of } => {
                    for instance in instances {
                        self.instances.insert(instance, of.clone());
                    }
                }
                Item::Topology(tree) => self.topology.push(tree),
            }
        }
        Ok(())
    }

    /// Adds a block. A block whose kind is the name of an earlier block takes the parameters that it lacks from that
    /// block. Of two blocks with the same name the first counts, as in DiskSim.
    fn add(&mut self, mut block: Block) {
        if self.blocks.iter().any(|other| other.name == block.name) && !block.name.is_empty() {
            self.found.warn(format!(
                "{}:{}: a second {} of the name {}; the first counts",
                block.file, block.line, block.kind, block.name
            ));
            return;
        }
        if let Some(base) = self.blocks.iter().find(|other| other.name == block.kind) {
            let own = |key: &str| block.params.iter().any(|param| param.key == key);
            let mut params = base.params.clone();
            params.retain(|param| !own(&param.key));
            params.append(&mut block.params);
            block.params = params;
            block.kind.clone_from(&base.kind);
        }
        self.blocks.push(block);
    }

    /// Returns the block with the contents of named files in place of their names.
    pub(crate) fn expanded(&mut self, block: Block) -> Result<Block, ImportError> {
        self.expanded_at(block, 0)
    }

    fn expanded_at(&mut self, mut block: Block, depth: usize) -> Result<Block, ImportError> {
        for param in block.replaced() {
            self.found.warn(format!(
                "{}:{}: `{}` is given again later, which counts",
                block.file, param.line, param.key
            ));
        }
        for param in &mut block.params {
            if let Value::Source(name) = &param.value {
                let entries = self.values_of(name, &block.file, param.line, depth)?;
                let [entry] =
                    <[Entry; 1]>::try_from(entries).map_err(|entries| ImportError::Parameter {
                        file: block.file.to_string(),
                        line: param.line,
                        key: param.key.clone(),
                        message: format!("{name} holds {} values; one is needed", entries.len()),
                    })?;
                param.value = entry.value;
            }
            let value = std::mem::replace(&mut param.value, Value::Text(String::new()));
            param.value = self.expanded_value(value, depth)?;
        }
        Ok(block)
    }

    fn expanded_value(&mut self, value: Value, depth: usize) -> Result<Value, ImportError> {
        match value {
            Value::Block(block) => Ok(Value::Block(self.expanded_at(block, depth + 1)?)),
            Value::List(entries) => {
                let mut expanded = Vec::with_capacity(entries.len());
                for entry in entries {
                    let parts = match &entry.value {
                        Value::Source(name) => {
                            self.values_of(name, &entry.file, entry.line, depth)?
                        }
                        _ => vec![entry],
                    };
                    for part in parts {
                        let value = self.expanded_value(part.value, depth + 1)?;
                        expanded.push(Entry { value, ..part });
                    }
                }
                Ok(Value::List(expanded))
            }
            other => Ok(other),
        }
    }

    /// Reads the values of a file that stands for a value.
    fn values_of(
        &mut self,
        name: &str,
        named_in: &str,
        line: usize,
        depth: usize,
    ) -> Result<Vec<Entry>, ImportError> {
        // The depth also counts blocks and lists. No real file nests this deep.
        if depth >= FILES_DEEP_MAX {
            return Err(Run::too_deep(named_in, line));
        }
        let text = self.read(name, named_in, line)?;
        syntax::parse_values(name, &text)
    }
}
