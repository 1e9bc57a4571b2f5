//! The form of parameter files.
//!
//! ```text
//! file    = { block | "source" WORD | "instantiate" names "as" WORD | "topology" tree }
//! block   = WORD [ WORD ] "{" [ param { "," param } [ "," ] ] "}"
//! param   = WORDS "=" value
//! value   = WORDS | "source" WORD | list | block
//! list    = "[" [ value { "," value } [ "," ] ] "]"
//! names   = "[" { WORD [ ".." WORD ] [ "," ] } "]"
//! tree    = WORD WORD "[" { tree [ "," ] } "]"
//! ```
//!
//! `#` begins a comment that lasts to the end of the line. A file that a value names holds such a
//! value, or several with commas between them.

use crate::error::ImportError;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Blocks, lists and trees may be nested this deep; real ones are four deep.
const NESTING_MAX: usize = 32;
/// Instances that a file may make by ranges, since a few letters stand for many.
const MOST_INSTANCES: u32 = 10_000;

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) file: Rc<str>,
    pub(crate) line: usize,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
}

impl Block {
    /// The parameter of this name; the last one if there are several.
    pub(crate) fn last(&self, key: &str) -> Option<&Param> {
        self.params.iter().rfind(|param| param.key == key)
    }

    /// Parameters that a later one of the same name replaces.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = &Param> {
        let mut last = BTreeMap::new();
        for param in &self.params {
            last.insert(param.key.as_str(), param.line);
        }
        let gone = move |param: &&Param| last[param.key.as_str()] != param.line;
        self.params.iter().filter(gone)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) line: usize,
    pub(crate) key: String,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// The file that holds the value.
    Source(String),
    List(Vec<Entry>),
    Block(Block),
}

/// An item of a list, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) file: Rc<str>,
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Block(Block),
    /// A file to read in place, and where it is named.
    Source(String, usize),
    Instantiate {
        instances: Vec<String>,
        of: String,
    },
    Topology(Tree),
}

/// A component and what hangs below it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) instance: String,
    pub(crate) below: Vec<Tree>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// One of `{ } [ ] = ,`.
    Mark(char),
}

struct Parser {
    file: Rc<str>,
    tokens: Vec<(usize, Token)>,
    at: usize,
    /// The line of the end, for errors there.
    last_line: usize,
    /// Instances that ranges may still make.
    instances_left: u32,
}

/// The values of a file that a value names.
pub(crate) fn parse_values(file: &str, text: &str) -> Result<Vec<Entry>, ImportError> {
    let mut parser = Parser::new(file, text);
    let mut entries = Vec::new();
    while parser.peek().is_some() {
        entries.push(parser.entry(file, 0)?);
        match parser.next() {
            None | Some((_, Token::Mark(','))) => {}
            Some((line, found)) => {
                return Err(parser.unexpected(line, &found, "`,` or the end of the file"));
            }
        }
    }
    Ok(entries)
}

/// Reads the items at the top level of a file.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Item>, ImportError> {
    let mut parser = Parser::new(file, text);
    let mut items = Vec::new();
    while let Some((line, token)) = parser.next() {
        match token {
            Token::Mark(mark) => {
                let expected = "a block, source, instantiate or topology";
                return Err(parser.unexpected(line, &Token::Mark(mark), expected));
            }
            Token::Word(word) => items.push(parser.item(line, word)?),
        }
    }
    Ok(items)
}

fn tokens(text: &str) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let code = line.split('#').next().unwrap_or_default();
        let mut word = String::new();
        let mut quoted = false;
        for c in code.chars() {
            let marks = matches!(c, '{' | '}' | '[' | ']' | '=' | ',') && !quoted;
            if c == '"' {
                quoted = !quoted;
            } else if !marks && (quoted || !c.is_whitespace()) {
                word.push(c);
                continue;
            }
            if !word.is_empty() {
                tokens.push((line_number, Token::Word(std::mem::take(&mut word))));
            }
            if marks {
                tokens.push((line_number, Token::Mark(c)));
            }
        }
        if !word.is_empty() {
            tokens.push((line_number, Token::Word(word)));
        }
    }
    tokens
}

impl Parser {
    fn new(file: &str, text: &str) -> Parser {
        Parser {
            file: file.into(),
            tokens: tokens(text),
            at: 0,
            last_line: text.lines().count().max(1),
            instances_left: MOST_INSTANCES,
        }
    }

