import type { NodeRun } from '../../agent/hooks/node-run.ts'
import type { CommitKind } from '../../graph/commit.ts'
import type { Draft } from '../../graph/draft.ts'
import {
  type ChildCallResult,
  planChildCancel,
  planChildList,
  planChildResult,
  planChildWait,
  planPoll,
} from '../../rules/delegation/child-tools.ts'
import type { BackgroundSpec } from './options.ts'
import { FieldReader, RefusedInput } from './read.ts'
import type { RowToolEnd } from './row-tool.ts'
import type { DESCRIPTIONS } from './schemas.ts'
import { notFound, sendToChild, startChild } from './start-child.ts'

type ToolName = keyof typeof DESCRIPTIONS

/** Executes a call of one of the background tools. */
export async function runBackgroundTool(
  run: NodeRun,
  input: { readonly [key: string]: unknown },
  { tool, spec }: { readonly tool: ToolName; readonly spec: BackgroundSpec },
): Promise<RowToolEnd> {
  try {
    return await OPERATIONS[tool]({ run, spec, tool, read: new FieldReader(tool, input) })
  } catch (error) {
    if (error instanceof RefusedInput) return error.refusal
    throw error
  }
}

interface Call {
  readonly run: NodeRun
  readonly spec: BackgroundSpec
  readonly tool: ToolName
  readonly read: FieldReader
}

const CHILD = 'child_conversation_id'

const OPERATIONS: Readonly<Record<ToolName, (call: Call) => RowToolEnd | Promise<RowToolEnd>>> = {
  subagent_spawn: ({ run, read, spec, tool }) => startChild(run, read, { spec, tool, waits: false }),
  subagent_run: ({ run, read, spec, tool }) => startChild(run, read, { spec, tool, waits: true }),
  subagent_send: ({ run, read, spec, tool }) => sendToChild(run, read, { spec, tool }),
  subagent_poll: (call) => {
    const childId = call.read.text(CHILD)
    const limitTurns = call.read.integer('limit_turns', { least: 1, most: 50 }) ?? 10
    return commit(call, 'deliver', (draft) => planPoll(draft, call.run.work.claim, { childId, limitTurns }))
  },
  subagent_result: (call) => {
    const childId = call.read.text(CHILD)
    const offset = call.read.integer('offset', { least: 0, most: Number.MAX_SAFE_INTEGER }) ?? 0
    return commit(call, 'deliver', (draft) => planChildResult(draft, call.run.work.claim, { childId, offset }))
  },
  subagent_cancel: (call) => {
    const childId = call.read.text(CHILD)
    const reason = call.read.optionalText('reason')
    return commit(call, 'cancel', (draft) => planChildCancel(draft, call.run.work.claim, { childId, reason }))
  },
  subagent_list: (call) => commit(call, 'result', (draft) => planChildList(draft, call.run.work.claim)),
  subagent_wait: (call) => {
    const { read, run } = call
    const childIds = read.ids('ids')
    const timeoutMs = read.integer('timeout_ms', { least: 1, most: 86_400_000 })
    const request = { childIds, join: read.join(), losers: read.losers() }
    return commit(call, 'deliver', (draft) => {
      const until = timeoutMs === null ? null : draft.now + timeoutMs
      return planChildWait(draft, run.work.claim, { ...request, until })
    })
  },
}

async function commit(
  { run: { home, node }, read }: Call,
  kind: CommitKind,
  plan: (draft: Draft) => ChildCallResult,
): Promise<RowToolEnd> {
  const did = await home.ledger.commit({ kind, rootId: node.rootId, plan })
  if (did === 'not_found') return notFound(read)
  if (did === 'busy')
    read.refuse('child_conversation_busy', 'another call waits for this subagent: its answer comes there')
  return 'done'
}
