import { DefinitionError } from '../../base/error.ts'
import { parseParameters } from '../../base/function-parameters.ts'
import type { Json } from '../../base/json.ts'
import { nearest } from '../../base/options.ts'
import { jsonOf, type TextPlace, TextProblem, type TextTree } from '../../base/text-tree/tree.ts'
import type { Prompt } from '../prompt.ts'

/** A method that prompt files may call under `.alias`. Files can call only methods that are offered. */
export interface PromptAlias<P extends Prompt = Prompt> {
  /** The names of its parameters, in the order of `.args`. */
  readonly params: readonly string[]
  /** Gets the arguments in that order, undefined where one is left out. */
  readonly run: (prompt: P, args: readonly (Json | undefined)[]) => P
}

/** A plain function: `greet(prompt, name)` gets the prompt, and then its parameters by their names or by `.args`. */
export type PromptAliasFunction<P extends Prompt = Prompt> = (prompt: P, ...args: never[]) => P

export type PromptAliases<P extends Prompt = Prompt> = {
  readonly [name: string]: PromptAlias<P> | PromptAliasFunction<P>
}

/** Reads the methods that a caller offers to its prompt files into one form. */
export function readAliases<P extends Prompt>(given: PromptAliases<P>): { readonly [name: string]: PromptAlias<P> } {
  return Object.fromEntries(Object.entries(given).map(([name, alias]) => [name, readAlias(name, alias)]))
}

function readAlias<P extends Prompt>(name: string, alias: PromptAlias<P> | PromptAliasFunction<P>): PromptAlias<P> {
  if (typeof alias === 'object' && Array.isArray(alias?.params) && typeof alias.run === 'function') return alias
  if (typeof alias !== 'function') return refuse(name, 'it is a function, or { params, run }.')
  const known = parseParameters(alias)
  if (known === undefined || known.areFields || known.list.length === 0) {
    return refuse(name, 'its parameters cannot be told from its source. Name them: { params, run }.')
  }
  const params = known.list.slice(1).map((one) => one.name)
  return { params, run: (prompt, args) => alias(prompt, ...(args as never[])) }
}

function refuse(name: string, message: string): never {
  throw new DefinitionError('definition', `prompt, aliases.${name}: ${message}`)
}

/** The methods that every prompt offers: its own helpers, and nothing that reaches beyond the prompt. */
export function builtInAliases<P extends Prompt>(): { readonly [name: string]: PromptAlias<P> } {
  return {
    ...Object.fromEntries(
      SLOT_HELPERS.map((slot) => [slot, helper<P>((prompt, value, how) => prompt.set(slot, value, how))]),
    ),
    rule: helper((prompt, value, how) => prompt.rule(value, how)),
    role: helper((prompt, value, how) => prompt.role(value, how)),
    user_info: helper((prompt, value, how) => prompt.userInfo(value, how)),
    set_chat_history: helper((prompt, value, how) => prompt.chatHistory(value, how)),
    add_chat_history: helper((prompt, value, how) => prompt.addChatHistory(value, how)),
    set_action_results: helper((prompt, value, how) => prompt.actionResults(value, how)),
    add_action_results: helper((prompt, value, how) => prompt.addActionResults(value, how)),
    set_agent_prompt: setter<P>(true),
    set_request_prompt: setter<P>(false),
  }
}

const SLOT_HELPERS = [
  ...['system', 'developer', 'info', 'tools', 'instruct', 'examples', 'input', 'attachment'],
  ...['output', 'output_format', 'options'],
]

function helper<P extends Prompt>(
  apply: (prompt: P, value: Json, how: { readonly always: boolean }) => P,
): PromptAlias<P> {
  return {
    params: ['prompt', 'always'],
    run: (prompt, [value = null, always = false]) => {
      if (typeof always !== 'boolean') throw new DefinitionError('definition', '"always" is true or false.')
      return apply(prompt, value, { always })
    },
  }
}

function setter<P extends Prompt>(always: boolean): PromptAlias<P> {
  return {
    params: ['key', 'value'],
    run: (prompt, [key, value = null]) => {
      if (typeof key !== 'string') throw new DefinitionError('definition', '"key" is the name of a slot.')
      return prompt.set(key, value, { always })
    },
  }
}

/** Finds the method that a file names. Throws TextProblem for one that is not offered. */
export function aliasNamed<A>(aliases: ReadonlyMap<string, A>, key: string, at: TextPlace): A {
  const alias = aliases.get(key)
  if (alias !== undefined) return alias
  const offered = [...aliases.keys()]
  const meant = nearest(key, offered)
  const hint = meant === undefined ? `These are: ${offered.join(', ')}.` : `Did you mean ${meant}?`
  throw new TextProblem(`${JSON.stringify(key)} is not offered to prompt files`, at, hint)
}

/** Reads a method's arguments in order: nothing, or `{ name: value, .args: [...] }`. Throws TextProblem. */
export function aliasArguments({ params }: Pick<PromptAlias, 'params'>, tree: TextTree): (Json | undefined)[] {
  if (tree.kind === 'leaf' && tree.value === null) return params.map(() => undefined)
  if (tree.kind !== 'map') throw new TextProblem('the arguments are { name: value } or nothing', tree, ARGS)
  const args = new Map<string, Json>()
  const add = (name: string, value: TextTree, at: TextPlace) => {
    if (!params.includes(name))
      throw new TextProblem(`there is no argument ${JSON.stringify(name)}`, at, `There are: ${params.join(', ')}.`)
    if (args.has(name)) throw new TextProblem(`the argument ${JSON.stringify(name)} is given twice`, at)
    args.set(name, jsonOf(value))
  }
  for (const [key, entry] of tree.entries) {
    if (key !== '.args') add(key, entry.value, entry)
    else for (const [name, item] of inOrder(entry.value, params)) add(name, item, item)
  }
  return params.map((name) => args.get(name))
}

const ARGS = 'Arguments without names are a list under .args.'

/** Gives each item of the list under `.args` the name of its parameter. */
function inOrder(list: TextTree, params: readonly string[]): (readonly [string, TextTree])[] {
  if (list.kind !== 'list') throw new TextProblem('.args is a list', list)
  return list.items.map((item, index) => {
    const name = params[index]
    if (name !== undefined) return [name, item] as const
    throw new TextProblem(`there are only ${params.length} arguments: ${params.join(', ')}`, item)
  })
}