    fn next(&mut self) -> Option<(usize, Token)> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn line(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.last_line, |(line, _)| *line)
    }

    fn error(&self, line: usize, message: impl Into<String>) -> ImportError {
        ImportError::Syntax {
            file: self.file.to_string(),
            line,
            message: message.into(),
        }
    }

    fn unexpected(&self, line: usize, found: &Token, expected: &str) -> ImportError {
        let found = match found {
            Token::Word(word) => format!("`{word}`"),
            Token::Mark(mark) => format!("`{mark}`"),
        };
        self.error(line, format!("found {found}, expected {expected}"))
    }

    /// Takes the mark, or says what stands there.
    fn expect(&mut self, mark: char, after: &str) -> Result<(), ImportError> {
        let expected = format!("`{mark}` after {after}");
        match self.next() {
            Some((_, Token::Mark(found))) if found == mark => Ok(()),
            Some((line, found)) => Err(self.unexpected(line, &found, &expected)),
            None => Err(self.end(&expected)),
        }
    }

    fn end(&self, expected: &str) -> ImportError {
        self.error(
            self.last_line,
            format!("the file ends where it needs {expected}"),
        )
    }

    fn word(&mut self, expected: &str) -> Result<String, ImportError> {
        match self.next() {
            Some((_, Token::Word(word))) => Ok(word),
            Some((line, found)) => Err(self.unexpected(line, &found, expected)),
            None => Err(self.end(expected)),
        }
    }

    fn item(&mut self, line: usize, word: String) -> Result<Item, ImportError> {
        match word.as_str() {
            "source" => Ok(Item::Source(self.word("the name of a file")?, line)),
            "instantiate" => self.instantiate(),
            "topology" => {
                self.word("the kind of the topmost component")?;
                let instance = self.word("the name of the topmost component")?;
                Ok(Item::Topology(self.tree(instance, 0)?))
            }
            _ => {
                let name = match self.peek() {
                    Some(Token::Word(_)) => self.word("the name of a block")?,
                    _ => String::new(),
                };
                Ok(Item::Block(self.block(line, word, name, 0)?))
            }
        }
    }

    fn instantiate(&mut self) -> Result<Item, ImportError> {
        self.expect('[', "instantiate")?;
        let mut instances: Vec<String> = Vec::new();
        loop {
            match self.next() {
                Some((line, Token::Word(word))) if word.contains("..") => {
                    // The blanks around the points are often left out.
                    let (from, to) = word.split_once("..").unwrap_or_default();
                    let from = match from {
                        "" => instances.pop().unwrap_or_default(),
                        from => from.to_string(),
                    };
                    let to = match to {
                        "" => self.word("the last name of a range")?,
                        to => to.to_string(),
                    };
                    instances.extend(self.range(line, &from, &to)?);
                }
                Some((_, Token::Word(word))) => instances.push(word),
                Some((_, Token::Mark(','))) => {}
                Some((_, Token::Mark(']'))) => break,
                Some((line, found)) => {
                    return Err(self.unexpected(line, &found, "the name of an instance or `]`"));
                }
                None => return Err(self.end("`]`")),
            }
        }
        let line = self.line();
        match self.word("`as`")?.as_str() {
            "as" => {}
            word => return Err(self.unexpected(line, &Token::Word(word.into()), "`as`")),
        }
        let of = self.word("the name of a block")?;
        Ok(Item::Instantiate { instances, of })
    }

    /// The names from `from` to `to`, which differ in a number at their end.
    fn range(
        &mut self,
        line: usize,
        from: &str,
        to: &str,
    ) -> Result<impl Iterator<Item = String> + use<>, ImportError> {
        let split = |name: &str| {
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = name[stem.len()..].parse::<u32>().ok()?;
            Some((stem.to_string(), number))
        };
        let (stem, first, last) = match (split(from), split(to)) {
            (Some((stem, first)), Some((other, last))) if stem == other && first <= last => {
                (stem, first, last)
            }
            _ => {
                let message = format!(
                    "`{from} .. {to}` should be two names with ascending numbers, as disk0 .. disk5"
                );
                return Err(self.error(line, message));
            }
        };
        self.instances_left = match self.instances_left.checked_sub(last - first) {
            Some(left) => left,
            None => {
                let message = format!("ranges of more than {MOST_INSTANCES} instances in all");
                return Err(self.error(line, message));
            }
        };
        Ok((first..=last).map(move |number| format!("{stem}{number}")))
    }

    fn tree(&mut self, instance: String, depth: usize) -> Result<Tree, ImportError> {
        self.shallow(depth)?;
        self.expect('[', "the name of a component")?;
        let mut below = Vec::new();
        loop {
            match self.next() {
                Some((_, Token::Mark(']'))) => return Ok(Tree { instance, below }),
                Some((_, Token::Mark(','))) => {}
                Some((_, Token::Word(_))) => {
                    let instance = self.word("the name of a component")?;
                    below.push(self.tree(instance, depth + 1)?);
                }
                Some((line, found)) => {
                    return Err(self.unexpected(line, &found, "a component or `]`"));
                }
                None => return Err(self.end("`]`")),
            }
        }
    }

    fn shallow(&self, depth: usize) -> Result<(), ImportError> {
        if depth < NESTING_MAX {
            Ok(())
        } else {
            Err(self.error(self.line(), format!("nested more than {NESTING_MAX} deep")))
        }
    }

    fn block(
        &mut self,
        line: usize,
        kind: String,
        name: String,
        depth: usize,
    ) -> Result<Block, ImportError> {
        self.shallow(depth)?;
        self.expect('{', &format!("`{kind}`"))?;
        let mut params = Vec::new();
        loop {
            if self.peek() == Some(&Token::Mark('}')) {
                self.at += 1;
                break;
            }
            let line = self.line();
            let key = self.words("a parameter or `}`")?;
            self.expect('=', &format!("`{key}`"))?;
            let value = self.value(&key, depth + 1)?;
            params.push(Param { line, key, value });
            match self.next() {
                Some((_, Token::Mark(','))) => {}
                Some((_, Token::Mark('}'))) => break,
                Some((line, found)) => {
                    return Err(self.unexpected(line, &found, "`,` or `}` after a value"));
                }
                None => return Err(self.end("`}`")),
            }
        }
        Ok(Block {
            file: Rc::clone(&self.file),
            line,
            kind,
            name,
            params,
        })
    }

    /// One word and all that follow it.
    fn words(&mut self, expected: &str) -> Result<String, ImportError> {
        let mut words = self.word(expected)?;
        while let Some(Token::Word(word)) = self.peek() {
            words.push(' ');
            words.push_str(word);
            self.at += 1;
        }
        Ok(words)
    }

    fn value(&mut self, key: &str, depth: usize) -> Result<Value, ImportError> {
        self.shallow(depth)?;
        let line = self.line();
        let expected = format!("the value of `{key}`");
        match self.peek() {
            Some(Token::Mark('[')) => {
                self.at += 1;
                self.list(key, depth)
            }
            Some(Token::Word(word)) if word == "source" => {
                self.at += 1;
                Ok(Value::Source(self.word("the name of a file")?))
            }
            _ => {
                let mut words = self.words(&expected)?;
                if self.peek() != Some(&Token::Mark('{')) {
                    return Ok(Value::Text(words));
                }
                let name = match words.split_once(' ') {
                    Some((kind, name)) => {
                        let name = name.to_string();
                        words = kind.to_string();
                        name
                    }
                    None => String::new(),
                };
                Ok(Value::Block(self.block(line, words, name, depth)?))
            }
        }
    }

    fn entry(&mut self, key: &str, depth: usize) -> Result<Entry, ImportError> {
        let line = self.line();
        Ok(Entry {
            file: Rc::clone(&self.file),
            line,
            value: self.value(key, depth)?,
        })
    }

    fn list(&mut self, key: &str, depth: usize) -> Result<Value, ImportError> {
        let mut items = Vec::new();
        loop {
            if self.peek() == Some(&Token::Mark(']')) {
                self.at += 1;
                break;
            }
            items.push(self.entry(key, depth + 1)?);
            match self.next() {
                Some((_, Token::Mark(','))) => {}
                Some((_, Token::Mark(']'))) => break,
                Some((line, found)) => {
                    return Err(self.unexpected(line, &found, "`,` or `]` after an item"));
                }
                None => return Err(self.end("`]`")),
            }
        }
        Ok(Value::List(items))
    }
}
