import type { NodeRun, ReadyChild } from '../agent/node-run.ts'
import { childIds } from '../graph/child/spawn.ts'
import type { ToolCall } from '../graph/content.ts'
import type { Id } from '../graph/rows.ts'
import type { Step } from '../graph/turn/expand.ts'
import { MAX_REPEATS, wouldRepeat } from '../graph/turn/repeats.ts'
import { withPresets } from './presets.ts'
import { spawnWith } from './spawn.ts'
import { isSubagentEntry, type SubagentEntry } from './subagent.ts'

/** An answer with more calls lets each task start its own: others have their turn between them. */
const MOST_CALLS = 16

/**
 * The children that an answer starts by itself: what each call asks for is checked and allowed before its task is made, and
 * nobody has a word in it. One commit instead of two.
 */
export function readyChildren(run: NodeRun, { answer, tasks, ids }: Step): readonly ReadyChild[] {
  if (tasks.length > MOST_CALLS) return NONE
  if (run.hooks?.has('beforeTool') === true || run.home.hooksAbove(run) !== null) return NONE
  const { node, turn, home } = run
  if (turn.account.modelCalls >= MAX_REPEATS && wouldRepeat(home.ledger.store, node, answer.calls)) return NONE
  const output = { content: answer.content, calls: answer.calls }
  const said = { ...run, said: { ...node, output, state: 'finished', endedAt: home.ledger.clock.now() } } as const
  const children: ReadyChild[] = []
  for (const [at, task] of tasks.entries()) {
    if (!task.delegates) continue
    const child = readyChild(said, task.call, ids[at] ?? '')
    // Those after it must not take its place.
    if (child === null) return children
    children.push(child)
  }
  return children
}

const NONE: readonly ReadyChild[] = []

function readyChild(run: NodeRun, call: ToolCall, taskId: Id): ReadyChild | null {
  const entry = call.invalid === undefined ? run.toolkit.find(call.name) : undefined
  if (entry?.tool !== null || !isSubagentEntry(entry) || !run.toolkit.isOn(entry, run.conversation.groups)) return null
  const input = withPresets(call.input, entry.presets)
  if (mustWait(entry) || goesOn(entry, input)) return null
  try {
    return spawnWith(run, { offer: entry, input, mode: 'parked', ids: childIds(taskId, 0) }, taskId)
  } catch {
    // What is wrong with the agent is told by the task.
    return null
  }
}

/** Code of the application that makes the agent or its briefing is run once per delegation: by the task. */
function mustWait({ isProvided, briefing }: SubagentEntry): boolean {
  return isProvided || typeof briefing.mode === 'function'
}

/** Which conversation a child goes on in, and how many there may be, is decided by what is stored: one child at a time. */
function goesOn({ contract, isShared, session }: SubagentEntry, input: unknown): boolean {
  if (isShared || session?.max != null) return true
  return contract === 'message' && typeof input === 'object' && input !== null && 'session_id' in input
}
