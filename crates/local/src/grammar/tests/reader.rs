//! Reads a grammar as llama.cpp does, writes texts of it at random, and says which texts it takes.

use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Debug)]
enum Node {
    Text(Vec<char>),
    Class { ranges: Vec<(char, char)>, not: bool },
    Rule(String),
    All(Vec<Node>),
    Any(Vec<Node>),
    Times(Box<Node>, usize, usize),
}

pub struct Grammar(HashMap<String, Node>);

/// Repetition without an end.
const ENDLESS: usize = usize::MAX;

impl Grammar {
    pub fn read(text: &str) -> Self {
        let rule = |line: &str| {
            let (name, body) = line.split_once(" ::=").unwrap_or_else(|| panic!("no rule: {line}"));
            let letters: Vec<char> = body.chars().collect();
            let mut reader = Reader { letters: &letters, at: 0 };
            let node = reader.choices();
            assert_eq!(reader.at, letters.len(), "rest of {line}");
            (name.to_owned(), node)
        };
        let rules: HashMap<_, _> = text.lines().filter(|line| !line.is_empty()).map(rule).collect();
        let out = Self(rules);
        out.0.values().for_each(|node| out.check(node));
        out
    }

    fn check(&self, node: &Node) {
        match node {
            Node::Rule(name) => assert!(self.0.contains_key(name), "no rule {name}"),
            Node::All(all) | Node::Any(all) => all.iter().for_each(|node| self.check(node)),
            Node::Times(node, ..) => self.check(node),
            Node::Text(_) | Node::Class { .. } => {}
        }
    }

    /// A text of a rule.
    pub fn write(&self, rule: &str, random: &mut Random) -> String {
        let mut out = String::new();
        self.write_node(&self.0[rule], random, &mut out);
        out
    }

    fn write_node(&self, node: &Node, random: &mut Random, out: &mut String) {
        match node {
            Node::Text(text) => out.extend(text),
            Node::Class { ranges, not } => out.push(letter_of(ranges, *not, random)),
            Node::Rule(name) => self.write_node(&self.0[name], random, out),
            Node::All(all) => all.iter().for_each(|node| self.write_node(node, random, out)),
            Node::Any(any) => self.write_node(&any[random.below(any.len())], random, out),
            Node::Times(node, least, most) => {
                // Long texts come to an end.
                let more = if out.len() > 1500 { 0 } else { [0, 0, 0, 1, 1, 2, 3, 3, 300][random.below(9)] };
                let count = (least + more).min(*most);
                (0..count).for_each(|_| self.write_node(node, random, out));
            }
        }
    }

    /// Whether a text is of a rule.
    pub fn takes(&self, rule: &str, text: &str) -> bool {
        let letters: Vec<char> = text.chars().collect();
        let mut known = HashMap::new();
        self.ends(rule, &letters, 0, &mut known).contains(&letters.len())
    }

    fn ends(
        &self,
        rule: &str,
        text: &[char],
        from: usize,
        known: &mut HashMap<(String, usize), BTreeSet<usize>>,
    ) -> BTreeSet<usize> {
        if let Some(ends) = known.get(&(rule.to_owned(), from)) {
            return ends.clone();
        }
        let ends = self.node_ends(&self.0[rule], text, from, known);
        known.insert((rule.to_owned(), from), ends.clone());
        ends
    }

    fn node_ends(
        &self,
        node: &Node,
        text: &[char],
        from: usize,
        known: &mut HashMap<(String, usize), BTreeSet<usize>>,
    ) -> BTreeSet<usize> {
        match node {
            Node::Text(wanted) => {
                let found = text[from..].starts_with(wanted);
                found.then_some(from + wanted.len()).into_iter().collect()
            }
            Node::Class { ranges, not } => {
                let within = |letter: &char| ranges.iter().any(|(a, b)| (a..=b).contains(&letter)) != *not;
                text.get(from).filter(|letter| within(letter)).map(|_| from + 1).into_iter().collect()
            }
            Node::Rule(name) => self.ends(name, text, from, known),
            Node::All(all) => {
                let mut at = BTreeSet::from([from]);
                for node in all {
                    at = at.into_iter().flat_map(|from| self.node_ends(node, text, from, known)).collect();
                }
                at
            }
            Node::Any(any) => any.iter().flat_map(|node| self.node_ends(node, text, from, known)).collect(),
            Node::Times(node, least, most) => {
                let (mut at, mut out) = (BTreeSet::from([from]), BTreeSet::new());
                for count in 0..=text.len() + 1 {
                    if count >= *least {
                        out.extend(&at);
                    }
                    if count == *most || at.is_empty() {
                        break;
                    }
                    at = at.into_iter().flat_map(|from| self.node_ends(node, text, from, known)).collect();
                }
                out
            }
        }
    }
}

