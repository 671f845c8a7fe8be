import { after } from '../base/after.ts'
import { DeniedError, messageOf } from '../base/error.ts'
import { decide } from '../grant/decide.ts'
import { contextOf } from '../graph/context.ts'
import type { NodeEnd } from '../graph/end-node.ts'
import {
  type Answer,
  countFailedCall,
  expansionIds,
  type NextCall,
  type PlannedTask,
  planAnswer,
  planExpand,
} from '../graph/expand.ts'
import { planResult, planRetry } from '../graph/result.ts'
import type { Node } from '../graph/rows.ts'
import type { Model, ModelRequest } from '../model/model.ts'
import { retryDelay } from '../model/retry.ts'
import { type Judged, judge } from './answer.ts'
import { CallFailed, call } from './call.ts'
import type { AgentCore } from './definition.ts'
import { messagesOf } from './messages.ts'
import type { NodeRun } from './node-run.ts'

/** One agent_message: prompt, model, and the commit that acts on the answer. */
export function runStep(run: NodeRun, model: Model): Promise<void> {
  return call(run, model, requestOf(run)).then(
    (answer) => act(run, answer),
    (error: unknown) => {
      if (error instanceof CallFailed) return fail(run, error)
      throw error
    },
  )
}

function act(run: NodeRun, answer: Answer): void | Promise<void> {
  return answer.calls.length > 0 && run.node.purpose !== 'wrap_up' ? expand(run, answer) : conclude(run, answer)
}

function requestOf({ node, turn, agent, toolkit, home, conversation, layers }: NodeRun): ModelRequest {
  const context = contextOf(home.ledger.store, node, agent.contextTurns)
  const messages = messagesOf(instructionsOf(agent), context)
  if (node.input.nudge !== undefined) messages.push({ role: 'user', content: node.input.nudge })
  const mayDelegate = conversation.depth < turn.limits.depth
  return {
    messages,
    tools: node.purpose === 'wrap_up' ? [] : toolkit.offer(layers, context, mayDelegate),
    settings: agent.settings,
    outputSchema: agent.output?.jsonSchema ?? null,
    path: conversation.path,
  }
}

/** The schema is also told in words: not every model takes it as a setting. */
function instructionsOf(agent: AgentCore): string {
  if (agent.output === null) return agent.instructions
  return `${agent.instructions}\n\nAnswer with only a JSON value of this schema, without any other text:\n${JSON.stringify(agent.output.jsonSchema)}`
}

/** An answer without calls is the last word, unless it must be asked for once more. */
function conclude(run: NodeRun, answer: Answer): void | Promise<void> {
  return after(judge(run.agent, run.node, answer), (judged) => end(run, answer, judged))
}

function end(run: NodeRun, answer: Answer, judged: Judged): void | Promise<void> {
  if (judged.end === 'again' && mayCallAgain(run)) {
    return commitStep(run, answer, { tasks: [], next: { purpose: 'repair', nudge: judged.nudge, limit: null } })
  }
  const failure = failureOf(judged, run.node)
  const value = judged.end === 'completed' ? judged.value : undefined
  const final = { answer: answer.calls.length === 0 ? answer : { ...answer, calls: [] }, value, failure }
  return run.home.ledger.commit({
    kind: 'result',
    rootId: run.node.rootId,
    plan: (draft) => planAnswer(draft, run.work.claim, final),
  })
}

function failureOf(judged: Judged, { metadata }: Node): Node['failure'] {
  if (judged.end === 'completed') return null
  if (judged.end === 'failed') return { code: judged.code, message: judged.message }
  const { limit } = metadata
  if (typeof limit === 'string') return { code: limit, message: 'The limit was reached, and nothing was summed up.' }
  return { code: 'max_turns', message: 'The last turn gave no usable answer.' }
}

/** A wrap-up is the last call there is. */
function mayCallAgain({ turn, node }: NodeRun): boolean {
  return node.purpose !== 'wrap_up' && turn.account.modelCalls + 1 < turn.limits.turns
}

function expand(run: NodeRun, answer: Answer): void | Promise<void> {
  const { limits, account } = run.turn
  const left = Math.max(0, limits.toolCalls - account.toolCalls)
  const dropped = Math.max(0, answer.calls.length - left)
  const kept = dropped === 0 ? answer : { ...answer, calls: answer.calls.slice(0, left), droppedCalls: dropped }
  const tasks = kept.calls.map((toolCall) => planTask(run, toolCall))
  return commitStep(run, kept, { tasks, next: nextCall(run, dropped) })
}

const ANSWER: NextCall = { purpose: 'answer', nudge: null, limit: null }

/** At the limit one more call is made, without tools, to wrap up: it is no turn. */
function nextCall({ turn }: NodeRun, droppedCalls: number): NextCall {
  if (droppedCalls > 0) {
    return {
      purpose: 'wrap_up',
      limit: 'over_budget',
      nudge: `You have used all ${turn.limits.toolCalls} tool calls of this run. Sum up what you have and what is missing.`,
    }
  }
  if (turn.account.modelCalls + 1 < turn.limits.turns) return ANSWER
  return {
    purpose: 'wrap_up',
    limit: 'max_turns',
    nudge: `You have used all ${turn.limits.turns} turns of this run. Sum up what you have and what is missing.`,
  }
}

function planTask({ toolkit, layers }: NodeRun, toolCall: PlannedTask['call']): PlannedTask {
  const found = toolkit.find(toolCall.name)
  if (found === undefined) return { call: toolCall, effect: 'pure', timeoutMs: null, delegates: false, approval: null }
  const decision = decide(found.needsGrant ? layers : [], found.domain, found.asks)
  return {
    call: toolCall,
    effect: found.effect,
    timeoutMs: found.timeoutMs,
    delegates: found.delegates,
    approval:
      decision.verdict === 'ask'
        ? { reason: decision.reason, request: `${found.domain}:${found.asks}`, required: false }
        : null,
  }
}

function commitStep(
  run: NodeRun,
  answer: Answer,
  { tasks, next }: { tasks: readonly PlannedTask[]; next: NextCall },
): void | Promise<void> {
  const step = { answer, tasks, next, ids: expansionIds(run.node.id, tasks.length) }
  return run.home.ledger.commit({
    kind: 'expand',
    rootId: run.node.rootId,
    plan: (draft) => planExpand(draft, run.work.claim, step),
  })
}

async function fail({ work, node, home: { ledger } }: NodeRun, failed: CallFailed): Promise<void> {
  if (work.stopCause === 'shutdown' || work.stopCause === 'lost') return
  const { claim } = work
  const delay = work.stopCause === null ? retryDelay(failed.cause, node.attempt + 1) : undefined
  const retry = { wakeAt: ledger.clock.now() + Math.round(delay ?? 0), error: messageOf(failed.cause) }
  const end = failedEnd(failed, work.stopCause === 'cancel')
  await ledger.commit({
    kind: delay === undefined ? 'result' : 'retry',
    rootId: node.rootId,
    plan: (draft) => {
      countFailedCall(draft, claim, failed.partial)
      if (delay === undefined) planResult(draft, claim, end)
      else planRetry(draft, claim, retry)
    },
  })
}

function failedEnd({ partial, cause }: CallFailed, isStopped: boolean): NodeEnd {
  const said = partial.content.length > 0 ? { output: { content: partial.content } } : {}
  const streamed = partial.streamed ?? null
  if (isStopped) {
    return { ...said, streamed, state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } }
  }
  const code = DeniedError.isInstance(cause) ? 'denied' : 'model'
  return { ...said, streamed, state: 'errored', failure: { code, message: messageOf(cause) } }
}
