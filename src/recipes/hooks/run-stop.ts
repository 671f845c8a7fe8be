import type { NodeRun } from '../../core/agent/hooks/node-run.ts'
import type { RowToolEnd } from '../../core/delegation/background/row-tool.ts'
import type { ProgramRequest } from '../../core/grant/request.ts'
import { textOf } from '../../core/graph/content.ts'
import { checkedAnswer } from '../../core/graph/kinds.ts'
import { type CheckResult, planChecked } from '../../core/rules/turn/check-answer.ts'
import { errorEnd } from '../../core/tool/result.ts'
import type { FileHook } from '../agent-file/file-hook.ts'
import { STOP } from '../inline/spec.ts'
import { commonFields } from './guards.ts'
import { type HookFolder, inFolder, permitHook, runHook } from './run-hook.ts'

export interface StopHooks {
  readonly hooks: readonly FileHook[]
  readonly place: HookFolder
}

/** Shows an answer to the hooks that look at the end, and commits the next step: the end, or one more answer. */
export async function runStopHooks(run: NodeRun, stop: StopHooks): Promise<RowToolEnd> {
  const { home, node, work, tree } = run
  const answerId = checkedAnswer(node)
  if (answerId === undefined) return errorEnd(`There is no tool "${STOP}" to call.`)
  const answer = textOf(tree.node(answerId)?.output.content ?? '')
  const verdict = await look(run, stop, answer)
  if ('ask' in verdict) return { ask: verdict.ask }
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planChecked(draft, work.claim, verdict),
  })
  return 'done'
}

type Ask = Extract<RowToolEnd, { ask: unknown }>

async function look(run: NodeRun, { hooks, place }: StopHooks, answer: string): Promise<CheckResult | Ask> {
  const attempt = triesBefore(run)
  const permitted: { hook: FileHook; request: ProgramRequest }[] = []
  for (const hook of hooks) {
    const request = permitHook(run, hook, place)
    if ('refused' in request) return failed(request.refused)
    if ('ask' in request) return { ask: request.ask }
    permitted.push({ hook, request })
  }
  const cwd = await inFolder(run, place, async (real) => real)
  const event = run.conversation.depth === 0 ? 'Stop' : 'SubagentStop'
  for (const { hook, request } of permitted) {
    const shown = {
      ...commonFields(run, { event }, cwd),
      stop_hook_active: attempt > 0,
      last_assistant_message: answer,
    }
    const verdict = await runHook(run, hook, { request, place, shown })
    if (verdict.says === 'nothing') continue
    if (verdict.says === 'no' && verdict.isBroken) return failed(verdict.reason)
    return { is: 'again', text: verdict.reason, isError: true, attempt, first: null, goesOn: true }
  }
  return { is: 'passed', text: 'The hooks let it end.' }
}

function failed(message: string): CheckResult {
  return { is: 'over', failure: { code: 'hook_failed', message } }
}

/** Counts how often the hooks of this run have asked for more before this node. */
function triesBefore({ tree, node, turn }: NodeRun): number {
  const isTry = tree.nodesOf(turn.id).filter(({ ordinal, input, output }) => {
    return ordinal < node.ordinal && input.call?.name === STOP && output.isError === true
  })
  return isTry.length
}