fn letter_of(ranges: &[(char, char)], not: bool, random: &mut Random) -> char {
    if not {
        loop {
            let letter =
                ['a', 'Z', '9', ' ', '\\', '"', 'é', '🦀', '\n', '\u{0}', '_', '.'][random.below(12)];
            if !ranges.iter().any(|(a, b)| (*a..=*b).contains(&letter)) {
                return letter;
            }
        }
    }
    let (first, last) = ranges[random.below(ranges.len())];
    let span = u32::from(last) - u32::from(first) + 1;
    let code = u32::from(first) + random.below(span as usize) as u32;
    char::from_u32(code).unwrap_or(first)
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next(&mut self) -> char {
        let letter = self.peek().expect("more of the grammar");
        self.at += 1;
        letter
    }

    fn choices(&mut self) -> Node {
        let mut any = vec![self.sequence()];
        while self.peek() == Some('|') {
            self.at += 1;
            any.push(self.sequence());
        }
        if any.len() == 1 { any.remove(0) } else { Node::Any(any) }
    }

    fn sequence(&mut self) -> Node {
        let mut all = Vec::new();
        loop {
            while self.peek() == Some(' ') {
                self.at += 1;
            }
            let node = match self.peek() {
                None | Some('|' | ')') => return Node::All(all),
                Some('"') => self.text(),
                Some('[') => self.class(),
                Some('(') => {
                    self.at += 1;
                    let inner = self.choices();
                    assert_eq!(self.next(), ')');
                    inner
                }
                Some(_) => {
                    let start = self.at;
                    while self.peek().is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
                        self.at += 1;
                    }
                    assert!(self.at > start, "what is {:?}?", self.peek());
                    Node::Rule(self.letters[start..self.at].iter().collect())
                }
            };
            all.push(self.repeated(node));
        }
    }

    fn repeated(&mut self, node: Node) -> Node {
        let times = |least, most| Node::Times(Box::new(node.clone()), least, most);
        match self.peek() {
            Some('*') => {
                self.at += 1;
                times(0, ENDLESS)
            }
            Some('+') => {
                self.at += 1;
                times(1, ENDLESS)
            }
            Some('?') => {
                self.at += 1;
                times(0, 1)
            }
            Some('{') => {
                let inside: String = self.letters[self.at + 1..].iter().take_while(|l| **l != '}').collect();
                self.at += inside.len() + 2;
                let (least, most) = inside.split_once(',').unwrap_or((&inside, &inside));
                let most = if most.is_empty() { ENDLESS } else { most.parse().unwrap() };
                let least: usize = least.parse().unwrap();
                // What llama.cpp refuses.
                assert!(least <= 2000 && (most == ENDLESS || most <= 2000), "{{{inside}}}");
                times(least, most)
            }
            _ => node,
        }
    }

    fn letter(&mut self) -> char {
        let letter = self.next();
        if letter != '\\' {
            return letter;
        }
        let code = |reader: &mut Self, count: usize| {
            let digits: String = (0..count).map(|_| reader.next()).collect();
            char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap()
        };
        match self.next() {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => code(self, 2),
            'u' => code(self, 4),
            'U' => code(self, 8),
            other => {
                assert!("\\\"[]-".contains(other), "unknown escape \\{other}");
                other
            }
        }
    }

    fn text(&mut self) -> Node {
        self.at += 1;
        let mut out = Vec::new();
        while self.peek() != Some('"') {
            out.push(self.letter());
        }
        self.at += 1;
        Node::Text(out)
    }

    fn class(&mut self) -> Node {
        self.at += 1;
        let not = self.peek() == Some('^');
        self.at += usize::from(not);
        let mut ranges = Vec::new();
        while self.peek() != Some(']') {
            let first = self.letter();
            let ranged = self.peek() == Some('-') && self.letters.get(self.at + 1) != Some(&']');
            let last = if ranged {
                self.at += 1;
                self.letter()
            } else {
                first
            };
            assert!(first <= last, "{first:?}-{last:?}");
            ranges.push((first, last));
        }
        self.at += 1;
        assert!(!ranges.is_empty() || not);
        Node::Class { ranges, not }
    }
}

/// Numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % count
    }
}
