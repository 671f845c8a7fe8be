import { DefinitionError } from '../../base/error.ts'
import { type ForeignKey, foreignId } from '../../base/id.ts'
import { readOptions, text } from '../../base/options.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Grant } from '../../grant/grant.ts'
import type { Id } from '../../graph/rows.ts'

/** The texts by which a caller knows a run or its conversation. */
interface StartNames {
  readonly owner: string | null
  readonly agent: string
  readonly key: string | null
  readonly conversationKey: string | null
  /** The conversation that is named by its id. */
  readonly named: Id | null
  /** The request's own, to be compared when its key is used again. */
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
}

/** A start whose ids stand for texts of its caller. */
export interface KeyedStart extends StartNames {
  /** Null for a run without a key: it only names its conversation. */
  readonly runId: Id | null
  /** The conversation that it goes on with: certain once the run is recorded. */
  readonly place: { conversationId: Id }
}

export function readKeyedStart(names: StartNames): KeyedStart {
  const { owner, agent, key, conversationKey, named } = names
  const own = key === null ? '' : foreignId(runConversationKey(owner, key))
  const first = conversationKey === null ? own : foreignId(foreignKey({ owner, agent, key: conversationKey }))
  // Not by agent: another agent under the same key is another request, and refused.
  const runId = key === null ? null : foreignId({ owner, surface: 'run', agent: '', key })
  return { ...names, runId, place: { conversationId: named ?? first } }
}

/** A text that stands for a conversation. */
export interface KeyName {
  readonly owner: string | null
  readonly agent: string
  readonly key: string
}

/** A text stands for one id in every process, and for one owner only (I9). */
export function foreignKey({ owner, agent, key }: KeyName): ForeignKey {
  return { owner, surface: 'conversation', agent, key }
}

/** Stands for the conversation that begins with the run of a key. */
export function runConversationKey(owner: string | null, key: string): ForeignKey {
  return { owner, surface: 'conversation of a run', agent: '', key }
}

/** Reads how a caller names a conversation. */
export function readConversationName(agent: string, key: string, options: Pick<GivenNames, 'owner'>): KeyName {
  const { owner = null } = readOptions('conversationIdFor(agent, key, options)', options, { owner: text })
  checkNames({ conversationKey: key, ...options })
  return { owner, agent, key }
}

/** The names among the options of a start. */
interface GivenNames {
  readonly conversationId?: Id
  readonly conversationKey?: string
  readonly owner?: string
  readonly key?: string
}

/** Words that name nobody would be everybody's. */
export function checkNames({ conversationId, conversationKey, owner, key }: GivenNames): void {
  if (owner !== undefined && !isName(owner)) refuse('owner', 'a text that is not empty')
  if (key !== undefined && !isName(key)) refuse('key', 'a text that is not empty')
  if (conversationKey === undefined) return
  if (!isName(conversationKey)) refuse('conversationKey', 'a text that is not empty')
  if (conversationId !== undefined) refuse('conversationKey', 'given without a conversationId')
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== ''
}

function refuse(option: string, wanted: string): never {
  throw new DefinitionError('definition', `run(agent, input, { ${option} }): it must be ${wanted}.`)
}
