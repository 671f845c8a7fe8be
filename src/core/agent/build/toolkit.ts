import { DefinitionError } from '../../base/error.ts'
import { anything, flag, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { RESET_TOOLS } from '../../tool/groups.ts'
import { type GroupedTools, type ToolGroup, toolkitMark } from '../definition/agent.ts'
import { NAME_CLASHES } from '../definition/subagent-options.ts'

export interface ToolkitOptions {
  /** The groups, by name. */
  readonly groups: { readonly [name: string]: ToolGroup }
  /**
   * How the model switches groups with `reset_equipped_tools`. `absolute`: it names all groups that shall be on, the
   * others go off. `additive`: it only switches on. `none`: it has no such tool. Default `absolute`.
   */
  readonly meta?: 'absolute' | 'additive' | 'none'
}

/**
 * Puts tools and subagents into groups that the model, or `conversation.activate` and `.deactivate`, switch on and off
 * per conversation. A tool in several groups is available while one of them is on.
 */
export function toolkit(options: ToolkitOptions): GroupedTools {
  const { groups, meta = 'absolute' } = readOptions('toolkit()', options, OPTIONS)
  if (groups === undefined) refuse('it needs groups: { name: { description, active, tools, subagents } }.')
  const named = new Map(Object.entries(groups))
  for (const [name, group] of named) checkGroup(name, group)
  return grouped(named, meta)
}

function grouped(groups: ReadonlyMap<string, ToolGroup>, meta: GroupedTools['meta']): GroupedTools {
  return Object.freeze({
    [toolkitMark]: true as const,
    groups,
    meta,
    create: (name: string, group: ToolGroup) => {
      if (groups.has(name)) refuse(`there is a group "${name}" already.`)
      checkGroup(name, group)
      return grouped(new Map([...groups, [name, group]]), meta)
    },
    remove: (name: string) => {
      if (!groups.has(name)) refuse(`there is no group "${name}" to remove. ${known(groups)}`)
      return grouped(new Map([...groups].filter(([other]) => other !== name)), meta)
    },
  })
}

const OPTIONS: OptionRules<ToolkitOptions> = { groups: record, meta: oneOf('absolute', 'additive', 'none') }

const GROUP: OptionRules<ToolGroup> = {
  description: text,
  active: flag,
  notes: text,
  tools: record,
  subagents: anything,
  onNameClash: oneOf(...NAME_CLASHES),
}

function checkGroup(name: string, group: ToolGroup): void {
  if (!/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(name)) {
    refuse(`"${name}" is not a name for a group: begin with a letter; letters, digits, _ and -, at most 64.`)
  }
  if (name === 'basic')
    refuse('tools outside of any group are "basic", which is always on: give the group another name.')
  const { description = '', active } = readOptions(`toolkit(): groups.${name}`, group, GROUP)
  if (description.trim() === '') refuse(`groups.${name} needs a description: the model reads it to decide.`)
  if (active === undefined) refuse(`groups.${name}.active must be true or false.`)
  if (group.tools !== undefined && Object.hasOwn(group.tools, RESET_TOOLS)) {
    refuse(`groups.${name}: the tool "${RESET_TOOLS}" is built in. Give yours another name.`)
  }
}

function known(groups: ReadonlyMap<string, ToolGroup>): string {
  return groups.size === 0 ? 'There is none.' : `There are ${[...groups.keys()].join(', ')}.`
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `toolkit(): ${message}`)
}
