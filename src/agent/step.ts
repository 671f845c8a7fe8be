import { DeniedError, messageOf } from '../base/error.ts'
import type { Feeds } from '../conversation/feeds.ts'
import type { Work } from '../engine/engine.ts'
import { decide } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import { contextOf } from '../graph/context.ts'
import { type Answer, expansionIds, type NextCall, type PlannedTask, planAnswer, planExpand } from '../graph/expand.ts'
import { planResult, planRetry } from '../graph/result.ts'
import type { Conversation, Node, Turn } from '../graph/rows.ts'
import type { Message, Model } from '../model/model.ts'
import { retryDelay } from '../model/retry.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Toolkit } from '../tool/toolkit.ts'
import { judge } from './answer.ts'
import { CallFailed, call } from './call.ts'
import type { AgentCore } from './definition.ts'
import { messagesOf } from './messages.ts'

/** Everything one agent_message needs to run. */
export interface Step {
  readonly node: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly agent: AgentCore
  readonly model: Model
  readonly toolkit: Toolkit
  readonly layers: readonly Layer[]
  readonly work: Work
  readonly ledger: Ledger
  readonly feeds: Feeds
}

/** One agent_message: prompt, model, and the commit that acts on the answer. */
export async function runStep(step: Step): Promise<void> {
  const { node } = step
  const live = new LazyLive(step)
  try {
    if (node.attempt > 1) live.get().emit({ type: 'reset', attempt: node.attempt }, step.ledger.clock.now())
    const { answer } = await call({
      model: step.model,
      request: requestOf(step),
      layers: step.layers,
      work: step.work,
      live: () => live.get(),
      now: () => step.ledger.clock.now(),
    })
    await act(step, answer)
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error
    await fail(step, error)
  } finally {
    live.end()
  }
}

class LazyLive {
  private readonly step: Step
  private live: ReturnType<Feeds['beginLive']> | undefined

  constructor(step: Step) {
    this.step = step
  }

  get(): ReturnType<Feeds['beginLive']> {
    this.live ??= this.step.feeds.beginLive(this.step.node, this.step.conversation)
    return this.live
  }

  end(): void {
    if (this.live !== undefined) this.step.feeds.endLive(this.step.node)
  }
}

function requestOf({ node, agent, toolkit, ledger, conversation, layers }: Step) {
  const context = contextOf(ledger.store, node)
  const messages = messagesOf(instructionsOf(agent), context)
  if (node.input.nudge !== undefined) messages.push({ role: 'user', content: node.input.nudge } satisfies Message)
  return {
    messages,
    tools: node.purpose === 'wrap_up' ? [] : toolkit.offer(layers, context),
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

async function act(step: Step, answer: Answer): Promise<void> {
  if (answer.calls.length > 0 && step.node.purpose !== 'wrap_up') return expand(step, answer)
  const judged = await judge(step.agent, step.node, answer)
  if (judged.end === 'again' && mayCallAgain(step)) {
    const next: NextCall = { purpose: 'repair', nudge: judged.nudge, limit: null }
    return commitStep(step, { answer, tasks: [], next })
  }
  const failure = failureOf(judged)
  const value = judged.end === 'completed' ? judged.value : undefined
  const end = { answer: { ...answer, calls: [] }, value, failure }
  await step.ledger.commit({
    kind: 'result',
    rootId: step.node.rootId,
    plan: (draft) => planAnswer(draft, step.work.claim, end),
  })
}

function failureOf(judged: Awaited<ReturnType<typeof judge>>): Node['failure'] {
  if (judged.end === 'completed') return null
  if (judged.end === 'failed') return { code: judged.code, message: judged.message }
  return { code: 'max_turns', message: 'The last turn gave no usable answer.' }
}

function mayCallAgain({ turn }: Step): boolean {
  return turn.account.modelCalls + 1 < turn.limits.turns
}

async function expand(step: Step, answer: Answer): Promise<void> {
  const { turn } = step
  const left = Math.max(0, turn.limits.toolCalls - turn.account.toolCalls)
  const kept = answer.calls.length > left ? answer.calls.slice(0, left) : answer.calls
  const tasks = kept.map((toolCall) => planTask(step, toolCall))
  const droppedCalls = answer.calls.length - kept.length
  await commitStep(step, {
    answer: { ...answer, calls: kept, droppedCalls },
    tasks,
    next: nextCall(step, droppedCalls),
  })
}

/** At the limit one more call is made, without tools, to wrap up: it is no turn. */
function nextCall({ turn }: Step, droppedCalls: number): NextCall {
  if (droppedCalls > 0) {
    return {
      purpose: 'wrap_up',
      limit: 'over_budget',
      nudge: `You have used all ${turn.limits.toolCalls} tool calls of this run. Sum up what you have and what is missing.`,
    }
  }
  if (turn.account.modelCalls + 1 < turn.limits.turns) return { purpose: 'answer', nudge: null, limit: null }
  return {
    purpose: 'wrap_up',
    limit: 'max_turns',
    nudge: `You have used all ${turn.limits.turns} turns of this run. Sum up what you have and what is missing.`,
  }
}

function planTask({ toolkit, layers }: Step, toolCall: PlannedTask['call']): PlannedTask {
  const found = toolkit.find(toolCall.name)
  if (found === undefined) return { call: toolCall, effect: 'pure', timeoutMs: null, delegates: false, approval: null }
  const decision = decide(layers, found.domain, found.asks)
  return {
    call: toolCall,
    effect: found.effect,
    timeoutMs: found.timeoutMs,
    delegates: found.delegates,
    approval: decision.verdict === 'ask' ? { reason: decision.reason, required: false } : null,
  }
}

async function commitStep(
  step: Step,
  made: { answer: Answer; tasks: readonly PlannedTask[]; next: NextCall },
): Promise<void> {
  const ids = expansionIds(step.node.id, made.tasks.length)
  await step.ledger.commit({
    kind: 'expand',
    rootId: step.node.rootId,
    plan: (draft) => planExpand(draft, step.work.claim, { ...made, ids }),
  })
}

async function fail(step: Step, failed: CallFailed): Promise<void> {
  const { work, node, ledger } = step
  if (work.stopCause === 'shutdown' || work.stopCause === 'lost') return
  const delay = work.stopCause === null ? retryDelay(failed.cause, node.attempt + 1) : undefined
  if (delay !== undefined) {
    const retry = { wakeAt: ledger.clock.now() + Math.round(delay), error: messageOf(failed.cause) }
    await ledger.commit({ kind: 'retry', rootId: node.rootId, plan: (draft) => planRetry(draft, work.claim, retry) })
    return
  }
  const { content } = failed.partial
  const stopped = work.stopCause === 'cancel'
  const code = DeniedError.isInstance(failed.cause) ? 'denied' : 'model'
  await ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) =>
      planResult(draft, work.claim, {
        state: stopped ? 'stopped' : 'errored',
        ...(content.length > 0 ? { output: { content } } : {}),
        failure: stopped
          ? { code: 'stopped', message: 'The run was asked to stop.' }
          : { code, message: messageOf(failed.cause) },
        streamed: failed.partial.streamed ?? null,
      }),
  })
}
