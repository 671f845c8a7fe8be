import type { Json } from '../../base/json.ts'
import { nearest } from '../../base/nearest.ts'
import type { PromptAlias } from './alias.ts'
import { Wrong } from './file-error.ts'
import { dataOf, type Entry, type Tree } from './tree.ts'

/** The method that a file names. Throws Wrong for one that is not offered. */
export function aliasNamed<A>(aliases: ReadonlyMap<string, A>, { key, at }: Entry): A {
  const alias = aliases.get(key)
  if (alias !== undefined) return alias
  const offered = [...aliases.keys()]
  const meant = nearest(key, offered)
  const hint = meant === undefined ? `These are: ${offered.join(', ')}.` : `Did you mean ${meant}?`
  throw new Wrong(`${JSON.stringify(key)} is not offered to prompt files`, at, hint)
}

/** Its arguments in order: nothing, or `{ name: value, .args: [...] }`. Throws Wrong. */
export function aliasArguments({ params }: Pick<PromptAlias, 'params'>, tree: Tree): (Json | undefined)[] {
  if (tree.kind === 'leaf' && tree.value === null) return params.map(() => undefined)
  if (tree.kind !== 'map') throw new Wrong('the arguments are { name: value } or nothing', tree.at, ARGS)
  const args = new Map<string, Json>()
  for (const entry of tree.entries) {
    if (entry.key === '.args') addInOrder(args, params, entry.value)
    else addNamed(args, params, entry)
  }
  return params.map((name) => args.get(name))
}

const ARGS = 'Arguments without names are a list under .args.'

function addInOrder(args: Map<string, Json>, params: readonly string[], list: Tree): void {
  if (list.kind !== 'list') throw new Wrong('.args is a list', list.at)
  list.items.forEach((item, index) => {
    const name = params[index]
    if (name === undefined) throw new Wrong(`there are only ${params.length} arguments: ${params.join(', ')}`, item.at)
    addNamed(args, params, { key: name, at: item.at, value: item })
  })
}

function addNamed(args: Map<string, Json>, params: readonly string[], { key, at, value }: Entry): void {
  if (!params.includes(key))
    throw new Wrong(`there is no argument ${JSON.stringify(key)}`, at, `There are: ${params.join(', ')}.`)
  if (args.has(key)) throw new Wrong(`the argument ${JSON.stringify(key)} is given twice`, at)
  args.set(key, dataOf(value))
}
