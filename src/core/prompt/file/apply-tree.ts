import { messageOf } from '../../base/error.ts'
import { nearest } from '../../base/options.ts'
import type { Prompt } from '../prompt.ts'
import type { PromptWarning } from '../render/options.ts'
import { ShapeError } from '../shape/read-shape.ts'
import { fillKey, fillText, type ReadMappings } from '../slots/placeholder.ts'
import { isSlot, SLOTS } from '../slots/slot.ts'
import { aliasArguments, aliasNamed, type PromptAlias } from './alias.ts'
import {
  dataOf,
  FileProblem,
  type PromptEntry,
  type PromptMap,
  type PromptPlace,
  type PromptTree,
  placeOf,
  treeAt,
} from './tree.ts'

export interface ApplyOptions<P extends Prompt> {
  readonly mappings: ReadMappings
  readonly aliases: ReadonlyMap<string, PromptAlias<P>>
  readonly warn: (warning: PromptWarning, at: PromptPlace) => void
}

/**
 * Applies a prompt file to a prompt, from top to end. The spelling of a key decides its meaning: a mapping can name a
 * slot, but cannot turn it into a call. Throws FileProblem, or the error in an error's `cause`.
 */
export function applyTree<P extends Prompt>(prompt: P, tree: PromptTree, options: ApplyOptions<P>): P {
  if (tree.kind !== 'map') throw new FileProblem('a prompt file is a mapping, such as "input: Hello"', tree.at)
  checkCount(tree)
  return tree.entries.reduce((made, entry) => applyEntry(made, entry, options), prompt)
}

/** The most keys of one file: each becomes a block of the prompt with its own title. */
const MOST_KEYS = 1_000

function checkCount({ entries }: PromptMap): void {
  const first = entries[MOST_KEYS]
  if (first === undefined) return
  throw new FileProblem(`there are more than ${MOST_KEYS} keys`, first.at, 'Put what belongs together under one key.')
}

const HEADINGS = ['.agent', '.request', '.alias']

function applyEntry<P extends Prompt>(prompt: P, entry: PromptEntry, options: ApplyOptions<P>): P {
  const { key, at, value } = entry
  // An empty heading adds nothing.
  if (HEADINGS.includes(key) && value.kind === 'leaf' && value.value === null) return prompt
  if (key === '.agent') return applyLayer(prompt, value, { ...options, always: true })
  if (key === '.request') return applyLayer(prompt, value, { ...options, always: false })
  if (key === '.alias') return applyAliases(prompt, value, options)
  if (key.startsWith('.')) {
    const meant = nearest(key.slice(1), ['agent', 'request', 'alias'])
    const hint = meant === undefined ? 'There are .agent, .request and .alias.' : `Did you mean .${meant}?`
    throw new FileProblem(`there is no ${JSON.stringify(key)}`, at, hint)
  }
  if (!key.startsWith('$') || key.startsWith('${')) return setSlot(prompt, entry, { ...options, always: false })
  if (key === '$') throw new FileProblem('a slot needs a name behind the $', at)
  return setSlot(prompt, { ...entry, key: key.slice(1) }, { ...options, always: true })
}

interface LayerOptions<P extends Prompt> extends ApplyOptions<P> {
  readonly always: boolean
}

/** Applies one layer. A value that is no mapping becomes the agent's system prompt, or this request's input. */
function applyLayer<P extends Prompt>(prompt: P, tree: PromptTree, options: LayerOptions<P>): P {
  if (tree.kind === 'map') {
    checkCount(tree)
    return tree.entries.reduce((made, entry) => setSlot(made, entry, options), prompt)
  }
  return setSlot(prompt, { key: options.always ? 'system' : 'input', at: tree.at, value: tree }, options)
}

function setSlot<P extends Prompt>(prompt: P, entry: PromptEntry, options: LayerOptions<P>): P {
  const { mappings, always, warn } = options
  const slot = fillKey(entry.key, mappings)
  const tree = fillTree(entry.value, mappings)
  const meant = isSlot(slot) ? undefined : nearest(slot, SLOTS)
  if (meant !== undefined) {
    const message = `${JSON.stringify(slot)} is a key of your own. If you meant ${meant}, correct it.`
    warn({ code: 'near_slot', subject: slot, message }, entry.at)
  }
  try {
    return prompt.set(slot, dataOf(tree), { always })
  } catch (error) {
    if (error instanceof ShapeError) throw placed(error.problem, placeOf(tree, error.path), error)
    throw placed(messageOf(error), entry.at, error)
  }
}

function applyAliases<P extends Prompt>(prompt: P, tree: PromptTree, { mappings, aliases }: ApplyOptions<P>): P {
  if (tree.kind !== 'map') throw new FileProblem('.alias is a mapping of methods to arguments', tree.at)
  return tree.entries.reduce((made, entry) => {
    const alias = aliasNamed(aliases, entry)
    const args = aliasArguments(alias, fillTree(entry.value, mappings))
    try {
      return alias.run(made, args)
    } catch (error) {
      throw placed(messageOf(error), entry.at, error)
    }
  }, prompt)
}

function placed(problem: string, at: PromptPlace, cause: unknown): FileProblem {
  const wrong = new FileProblem(problem, at)
  wrong.cause = cause
  return wrong
}

/** Replaces the placeholders in keys and texts, each once, at its own place. */
function fillTree(tree: PromptTree, mappings: ReadMappings): PromptTree {
  if (mappings.size === 0) return tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => fillTree(item, mappings)) }
  if (tree.kind === 'map') return fillMap(tree, mappings)
  return typeof tree.value === 'string' ? treeAt(fillText(tree.value, mappings), tree.at) : tree
}

function fillMap(tree: PromptMap, mappings: ReadMappings): PromptMap {
  const entries = new Map<string, PromptEntry>()
  for (const { key, at, value } of tree.entries) {
    const name = fillKey(key, mappings)
    if (entries.has(name)) throw new FileProblem(`with these mappings two keys become ${JSON.stringify(name)}`, at)
    entries.set(name, { key: name, at, value: fillTree(value, mappings) })
  }
  return { ...tree, entries: [...entries.values()] }
}
