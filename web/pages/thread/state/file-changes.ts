// The change of a file, from the arguments of the call that made it.

import type { TreeNode } from 'legate/client'

/** One line of a change. */
export interface DiffLine {
  readonly kind: 'same' | 'add' | 'remove'
  readonly text: string
}

export interface FileChange {
  readonly path: string
  /** Parts of the file that changed, each with its lines; numbers of lines are not in a call. */
  readonly parts: readonly (readonly DiffLine[])[]
  readonly added: number
  readonly removed: number
}

const EDITS: ReadonlySet<string> = new Set(['edit_file', 'str_replace', 'write_file', 'create_file'])

/** The changes that a call made, where it is one of the file tools; else none. */
export function changesOf({ what, call }: Pick<TreeNode, 'what' | 'call'>): FileChange[] {
  const input = call?.input
  if (!EDITS.has(what) || input === null || typeof input !== 'object' || Array.isArray(input)) return []
  const given = input as { readonly [name: string]: unknown }
  const { path } = given
  if (typeof path !== 'string') return []
  const edits = Array.isArray(given['edits']) ? given['edits'] : [given]
  const parts = edits.flatMap(partOf)
  if (parts.length === 0) return []
  const countOf = (kind: DiffLine['kind']) => parts.flat().filter((line) => line.kind === kind).length
  return [{ path, parts, added: countOf('add'), removed: countOf('remove') }]
}

function partOf(edit: unknown): DiffLine[][] {
  if (edit === null || typeof edit !== 'object') return []
  const { oldText, newText, content } = edit as { readonly [name: string]: unknown }
  if (typeof oldText === 'string' && typeof newText === 'string') return [diffLines(oldText, newText)]
  return typeof content === 'string' ? [content.split('\n').map((text) => ({ kind: 'add', text }))] : []
}

/** Tables of more cells are not made: then all old lines are removed and all new ones added. */
const MOST_CELLS = 250_000

/** The lines of two texts, beside each other: the longest common ones are the same. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  if (old.length * now.length > MOST_CELLS)
    return [
      ...old.map((text) => ({ kind: 'remove', text }) as const),
      ...now.map((text) => ({ kind: 'add', text }) as const),
    ]
  const common = commonLengths(old, now)
  const lines: DiffLine[] = []
  let [a, b] = [0, 0]
  const length = (row: number, column: number) => common[row]?.[column] ?? 0
  while (a < old.length || b < now.length) {
    const [was = '', is = ''] = [old[a], now[b]]
    if (a < old.length && b < now.length && was === is) {
      lines.push({ kind: 'same', text: was })
      a++
      b++
    } else if (b >= now.length || (a < old.length && length(a + 1, b) >= length(a, b + 1))) {
      lines.push({ kind: 'remove', text: was })
      a++
    } else {
      lines.push({ kind: 'add', text: is })
      b++
    }
  }
  return lines
}

/** For each place in both texts: how many lines after it are common. */
function commonLengths(old: readonly string[], now: readonly string[]): Uint32Array[] {
  const table = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1))
  for (let a = old.length - 1; a >= 0; a--) {
    for (let b = now.length - 1; b >= 0; b--) {
      const row = table[a] as Uint32Array
      const below = table[a + 1] as Uint32Array
      row[b] = old[a] === now[b] ? (below[b + 1] ?? 0) + 1 : Math.max(below[b] ?? 0, row[b + 1] ?? 0)
    }
  }
  return table
}
