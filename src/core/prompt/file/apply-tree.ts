import { messageOf } from '../../base/error.ts'
import { nearest } from '../../base/options.ts'
import {
  jsonOf,
  placeAt,
  type TextEntry,
  type TextMap,
  type TextPlace,
  TextProblem,
  type TextTree,
  treeAt,
} from '../../base/text-tree/tree.ts'
import type { Prompt } from '../prompt.ts'
import type { PromptWarning } from '../render/options.ts'
import { ShapeError } from '../shape/read-shape.ts'
import { fillKey, fillText, type ReadMappings } from '../slots/placeholder.ts'
import { isSlot, SLOTS } from '../slots/slot.ts'
import { aliasArguments, aliasNamed, type PromptAlias } from './alias.ts'

export interface ApplyOptions<P extends Prompt> {
  readonly mappings: ReadMappings
  readonly aliases: ReadonlyMap<string, PromptAlias<P>>
  readonly warn: (warning: PromptWarning, at: TextPlace) => void
}

/**
 * Applies a prompt file to a prompt, from top to end. The spelling of a key decides its meaning: a mapping can name a
 * slot, but cannot turn it into a call. Throws TextProblem, or the error in an error's `cause`.
 */
export function applyTree<P extends Prompt>(prompt: P, tree: TextTree, options: ApplyOptions<P>): P {
  if (tree.kind !== 'map') throw new TextProblem('a prompt file is a mapping, such as "input: Hello"', tree)
  checkCount(tree)
  return [...tree.entries].reduce((made, [key, entry]) => applyEntry(made, key, entry, options), prompt)
}

/** The most keys of one file: each becomes a block of the prompt with its own title. */
const MOST_KEYS = 1_000

function checkCount(map: TextMap): void {
  const { entries } = map
  if (entries.size <= MOST_KEYS) return
  const first = [...entries.values()][MOST_KEYS]
  throw new TextProblem(
    `there are more than ${MOST_KEYS} keys`,
    first ?? map,
    'Put what belongs together under one key.',
  )
}

const HEADINGS = ['.agent', '.request', '.alias']

function applyEntry<P extends Prompt>(prompt: P, key: string, entry: TextEntry, options: ApplyOptions<P>): P {
  const { value } = entry
  // An empty heading adds nothing.
  if (HEADINGS.includes(key) && value.kind === 'leaf' && value.value === null) return prompt
  if (key === '.agent') return applyLayer(prompt, value, { ...options, always: true })
  if (key === '.request') return applyLayer(prompt, value, { ...options, always: false })
  if (key === '.alias') return applyAliases(prompt, value, options)
  if (key.startsWith('.')) {
    const meant = nearest(key.slice(1), ['agent', 'request', 'alias'])
    const hint = meant === undefined ? 'There are .agent, .request and .alias.' : `Did you mean .${meant}?`
    throw new TextProblem(`there is no ${JSON.stringify(key)}`, entry, hint)
  }
  if (!key.startsWith('$') || key.startsWith('${')) return setSlot(prompt, key, entry, { ...options, always: false })
  if (key === '$') throw new TextProblem('a slot needs a name behind the $', entry)
  return setSlot(prompt, key.slice(1), entry, { ...options, always: true })
}

interface LayerOptions<P extends Prompt> extends ApplyOptions<P> {
  readonly always: boolean
}

/** Applies one layer. A value that is no mapping becomes the agent's system prompt, or this request's input. */
function applyLayer<P extends Prompt>(prompt: P, tree: TextTree, options: LayerOptions<P>): P {
  if (tree.kind === 'map') {
    checkCount(tree)
    return [...tree.entries].reduce((made, [key, entry]) => setSlot(made, key, entry, options), prompt)
  }
  return setSlot(
    prompt,
    options.always ? 'system' : 'input',
    { line: tree.line, column: tree.column, value: tree },
    options,
  )
}

function setSlot<P extends Prompt>(prompt: P, key: string, entry: TextEntry, options: LayerOptions<P>): P {
  const { mappings, always, warn } = options
  const slot = fillKey(key, mappings)
  const tree = fillTree(entry.value, mappings)
  const meant = isSlot(slot) ? undefined : nearest(slot, SLOTS)
  if (meant !== undefined) {
    const message = `${JSON.stringify(slot)} is a key of your own. If you meant ${meant}, correct it.`
    warn({ code: 'near_slot', subject: slot, message }, entry)
  }
  try {
    return prompt.set(slot, jsonOf(tree), { always })
  } catch (error) {
    if (error instanceof ShapeError) throw placed(error.problem, placeAt(tree, error.path), error)
    throw placed(messageOf(error), entry, error)
  }
}

function applyAliases<P extends Prompt>(prompt: P, tree: TextTree, { mappings, aliases }: ApplyOptions<P>): P {
  if (tree.kind !== 'map') throw new TextProblem('.alias is a mapping of methods to arguments', tree)
  return [...tree.entries].reduce((made, [key, entry]) => {
    const alias = aliasNamed(aliases, key, entry)
    const args = aliasArguments(alias, fillTree(entry.value, mappings))
    try {
      return alias.run(made, args)
    } catch (error) {
      throw placed(messageOf(error), entry, error)
    }
  }, prompt)
}

function placed(problem: string, at: TextPlace, cause: unknown): TextProblem {
  const wrong = new TextProblem(problem, at)
  wrong.cause = cause
  return wrong
}

/** Replaces the placeholders in keys and texts, each once, at its own place. */
function fillTree(tree: TextTree, mappings: ReadMappings): TextTree {
  if (mappings.size === 0) return tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => fillTree(item, mappings)) }
  if (tree.kind === 'map') return fillMap(tree, mappings)
  return typeof tree.value === 'string' ? treeAt(fillText(tree.value, mappings), tree) : tree
}

function fillMap(tree: TextMap, mappings: ReadMappings): TextMap {
  const entries = new Map<string, TextEntry>()
  for (const [key, entry] of tree.entries) {
    const name = fillKey(key, mappings)
    if (entries.has(name)) throw new TextProblem(`with these mappings two keys become ${JSON.stringify(name)}`, entry)
    entries.set(name, { ...entry, value: fillTree(entry.value, mappings) })
  }
  return { ...tree, entries }
}
