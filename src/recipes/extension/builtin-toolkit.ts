import { DefinitionError } from '../../core/base/error.ts'
import { listOf, type OptionRules, readOptions, record, text } from '../../core/base/options.ts'
import { isWithin, type ToolSource, toolkitSource } from '../../core/tool/source.ts'
import type { Tool } from '../../core/tool/tool.ts'
import { developerTools } from '../../core/tools/developer-tools.ts'
import { type MemoryToolsOptions, memoryTools } from '../../core/tools/memory-tools.ts'
import { todoTools } from '../../core/tools/todo-tools.ts'
import type { DiscoveryOptions } from '../discovery/options.ts'
import { skillsTools } from './skills-tools.ts'

export interface BuiltinOptions {
  /** Where the toolkit `memory` stores its data. */
  readonly memory?: MemoryToolsOptions
  /** Where the toolkit `skills` searches. */
  readonly skills?: DiscoveryOptions
  /** The tools to offer; `*` matches any text. Left out: all. Empty list: none. */
  readonly availableTools?: readonly string[]
}

const OPTIONS: OptionRules<BuiltinOptions> = { memory: record, skills: record, availableTools: listOf(text, 'names') }

const TOOLKITS = {
  developer: () => developerTools(),
  todo: () => todoTools(),
  memory: ({ memory = {} }: BuiltinOptions) => memoryTools(memory),
  skills: ({ skills = {} }: BuiltinOptions) => skillsTools(skills),
} as const satisfies Readonly<Record<string, (options: BuiltinOptions) => Readonly<Record<string, Tool>>>>

export type BuiltinToolkit = keyof typeof TOOLKITS
export const BUILTIN_TOOLKITS: readonly BuiltinToolkit[] = Object.freeze(Object.keys(TOOLKITS) as BuiltinToolkit[])

/** Makes a tool source from a toolkit of this package: `sources: { developer: builtinToolkit('developer') }`. */
export function builtinToolkit(name: BuiltinToolkit, options: BuiltinOptions = {}): ToolSource {
  if (!isBuiltinToolkit(name)) {
    const known = BUILTIN_TOOLKITS.join(', ')
    throw new DefinitionError('definition', `builtinToolkit(): there is no "${name}". There are ${known}.`)
  }
  readOptions('builtinToolkit(name, options)', options, OPTIONS)
  const all: Readonly<Record<string, Tool>> = TOOLKITS[name](options)
  const limit = { availableTools: options.availableTools ?? null, excludedTools: [] }
  const wanted = Object.entries(all).filter(([name]) => isWithin(limit, { name, shownAs: name }))
  return toolkitSource({ toolkit: name, tools: wanted.map(([tool]) => tool) }, Object.fromEntries(wanted))
}

/** Lists the tools of a toolkit. */
export function toolNamesOf(name: BuiltinToolkit): readonly string[] {
  return Object.keys(TOOLKITS[name]({}))
}

export function isBuiltinToolkit(name: string): name is BuiltinToolkit {
  return Object.hasOwn(TOOLKITS, name)
}
