import type { TreeRows } from '../graph/audit/tree-rows.ts'
import { askerOf } from '../graph/child/is-eager.ts'
import { addUsage, NO_USAGE, type Usage } from '../graph/content.ts'
import type { DurableEventType, EventBody, EventRow } from '../graph/event.ts'
import type { Id, Link, Node, Turn } from '../graph/rows.ts'

/** What is true of a tree when its last run has ended: L3, L4 and L6. */
export function unsettled(tree: TreeRows): string[] {
  return [
    ...openRows(tree),
    ...untoldEnds(tree),
    ...unpaired(tree),
    ...[...tree.nodes.values()].flatMap((node) => untoldResult(tree, node)),
    ...[...tree.turns.values()].flatMap((turn) => [...wrongAccount(tree, turn), ...untoldDoubts(tree, turn)]),
  ]
}

/** L3: every run has one outcome, told once; nothing runs, waits or is left for later. */
function openRows({ turns, nodes, links, blocks, events }: TreeRows): string[] {
  const wrong: string[] = []
  for (const { id, state, outcome } of turns.values()) {
    if (state !== 'ended') wrong.push(`L3 turn ${id} is ${state}`)
    const told = eventsOf(events, 'run-end').filter(({ turnId }) => turnId === id)
    if (told.length !== 1) wrong.push(`L3 turn ${id} was told to end ${told.length} times`)
    else if (JSON.stringify(told[0]?.body.outcome) !== JSON.stringify(outcome)) {
      wrong.push(`L3 turn ${id} has another outcome than was told`)
    }
  }
  for (const { id, kind, state, endedAt } of nodes.values()) {
    if (endedAt === null) wrong.push(`L3 ${kind} ${id} is ${state}`)
  }
  for (const { id, outcome } of links.values()) if (outcome === null) wrong.push(`L3 link ${id} has no outcome`)
  for (const { nodeId } of blocks) wrong.push(`L3 a block of live events of ${nodeId} was left`)
  return wrong
}

/** A75: the end of a child in the background was told, or it is recorded that nobody was left to tell. */
function untoldEnds({ links, nodes }: TreeRows): string[] {
  const isUntold = ({ wake, deliveredTo }: Link) => {
    const isTold = deliveredTo === 'undeliverable' || (deliveredTo !== null && nodes.has(deliveredTo))
    return !isTold && (wake === 'auto' || deliveredTo !== null)
  }
  return [...links.values()]
    .filter((link) => link.mode === 'background' && isUntold(link))
    .map(({ id }) => `A75 nobody was told of the end of ${id}`)
}

/** L4: every start has one end. A run that never left the queue has an end without a start. */
function unpaired({ events }: TreeRows): string[] {
  const runs = tally(eventsOf(events, 'run-start').map(({ turnId }) => turnId))
  const queued = new Set(eventsOf(events, 'run-queued').map(({ turnId }) => turnId))
  const runEnds = tally(eventsOf(events, 'run-end').map(({ turnId }) => turnId))
  const starts = tally(eventsOf(events, 'delegation-start').map(({ body }) => body.childRunId))
  const ends = tally(eventsOf(events, 'delegation-end').map(({ body }) => body.childRunId))
  return [
    ...differences('run', runs, runEnds).filter(
      ({ id }) => !(queued.has(id) && !runs.has(id) && runEnds.get(id) === 1),
    ),
    ...differences('delegation', starts, ends),
  ].map(({ text }) => `L4 ${text}`)
}

function differences(what: string, starts: ReadonlyMap<Id, number>, ends: ReadonlyMap<Id, number>) {
  const ids = [...new Set([...starts.keys(), ...ends.keys()])]
  return ids
    .filter((id) => starts.get(id) !== 1 || ends.get(id) !== 1)
    .map((id) => ({
      id,
      text: `${what} ${id} started ${starts.get(id) ?? 0} times and ended ${ends.get(id) ?? 0} times`,
    }))
}

/** L4: a call and its result are told once each. */
function untoldResult({ events, nodes }: TreeRows, task: Node): string[] {
  if (task.kind !== 'task' || task.input.call === undefined || task.metadata['copyOf'] !== undefined) return []
  const results = eventsOf(events, 'tool-result').filter(({ nodeId }) => nodeId === task.id).length
  const calls = eventsOf(events, 'tool-call').filter(({ nodeId }) => nodeId === task.id).length
  // One that was done again was called for when it was done first.
  const isFirst = task.retryOf === null
  const isAsked = [...nodes.values()].some(({ output }) => output.calls?.some(({ id }) => id === task.input.call?.id))
  const wrong: string[] = []
  if (results !== 1) wrong.push(`L4 task ${task.id} has ${results} results`)
  if (isAsked && isFirst && calls !== 1) wrong.push(`L4 task ${task.id} was called ${calls} times`)
  return wrong
}

/** L6: a run's account is its own calls and the accounts of its children. */
function wrongAccount({ nodes, links }: TreeRows, turn: Turn): string[] {
  const own = [...nodes.values()].filter(({ turnId }) => turnId === turn.id)
  const children = [...links.values()].filter(({ hostTurnId }) => hostTurnId === turn.id)
  const usage = [...own.map((node) => node.usage), ...children.map(({ outcome }) => outcome?.usage ?? NO_USAGE)]
  const { account } = turn
  const wrong: string[] = []
  const expect = (what: string, counted: number, found: number) => {
    if (counted !== found) wrong.push(`L6 turn ${turn.id} accounts for ${counted} ${what}; there were ${found}`)
  }
  for (const kind of Object.keys(NO_USAGE) as (keyof Usage)[]) {
    expect(kind, account.usage[kind], usage.reduce(addUsage, NO_USAGE)[kind])
  }
  expect(
    'tool calls',
    account.toolCalls,
    own.reduce((sum, node) => sum + (node.output.calls?.length ?? 0) + (askerOf(node) === undefined ? 0 : 1), 0),
  )
  return wrong
}

/** What is uncertain is told once, and named in the outcome of its run and of every run above it. */
function untoldDoubts({ nodes, links, events }: TreeRows, turn: Turn): string[] {
  const own = [...nodes.values()].filter(({ turnId, state }) => turnId === turn.id && state === 'uncertain')
  const all = [...links.values()].filter(({ hostTurnId }) => hostTurnId === turn.id)
  // What ended after its host is not in its host's outcome.
  const late = new Set(turn.outcome?.open ?? [])
  const children = all.filter(({ id }) => !late.has(id))
  const expected = [...own.map(({ id }) => id), ...children.flatMap(({ outcome }) => outcome?.uncertain ?? [])].sort()
  const reported = [...(turn.outcome?.uncertain ?? [])].sort()
  const told = eventsOf(events, 'uncertain').filter(({ turnId }) => turnId === turn.id)
  const wrong: string[] = []
  if (expected.join() !== reported.join()) {
    wrong.push(`L3 the outcome of turn ${turn.id} names ${reported.length} of ${expected.length} uncertain nodes`)
  }
  if (told.length !== own.length)
    wrong.push(`L3 turn ${turn.id} told of ${told.length} of ${own.length} uncertain nodes`)
  return wrong
}

type Told<T extends DurableEventType> = EventRow & { readonly body: Extract<EventBody, { type: T }> }

function eventsOf<T extends DurableEventType>(events: readonly EventRow[], type: T): Told<T>[] {
  return events.filter((event): event is Told<T> => event.body.type === type)
}

function tally(ids: readonly Id[]): Map<Id, number> {
  const counts = new Map<Id, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}
