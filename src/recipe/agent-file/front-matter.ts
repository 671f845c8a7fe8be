import { type Report, refuse } from '../text/notice.ts'
import { parseYaml } from '../text/parse-yaml.ts'
import type { Entry, MapTree, Tree } from '../text/tree.ts'

export interface FrontMatter {
  readonly fields: MapTree
  /** What is below it, without blank lines around. */
  readonly body: string
}

/**
 * The YAML between a first line `---` and the next one, and the text below. Undefined when the file has none. YAML that is
 * none is read once more with plain values that hold a colon as text, as many files have it.
 */
export async function readFrontMatter(text: string, file: string, report: Report): Promise<FrontMatter | undefined> {
  const parts = split(text)
  if (parts === undefined) return undefined
  const { head, body } = parts
  // One line more above, so that the lines are those of the file.
  const strict = await parseYaml(`\n${head}`)
  if (strict.ok) return whole(merged(strict.tree, report), body, file)
  const mended = await parseYaml(`\n${asTexts(head)}`)
  if (!mended.ok) throw refuse({ ...strict.finding, message: `the front matter is ${strict.finding.message}` }, file)
  const message = 'the front matter is not valid YAML; values with a colon were read as text'
  report.warning({ code: 'repaired', message, line: strict.finding.line ?? null, hint: 'Put such values in quotes.' })
  return whole(merged(mended.tree, report), body, file)
}

/** With what `<<` brings in from elsewhere: its own keys win. What it says may be a restriction. */
function merged(tree: Tree, report: Report): Tree {
  if (tree.kind === 'leaf') return tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => merged(item, report)) }
  const own = [...tree.entries].map(([key, entry]): [string, Entry] => {
    return [key, { ...entry, value: merged(entry.value, report) }]
  })
  const [, base] = own.find(([key]) => key === MERGE) ?? []
  const maps = base?.value.kind === 'list' ? base.value.items : base === undefined ? [] : [base.value]
  if (base === undefined || !maps.every((map) => map.kind === 'map')) return { ...tree, entries: new Map(own) }
  report.warning({ code: 'repaired', message: `\`${MERGE}\` is read as the keys that it brings in`, line: base.line })
  const names = new Set(own.map(([key]) => key))
  // Of several, the first wins.
  const others = maps.toReversed().flatMap((map) => [...map.entries].filter(([key]) => !names.has(key)))
  return { ...tree, entries: new Map([...others, ...own.filter(([key]) => key !== MERGE)]) }
}

const MERGE = '<<'

/** Only whole lines of three dashes divide; what looks like it inside a line or below does not. */
function split(text: string): { readonly head: string; readonly body: string } | undefined {
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  const open = /^---[ \t]*\r?\n/.exec(source)
  if (open === null) return undefined
  const close = /^---[ \t]*$/gm
  close.lastIndex = open[0].length
  const found = close.exec(source)
  if (found === null) return undefined
  const body = source.slice(found.index + found[0].length)
  return { head: source.slice(open[0].length, found.index), body: body.replace(/^\s*\n/, '').trim() }
}

function whole(
  tree: MapTree | { readonly kind: 'leaf' | 'list'; readonly line: number },
  body: string,
  file: string,
): FrontMatter {
  if (tree.kind === 'map') return { fields: tree, body }
  if (tree.kind === 'leaf') return { fields: { kind: 'map', entries: new Map(), line: 1 }, body }
  throw refuse({ code: 'syntax', message: 'the front matter must be keys and values', line: tree.line }, file)
}

/** `key: a: b` becomes a block of text; so does a value that begins with a sign that YAML keeps for itself. */
function asTexts(head: string): string {
  return head
    .split('\n')
    .map((line) => {
      const [, key, value] = /^([\w-]+):[ \t]+(\S.*)$/.exec(line.trimEnd()) ?? []
      if (key === undefined || value === undefined || !needsBlock(key, value)) return line
      return `${key}: |-\n  ${value}`
    })
    .join('\n')
}

function needsBlock(key: string, value: string): boolean {
  if (/^[|>]/.test(value)) return false
  if (/^(["']).*\1$/.test(value) || /^\[.*\]$/.test(value) || /^\{.*\}$/.test(value)) return false
  // A list or a quote that does not end is a mistake, but for a text.
  if (/^["'[{]/.test(value)) return key === 'description'
  return /: |:$| #/.test(value) || /^[@`*&!%]/.test(value)
}
