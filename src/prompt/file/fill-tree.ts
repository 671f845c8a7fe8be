import { fillKey, fillText, type ReadMappings } from '../slots/placeholder.ts'
import { Wrong } from './file-error.ts'
import { type Entry, type MapTree, type Tree, treeAt } from './tree.ts'

/** The tree with mappings for the placeholders of keys and texts, each put in once, at the place it was asked for. */
export function fillTree(tree: Tree, mappings: ReadMappings): Tree {
  if (mappings.size === 0) return tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => fillTree(item, mappings)) }
  if (tree.kind === 'map') return fillMap(tree, mappings)
  return typeof tree.value === 'string' ? treeAt(fillText(tree.value, mappings), tree.at) : tree
}

function fillMap(tree: MapTree, mappings: ReadMappings): MapTree {
  const entries = new Map<string, Entry>()
  for (const { key, at, value } of tree.entries) {
    const name = fillKey(key, mappings)
    if (entries.has(name)) throw new Wrong(`with these mappings two keys become ${JSON.stringify(name)}`, at)
    entries.set(name, { key: name, at, value: fillTree(value, mappings) })
  }
  return { ...tree, entries: [...entries.values()] }
}
