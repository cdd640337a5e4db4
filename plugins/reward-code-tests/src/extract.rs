//! Finds the candidate's code in an answer.

use crate::config::Extraction;

/// The code of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub(crate) source: String,
    /// True if the code was in a fenced block. The whole of an answer may be prose.
    pub(crate) fenced: bool,
}

/// The code in an answer; none if there is none.
pub(crate) fn extract(answer: &str, how: Extraction) -> Option<Code> {
    let blocks = if how == Extraction::Answer {
        Vec::new()
    } else {
        blocks(answer)
    };
    let python: Vec<&Block> = blocks.iter().filter(|block| block.python).collect();
    let of = if python.is_empty() {
        blocks.iter().collect()
    } else {
        python
    };
    let source = match (how, of.first(), of.last()) {
        (Extraction::LastBlock, _, Some(block)) | (Extraction::FirstBlock, Some(block), _) => {
            block.source.clone()
        }
        (Extraction::AllBlocks, Some(_), _) => {
            let sources: Vec<&str> = of.iter().map(|block| &*block.source).collect();
            sources.join("\n")
        }
        _ => {
            let source = answer.trim_matches(['\n', '\r']).trim_end();
            return (!source.trim().is_empty()).then(|| Code {
                source: format!("{source}\n"),
                fenced: false,
            });
        }
    };
    (!source.trim().is_empty()).then_some(Code {
        source,
        fenced: true,
    })
}

struct Block {
    python: bool,
    source: String,
}

/// The fenced blocks of CommonMark: three or more backticks or tildes, closed by as many. A block that is not closed
/// continues to the end, for example if the model ran out of tokens.
fn blocks(answer: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = answer.lines();
    while let Some(line) = lines.next() {
        let Some((fence, info)) = opening(line) else {
            continue;
        };
        let indent = line.len() - line.trim_start_matches(' ').len();
        let language = info.split([' ', '{', ',', ':']).next().unwrap_or_default();
        let mut source = String::new();
        for line in lines.by_ref() {
            if closes(line, fence) {
                break;
            }
            let kept = line.len() - line.trim_start_matches(' ').len();
            source.push_str(&line[kept.min(indent)..]);
            source.push('\n');
        }
        let language = language.to_ascii_lowercase();
        blocks.push(Block {
            python: matches!(&*language, "python" | "py" | "python3"),
            source,
        });
    }
    blocks
}

fn opening(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start_matches(' ');
    let mark = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let (fence, info) = text.split_at(text.len() - text.trim_start_matches(mark).len());
    (fence.len() >= 3 && !(mark == '`' && info.contains('`'))).then(|| (fence, info.trim()))
}

fn closes(line: &str, fence: &str) -> bool {
    let text = line.trim();
    text.starts_with(fence) && text.trim_start_matches(&fence[..1]).is_empty()
}
