import { readYaml, type YamlTree, YamlTrouble } from '../../base/yaml-tree.ts'
import { Wrong } from './file-error.ts'
import type { Tree } from './tree.ts'

const LIMITS = { deepest: 60, mostValues: 20_000, mostWords: 70_000 } as const

/** Reads the YAML of a prompt file, with the place of every value. Throws Wrong. */
export async function parseYaml(text: string): Promise<Tree> {
  try {
    return treeOf(await readYaml(text, LIMITS))
  } catch (error) {
    if (!(error instanceof YamlTrouble)) throw error
    throw new Wrong(error.isSyntax ? `not valid YAML: ${error.message}` : error.message, error.at, error.hint)
  }
}

function treeOf(tree: YamlTree): Tree {
  const at = { line: tree.line, column: tree.column }
  if (tree.kind === 'list') return { kind: 'list', items: tree.items.map(treeOf), at }
  if (tree.kind === 'leaf') {
    const { value } = tree
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Wrong(`${value} is no number to keep`, at)
    return { kind: 'leaf', value, at }
  }
  const entries = [...tree.entries].map(([key, { line, column, value }]) => {
    return { key, at: { line, column }, value: treeOf(value) }
  })
  return { kind: 'map', entries, at }
}
