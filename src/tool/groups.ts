import type { Conversation } from '../graph/rows.ts'

/** A named part of a toolkit that can be switched on and off in a conversation. */
export interface Group {
  readonly description: string
  /** Is it on in a new conversation? */
  readonly active: boolean
  /** What the model reads when it is switched on. */
  readonly notes: string
}

export type Groups = ReadonlyMap<string, Group>

/** Which groups are on: what was said in the conversation, else what the definition says. */
export type GroupState = Conversation['groups']

export const NO_GROUPS: Groups = new Map()

export function isActive(groups: Groups, state: GroupState, name: string): boolean {
  const group = groups.get(name)
  if (group === undefined) return false
  return (state !== null && Object.hasOwn(state, name) ? state[name] : group.active) === true
}

/** The state of every group, the inactive ones too: what is kept says all there is to say. */
export function switched(
  groups: Groups,
  state: GroupState,
  changes: ReadonlyMap<string, boolean>,
): NonNullable<GroupState> {
  const all: [string, boolean][] = []
  for (const name of groups.keys()) all.push([name, changes.get(name) ?? isActive(groups, state, name)])
  return Object.fromEntries(all)
}

/** Of a tool in several groups one that is on is enough; a tool in none is always there. */
export function isAvailable(memberOf: readonly string[], groups: Groups, state: GroupState): boolean {
  return memberOf.length === 0 || memberOf.some((name) => isActive(groups, state, name))
}

export function inactiveText(tool: string, memberOf: readonly string[]): string {
  return `FunctionInactiveError: The function '${tool}' is in the inactive group '${memberOf[0] ?? ''}'. Activate the tool group by calling 'reset_equipped_tools' first to use this tool.`
}
