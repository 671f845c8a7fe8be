import type { Commit } from '../graph/commit.ts'
import type { Id } from '../graph/rows.ts'
import { CONVERSATION, LINK, NODE, TURN } from './usual-rows.ts'

/** What is wrong with the form of rows that came from outside; undefined when all have the fields that rows have. */
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

/** What may be null may be anything; the rest is of the same kind, at every depth that is known. */
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
