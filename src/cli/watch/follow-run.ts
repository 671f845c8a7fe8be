import type { DurableEvent, Turn } from '../../doors/rows.ts'
import type { Id, RunEvent } from '../../index.ts'
import { EXIT } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import type { Desk, DeskRows } from '../desk/desk.ts'
import { shownId } from '../store/find-run.ts'
import { oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { openStateOf } from './activity.ts'
import { replyCommand, showCommand } from './request-text.ts'
import { WatchedTree } from './run-tree.ts'

/** Passes on every event of a run from its beginning to its end, whichever process runs it. */
export async function followRun(
  desk: Desk,
  turn: Turn,
  take: (event: RunEvent) => void | Promise<void>,
): Promise<void> {
  const run = await desk.attach(turn.id)
  // Waiting for the result keeps the process alive; iterating alone does not.
  const { result } = run
  for await (const event of run) await take(event)
  await result
}

/** Warns a person who follows a run that no process works on. */
export async function noteStandstill(desk: Desk, turn: Turn): Promise<void> {
  const { state, asked, questions, needs } = await openStateOf(desk, turn)
  if (state === 'parked') {
    for (const node of asked) note(`It waits for a person: ${showCommand(node.id)}.`)
    for (const node of questions) note(`It waits for an answer: ${replyCommand(node)}.`)
  }
  if (state === 'unattended') {
    const code = needs.filter((agent) => agent !== '')
    const how = code.length === 0 ? '' : ' --module FILE'
    const agents = code.length === 0 ? '' : ` (agents: ${oneLine(code.join(', '))})`
    note(`No process works on it. Continue with: ${legate(`resume ${shownId(turn.id)}${how}`)}${agents}`)
  }
}

/** Lets a person who only watches leave at any time, and restores the terminal. */
export function endOnInterrupt(leave: () => void = () => undefined): void {
  for (const [signal, code] of [
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
  ] as const) {
    process.once(signal, () => {
      leave()
      process.exit(code)
    })
  }
}

const PAGE = 500

/** Reads the recorded events of a run and its children in order. */
export async function* eventsSoFar(store: DeskRows, run: Turn): AsyncGenerator<DurableEvent, void> {
  const family = new Set<Id>([run.id])
  for await (const event of treeEvents(store, run)) {
    if (event.parentId !== null && family.has(event.parentId)) family.add(event.runId)
    if (!family.has(event.runId)) continue
    yield event
    if (event.type === 'run-end' && event.runId === run.id) return
  }
}

/** Builds the current tree of a run, including the text its models are writing. */
export async function treeSoFar(store: DeskRows, run: Turn): Promise<WatchedTree> {
  const tree = new WatchedTree(run.id)
  for await (const event of eventsSoFar(store, run)) tree.take(event)
  for (const { events } of await store.blocks(run.rootId, 0)) {
    for (const event of events) if (tree.isRunning(event.runId)) tree.take(event)
  }
  return tree
}

async function* treeEvents(store: DeskRows, { rootId, afterSeq }: Turn): AsyncGenerator<DurableEvent, void> {
  for (let after = afterSeq; ; ) {
    const page = await store.events(rootId, after, PAGE)
    for (const { body, ...place } of page) yield { ...place, ...body }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.seq
  }
}
