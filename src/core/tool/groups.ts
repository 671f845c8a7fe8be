import type { JsonSchema } from '../base/schema/schema.ts'
import type { Draft } from '../graph/draft.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import { type Tool, tool } from './tool.ts'

/** A named part of a toolkit that can be switched on and off in a conversation. */
export interface Group {
  readonly description: string
  /** True when it is on in a new conversation. */
  readonly active: boolean
  /** The instructions that the model reads when the group is switched on. */
  readonly notes: string
}

export type Groups = ReadonlyMap<string, Group>

/** Which groups are on: the conversation's own switches, and the definition for the others. */
export type GroupState = Conversation['groups']

export const NO_GROUPS: Groups = new Map()

function isActive(groups: Groups, state: GroupState, name: string): boolean {
  const group = groups.get(name)
  if (group === undefined) return false
  return (state !== null && Object.hasOwn(state, name) ? state[name] : group.active) === true
}

/** The state of every group, including the inactive ones, so that the stored state is complete. */
export function groupStates(
  groups: Groups,
  state: GroupState,
  changes: ReadonlyMap<string, boolean>,
): NonNullable<GroupState> {
  const all: [string, boolean][] = []
  for (const name of groups.keys()) all.push([name, changes.get(name) ?? isActive(groups, state, name)])
  return Object.fromEntries(all)
}

/** A tool in several groups needs one that is on; a tool in none is always available. */
export function isAvailable(memberOf: readonly string[], groups: Groups, state: GroupState): boolean {
  return memberOf.some((name) => isActive(groups, state, name))
}

export function inactiveText(tool: string, memberOf: readonly string[]): string {
  return `FunctionInactiveError: The function '${tool}' is in the inactive group '${memberOf[0] ?? ''}'. Activate the tool group by calling 'reset_equipped_tools' first to use this tool.`
}

export const RESET_TOOLS = 'reset_equipped_tools'

export interface ResetToolsOptions {
  readonly groups: Groups
  readonly meta: 'absolute' | 'additive'
  /** The tools of a group, each with its description. */
  membersOf(group: string): readonly { readonly name: string; readonly description: string }[]
}

/** Lets a model switch its tool groups. Switching grants nothing: each use of a tool is still decided. */
export function resetToolsTool(ledger: Ledger, options: ResetToolsOptions): Tool {
  return options.meta === 'absolute' ? absoluteTool(ledger, options) : additiveTool(ledger, options)
}

/** Switches groups of one conversation and returns the state of all of them. */
export async function switchGroups(
  ledger: Ledger,
  conversationId: Id,
  { groups, changes }: { readonly groups: Groups; readonly changes: ReadonlyMap<string, boolean> },
): Promise<{ readonly [group: string]: boolean }> {
  const rootId = (await ledger.store.rootOf(conversationId)) ?? conversationId
  return ledger.commit({
    kind: 'mutate',
    rootId,
    plan: (draft: Draft) => planSwitchGroups(draft, conversationId, (state) => groupStates(groups, state, changes)),
  })
}

function absoluteTool(ledger: Ledger, { groups, membersOf }: ResetToolsOptions): Tool {
  const properties: { [group: string]: JsonSchema } = {}
  for (const [name, { description }] of groups) properties[name] = { type: 'boolean', description }
  return tool({
    description:
      'Chooses your tool groups. Name every group you want as true: a group that you leave out is switched off. Tools of no group are always there.',
    input: { type: 'object', properties, additionalProperties: false } as JsonSchema,
    effect: 'idempotent',
    execute: async (input, { node }) => {
      const wanted = input as { readonly [group: string]: boolean }
      const changes = new Map([...groups.keys()].map((name) => [name, wanted[name] === true]))
      const state = await switchGroups(ledger, node.conversationId, { groups, changes })
      const active = [...groups.keys()].filter((name) => isActive(groups, state, name))
      return active.length === 0 ? 'No tool group is on now.' : reportOf(active, groups, membersOf)
    },
  }) as Tool
}

function additiveTool(ledger: Ledger, { groups, membersOf }: ResetToolsOptions): Tool {
  const choices = [...groups].map(([name, { description }]) => `${name}: ${description}`).join('\n')
  return tool({
    description: `Switches on tool groups, beside those that are on. The groups:\n${choices}`,
    input: {
      type: 'object',
      properties: { to_activate: { type: 'array', items: { type: 'string', enum: [...groups.keys()] } } },
      required: ['to_activate'],
      additionalProperties: false,
    } as JsonSchema,
    effect: 'idempotent',
    execute: async (input, { node }) => {
      const names = [...new Set((input as { to_activate: readonly string[] }).to_activate)]
      const changes = new Map(names.map((name) => [name, true]))
      await switchGroups(ledger, node.conversationId, { groups, changes })
      return names.length === 0 ? 'Nothing was switched on.' : reportOf(names, groups, membersOf)
    },
  }) as Tool
}

/** Describes which groups are on, their tools and how to use them. */
function reportOf(active: readonly string[], groups: Groups, membersOf: ResetToolsOptions['membersOf']): string {
  const parts = active.map((name) => {
    const tools = membersOf(name).map((member) => `- ${member.name}: ${member.description}`)
    const notes = groups.get(name)?.notes ?? ''
    return [`Group '${name}' is on:`, ...tools, ...(notes === '' ? [] : [notes])].join('\n')
  })
  return parts.join('\n\n')
}

/** Stores which tool groups are on in a conversation: its next model call is offered their tools. */
function planSwitchGroups(
  draft: Draft,
  conversationId: Id,
  change: (state: GroupState) => NonNullable<GroupState>,
): NonNullable<GroupState> {
  const conversation = draft.conversation(conversationId)
  const groups = change(conversation.groups)
  draft.changeConversation(conversation, { groups })
  if (conversation.activeTurnId !== null) {
    const turn = draft.turn(conversation.activeTurnId)
    draft.event(turn, null, { type: 'graph-change', change: 'groups', detail: groups })
  }
  return groups
}
