import type { Commit } from '../../graph/commit.ts'
import { NO_USAGE } from '../../graph/content.ts'
import { PENDING_NODE } from '../../graph/copy.ts'
import type { Conversation, Id, Link, Node, Turn } from '../../graph/rows.ts'

const NONE: readonly never[] = []
const EMPTY = {}

/** The usual value of each field of a row: the codec writes only fields that differ. */
export const CONVERSATION: Conversation = {
  id: '',
  version: 1,
  rootId: '',
  type: 'user',
  depth: 0,
  agent: { name: '', hash: '' },
  path: NONE,
  parentConversationId: null,
  parentTurnId: null,
  parentTaskId: null,
  owner: null,
  title: null,
  metadata: EMPTY,
  ceiling: NONE,
  groups: null,
  activeTurnId: null,
  places: null,
  background: NONE,
  turnCount: 0,
  lane: null,
  createdAt: 0,
}

export const TURN: Turn = {
  id: '',
  version: 1,
  rootId: '',
  conversationId: '',
  laneId: '',
  ordinal: 0,
  state: 'running',
  input: null,
  limits: { turns: 0, toolCalls: 0, children: 0, concurrency: 0, depth: 0, wallMs: 0 },
  account: { modelCalls: 0, toolCalls: 0, children: 0, live: 0, nextRelease: 0, usage: NO_USAGE, uncertain: NONE },
  deadline: null,
  paused: null,
  spend: null,
  tree: null,
  cancel: null,
  outcome: null,
  wokenBy: null,
  attributes: null,
  history: null,
  absent: null,
  nodeCount: 0,
  entryNodeId: '',
  afterSeq: 0,
  createdAt: 0,
  startedAt: null,
  endedAt: null,
}

export const NODE: Node = { ...PENDING_NODE, state: 'finished', effect: 'idempotent' }

export const LINK: Link = {
  id: '',
  version: 1,
  rootId: '',
  taskId: '',
  hostTurnId: '',
  hostConversationId: '',
  childConversationId: '',
  ordinal: 0,
  contract: 'typed',
  agentName: '',
  hostName: '',
  toolName: '',
  depth: 1,
  mode: 'parked',
  wake: null,
  onParentClose: 'cancel',
  released: true,
  keyed: null,
  attempt: 1,
  retry: null,
  delegationContext: null,
  outcome: null,
  deliveredTo: null,
}

/** Checks the form of rows from outside. Gives the first fault; undefined when all rows have their fields. */
export function wrongShape({ rootId, conversations, turns, nodes, links, events }: Commit): string | undefined {
  return (
    firstWrong(conversations, CONVERSATION, rootId) ??
    firstWrong(turns, TURN, rootId) ??
    firstWrong(nodes, NODE, rootId) ??
    firstWrong(links, LINK, rootId) ??
    (events.every(({ body }) => typeof body?.type === 'string') ? undefined : 'an event has no type')
  )
}

function firstWrong(rows: readonly { readonly id: Id }[], usual: object, rootId: Id | null): string | undefined {
  for (const row of rows) {
    for (const [key, value] of Object.entries(usual)) {
      const given = Reflect.get(row, key)
      if (!isLike(given, value)) return `the field "${key}" of ${String(row.id)} is not what it has to be`
      const choices = CHOICES[key]
      if (choices !== undefined && given !== null && !choices.includes(given)) {
        return `the field "${key}" of ${row.id} is "${String(given)}"`
      }
    }
    if (Reflect.get(row, 'rootId') !== rootId) return `${row.id} is of another tree`
  }
  return undefined
}

/** A value that may be null may be anything; all others must have the kind of the usual value, at every known depth. */
function isLike(given: unknown, usual: unknown): boolean {
  if (usual === null) return given !== undefined
  if (typeof usual === 'number') return Number.isFinite(given)
  if (Array.isArray(usual)) return Array.isArray(given)
  if (typeof usual !== 'object') return typeof given === typeof usual
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false
  return Object.entries(usual).every(([key, value]) => isLike(Reflect.get(given, key), value))
}

const CHOICES: { readonly [field: string]: readonly unknown[] } = {
  state: [
    'queued',
    'ended',
    'pending',
    'awaiting_approval',
    'running',
    'waiting',
    'finished',
    'errored',
    'rejected',
    'skipped',
    'stopped',
    'uncertain',
  ],
  type: ['user', 'sub_agent'],
  effect: ['pure', 'idempotent', 'effectful'],
  mode: ['parked', 'called', 'background'],
  onParentClose: ['cancel', 'abandon'],
}

/** The row as if it were new: stores accept new rows at version 1 only. */
export function asNew<Row extends { readonly version: number }>(row: Row): Row {
  return row.version === 1 ? row : { ...row, version: 1 }
}
