// One model step: runs an `agent_message` from its context to the commit that acts on its answer. `runtime` calls
// `runStep` for every node that speaks. The parts are next door: `agent/request` makes the request, `call` asks the
// model, `answer` judges, `rules/turn` plans the commits.
//
// Stays true:
// - Each path ends in one commit that ends the node or puts it off, or in none where this process lost the node.
// - A limit is checked, and the cost reserved, before the model is called (I7).
// - The commit of an answer with calls stores the answer, its tasks and the next message together, with the children
//   that can start at once.

import { DeniedError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { after } from '../../base/maybe.ts'
import { HeldBack } from '../../engine/call-gate.ts'
import { MODEL_REFUSED } from '../../graph/conclude.ts'
import { NO_USAGE, plainCall, saysNothing } from '../../graph/content.ts'
import { collectContext } from '../../graph/context.ts'
import type { Draft } from '../../graph/draft.ts'
import { ALL_TURNS, isEager, isSideCall } from '../../graph/kinds.ts'
import { limitReached, mayCall } from '../../graph/limits.ts'
import type { EagerTask } from '../../graph/outcome.ts'
import { keptOptions, NEW_NODE } from '../../graph/rows.made.ts'
import type { Failure, KeptOptions, Node } from '../../graph/rows.ts'
import { expansionIds } from '../../graph/tasks.ts'
import type { Model, ModelRequest } from '../../model/model.ts'
import { isRefused, pauseAsked, retryDelay } from '../../model/retry.ts'
import { planAsk } from '../../rules/turn/approve.ts'
import { addCheck, planCollected } from '../../rules/turn/check-answer.ts'
import type { NodeEnd } from '../../rules/turn/end-node.ts'
import {
  countFailedCall,
  type FinalAnswer,
  type PlanNote,
  type PlannedTask,
  planAnswer,
  planExpand,
  type StepAnswer,
} from '../../rules/turn/expand.ts'
import { planReserve } from '../../rules/turn/reserve.ts'
import { planHold, planResult, planRetry } from '../../rules/turn/result.ts'
import type { AnswerProtocol } from '../definition/agent.ts'
import { applyRequestHooks, ExtensionFailed } from '../hooks/model-hooks.ts'
import type { EagerWork, NodeRun, ReadyChild } from '../hooks/node-run.ts'
import type { ParsedPlan, PlannedCommand } from '../planner/plan-reader.ts'
import type { Planning } from '../planner/planning.ts'
import { buildRequest, contextCutOf, estimateCost, limitAnswer } from '../request/build-request.ts'
import { compactFirst, compactionFor } from '../request/compaction.ts'
import { type AnswerVerdict, judge, judgeDoomed } from './answer.ts'
import type { AnswerWatch } from './answer-watch.ts'
import { astray, MOST_ASTRAY } from './astray.ts'
import { AskFirst, CallFailed, call, callUntil, NOT_ASKED } from './call.ts'
import { DayOver } from './within-day.ts'

/** Runs one agent_message: prompt, model, and the commit that acts on the answer. */
export function runStep(run: NodeRun, model: Model): void | Promise<void> {
  const { finalTool = null } = run.agent.protocol ?? NO_PROTOCOL
  const found = finalTool === null ? undefined : collectedBy(run, finalTool)
  if (found !== undefined) return endCollected(run, found)
  const isOneOfTurns = isTurn(run.node)
  if (isOneOfTurns && !mayCall(run.turn)) {
    return refuseCall(run, { code: 'max_turns', message: limitReached(run.turn.limits, 'modelCalls') })
  }
  const context = isOneOfTurns ? collectContext(run.tree, run.node, run.contextTurns) : undefined
  const plan = context === undefined ? null : compactionFor(run, model, context)
  if (plan !== null) return compactFirst(run, plan)
  if (run.hooks !== null) return callHooked(run, model)
  const request = buildRequest(run, context)
  return run.turn.spend === null
    ? callModel(run, model, request)
    : callWithinBudget(run, model, { request, ask: (given) => callModel(run, model, given) })
}

interface BudgetedCall {
  readonly request: ModelRequest
  readonly ask: (request: ModelRequest) => Promise<void>
}

function askWithin(run: NodeRun, model: Model, asking: BudgetedCall): Promise<void> {
  return run.turn.spend === null ? asking.ask(asking.request) : callWithinBudget(run, model, asking)
}

/** Loaded for agents that have one. */
const planner = () => import('../planner/planning.ts')

type PlanCall = Extract<Planning, { step: 'judge' }>

/** Asks the model which tool is needed, and hangs up as soon as that is known. */
async function callPlan(run: NodeRun, model: Model, judging: PlanCall): Promise<void> {
  const { request, settings, due } = judging
  if (settings.plan !== null) return planByCode(run, judging)
  const { PlanReader } = await planner()
  const planRun: NodeRun = { ...run, node: { ...run.node, purpose: 'plan' } }
  const plan = new PlanReader(settings.parallel)
  const ask = (given: ModelRequest) =>
    callUntil(planRun, model, given, (text) => plan.push(text)).then(
      (answer) => expandPlan(run, answer, { verdict: plan.verdict(), settings, due }),
      (error: unknown) => onFailed(run, error),
    )
  await askWithin(run, model, { request: await applyRequestHooks(planRun, request), ask })
}

async function planByCode(run: NodeRun, { settings, due }: PlanCall): Promise<void> {
  const { failedPlan, readCommands } = await planner()
  const { signal } = run.work
  const planned = await Promise.resolve({ ...due.context, signal })
    .then((context) => settings.plan?.(context) ?? [])
    .then((commands) => readCommands(commands, settings.parallel))
    .catch(failedPlan)
  return expandPlan(run, { ...NOT_ASKED, model: 'function/plan' }, { verdict: planned, settings, due })
}

/** An answer that is no plan does not fail the run: it continues without tools. */
function expandPlan(
  run: NodeRun,
  answer: StepAnswer,
  { verdict, settings, due }: Pick<PlanCall, 'settings' | 'due'> & { readonly verdict: ParsedPlan },
): void | Promise<void> {
  const { commands, wrong } = verdict
  if (settings.planOnly) return endPlanned(run, answer, commands)
  const calls = commands.map(({ tool, input }, at) => {
    return { id: `plan_${run.node.ordinal}${at === 0 ? '' : `_${at}`}`, name: tool, input }
  })
  const plan = {
    purposes: commands.map(({ purpose }) => purpose),
    warning: wrong === null ? null : `The plan for tools was left out: ${wrong}.`,
    concurrency: settings.concurrency,
    leftMs: due.leftMs,
  }
  return expand(run, { ...answer, calls }, plan)
}

/** Returns the commands as the answer, in the form in which they would have been executed. */
function endPlanned(run: NodeRun, answer: StepAnswer, commands: readonly PlannedCommand[]): void | Promise<void> {
  const shown = commands.map(({ purpose, tool, input }) => ({ purpose, tool_name: tool, tool_kwargs: input }))
  run.home.live.extensions.keep(run.node.turnId, 'tool_commands', shown)
  const judged: AnswerVerdict = { end: 'completed', value: undefined }
  return end(run, { ...answer, content: JSON.stringify(shown), calls: [] }, { judged })
}

/** Stores the tool logs for readers of the outcome. */
async function keepToolLogs({ tree, turn, home }: NodeRun): Promise<void> {
  const { toolLogs } = await planner()
  const logs = toolLogs(tree.nodesOf(turn.id))
  if (logs.length > 0) home.live.extensions.keep(turn.id, 'tool_logs', logs as unknown as Json)
}

/** Runs the hooks before the budget is checked, because the changed request determines the cost. */
async function callHooked(run: NodeRun, model: Model): Promise<void> {
  try {
    const planning = run.hooks?.planner == null ? null : (await planner()).planningOf(run, model)
    if (run.hooks?.planner != null && planning?.step !== 'judge') await keepToolLogs(run)
    if (planning?.step === 'judge') return await callPlan(run, model, planning)
    const request = await applyRequestHooks(run, planning?.request ?? buildRequest(run))
    return await askWithin(run, model, { request, ask: (given) => callModel(run, model, given) })
  } catch (error) {
    if (!(error instanceof ExtensionFailed)) throw error
    return fail(run, new CallFailed(NOT_ASKED, error))
  }
}

const NO_PROTOCOL: Partial<AnswerProtocol> = {}

/** The final output of the calls right before this node; the last one counts. */
function collectedBy({ tree, node, turn }: NodeRun, finalTool: string): Json | undefined {
  for (const task of tree.nodesOf(turn.id).slice(0, node.ordinal).toReversed()) {
    if (task.kind !== 'task') return undefined
    const { state, output, input } = task
    if (input.call?.name === finalTool && state === 'finished' && output.isError !== true) return output.value
  }
  return undefined
}

/** Ends the run with the collected output: one line of JSON, and the value itself. */
function endCollected(run: NodeRun, value: Json): void | Promise<void> {
  const collected = { content: JSON.stringify(value), value, check: checkOf(run) }
  return run.home.ledger.commit({
    kind: 'result',
    rootId: run.node.rootId,
    plan: (draft) => planCollected(draft, run.work.claim, collected),
  })
}

/** The task that decides whether an answer is final; null where every answer is. */
function checkOf(run: NodeRun): PlannedTask | null {
  const { checkTool = null } = run.agent.protocol ?? NO_PROTOCOL
  return checkTool === null ? null : planTask(run, { id: run.node.id, name: checkTool, input: {} })
}

/** A call that wraps up, briefs or sums up is no turn of its agent, and has no tools. */
function isTurn(node: Node): boolean {
  return node.purpose !== 'wrap_up' && !isSideCall(node)
}

/** Reserves the cost of the call first; if the budget does not suffice, it makes the call that wraps up, or none. */
async function callWithinBudget(run: NodeRun, model: Model, { request, ask }: BudgetedCall): Promise<void> {
  const said = run.tree.nodesOf(run.turn.id).findLast(({ usage }) => usage.inputTokens > 0)
  const cost = estimateCost(model, request, said?.usage ?? NO_USAGE)
  if (!cost.isPriced && run.turn.spend?.limit.usd !== null) {
    return refuseCall(run, { code: 'over_budget', message: unpriced(model) })
  }
  const reserved = await run.home.ledger.commit({
    kind: 'reserve',
    rootId: run.node.rootId,
    plan: (draft) => planReserve(draft, run.work.claim, cost),
  })
  if (reserved.verdict === 'over') return
  if (reserved.verdict === 'ok') return ask(limitAnswer(request, reserved.answerTokens))
  const last = { ...run, node: reserved.node }
  const wrapUp = run.hooks === null ? buildRequest(last) : await applyRequestHooks(last, buildRequest(last))
  return callModel(last, model, limitAnswer(wrapUp, reserved.answerTokens))
}

function unpriced({ id }: Model): string {
  return `The price of ${id} is not known, so budget.usd cannot be kept. Put it into the config file (prices), or use budget.tokens.`
}

function callModel(run: NodeRun, model: Model, request: ModelRequest): Promise<void> {
  if (isWatched(run)) return callWatched(run, model, request)
  return call(run, model, request, undefined).then(
    (answer) => act(run, answer),
    (error: unknown) => onFailed(run, error),
  )
}

function onFailed(run: NodeRun, error: unknown): Promise<void> {
  if (error instanceof CallFailed) return fail(run, error)
  throw error
}

/** True when work starts before the answer ends. */
function isWatched({ agent, node }: NodeRun): boolean {
  if (agent.output === null || (node.purpose !== 'answer' && node.purpose !== 'repair')) return false
  return agent.eager !== null || agent.repair?.failFast === true
}

/** Finishes the work that the stream started before it acts on the answer. */
async function callWatched(run: NodeRun, model: Model, request: ModelRequest): Promise<void> {
  const { DoomedAnswer, watchAnswer } = await import('./answer-watch.ts')
  const watch = await watchAnswer(run)
  const answer = await call(run, model, request, watch).catch((error: unknown) => ({ error }))
  await watch.settled()
  if (!('error' in answer)) return act(run, answer, watch)
  const { error } = answer
  if (!(error instanceof CallFailed && error.cause instanceof DoomedAnswer)) return onFailed(run, error)
  return endPlan(run, error.partial, judgeDoomed(run, error.cause.issues), watch)
}

/** A call that no answer asked for, added by hand or to end a turn, counts like any other. */
function refuseCall({ node, work, home }: NodeRun, failure: Failure): void | Promise<void> {
  const plan = (draft: Draft) => {
    planResult(draft, work.claim, { state: 'errored', failure })
  }
  return home.ledger.commit({ kind: 'result', rootId: node.rootId, plan })
}

function act(run: NodeRun, answer: StepAnswer, watch?: AnswerWatch): void | Promise<void> {
  if (answer.calls.length > 0 && run.turn.account.modelCalls >= MOST_ASTRAY - 1) {
    const judged = astray(run, answer)
    if (judged !== null) return end(run, { ...answer, calls: [] }, { judged })
  }
  return answer.calls.length > 0 && isTurn(run.node) ? expand(run, answer) : conclude(run, answer, watch)
}

/** Ends the turn with an answer without calls, unless the model must answer once more. */
function conclude(run: NodeRun, answer: StepAnswer, watch?: AnswerWatch): void | Promise<void> {
  if (isSideCall(run.node)) return end(run, answer, { judged: judgeText(run.node, answer) })
  return after(judge(run, answer), (judged) => endPlan(run, answer, judged, watch))
}

function judgeText({ purpose }: Node, { content }: StepAnswer): AnswerVerdict {
  if (!saysNothing(content)) return { end: 'completed', value: undefined }
  return {
    end: 'failed',
    code: 'empty_answer',
    message: `The ${purpose === 'brief' ? 'briefing' : 'summary'} was empty.`,
  }
}

/** Makes sure that each item of the answer has its child before the answer ends. */
function endPlan(
  run: NodeRun,
  answer: StepAnswer,
  judged: AnswerVerdict,
  watch: AnswerWatch | undefined,
): void | Promise<void> {
  if (run.agent.eager === null) return end(run, answer, { judged })
  return tasksOf(judged, watch?.eager ?? null).then((tasks) => end(run, answer, { judged, tasks }))
}

async function tasksOf(judged: AnswerVerdict, eager: EagerWork | null): Promise<readonly EagerTask[]> {
  const plan = judged.end === 'completed' ? (judged.written ?? judged.value) : undefined
  return plan === undefined || eager === null ? [] : eager.finish(plan)
}

interface End {
  readonly judged: AnswerVerdict
  readonly tasks?: readonly EagerTask[]
}

function end(run: NodeRun, answer: StepAnswer, { judged, tasks }: End): void | Promise<void> {
  const final = {
    answer: withCut(run, answer.calls.length === 0 ? answer : { ...answer, calls: [] }),
    again: judged.end === 'again' ? judged : null,
    value: judged.end === 'completed' ? judged.value : undefined,
    failure: failureOf(judged, run.node),
    extra: run.hooks === null ? undefined : run.home.live.extensions.extraOf(run.node.turnId),
    response: run.agent.toolTrace && !isSideCall(run.node) ? { tool_trace: toolTrace(run) } : undefined,
    delegations: tasks,
    check: run.agent.protocol !== null && isTurn(run.node) ? checkAfter(checkOf(run)) : null,
  }
  return run.home.ledger.commit({
    kind: 'result',
    rootId: run.node.rootId,
    plan: (draft) => planAnswer(draft, run.work.claim, final),
  })
}

function checkAfter(check: PlannedTask | null): FinalAnswer['check'] {
  return check === null ? null : (draft, answer) => addCheck(draft, answer, check)
}

/** The tools whose results the answer builds on, in order. */
function toolTrace({ tree, turn }: NodeRun): string[] {
  const tasks = tree.nodesOf(turn.id).filter((node) => {
    return node.kind === 'task' && node.endedAt !== null && !isEager(node)
  })
  return tasks.map(({ input }) => input.call?.name ?? '')
}

function failureOf(judged: AnswerVerdict, { metadata }: Node): Node['failure'] {
  if (judged.end === 'completed') return null
  if (judged.end === 'failed') return { code: judged.code, message: judged.message }
  const { limit } = metadata
  if (typeof limit === 'string') return { code: limit, message: 'The limit was reached, and nothing was summed up.' }
  return { code: 'max_turns', message: 'The last turn gave no usable answer.' }
}

/** Says in an answer what its model was not shown: only a limit of rounds, or a chat's of length, leaves anything out. */
function withCut(run: NodeRun, answer: StepAnswer): StepAnswer {
  const isWhole = run.contextTurns === ALL_TURNS || isFirst(run)
  if (isWhole && run.agent.asked === null) return answer
  const contextCut = contextCutOf(run)
  return contextCut === undefined ? answer : { ...answer, contextCut }
}

/** True for the first turn of a lane that was not forked: nothing came before. */
function isFirst({ turn, conversation }: NodeRun): boolean {
  return turn.ordinal === 0 && turn.history === null && conversation.lane === null
}

function expand(run: NodeRun, given: StepAnswer, plan?: PlanNote & { leftMs: number | null }): void | Promise<void> {
  const answer = withCut(run, given)
  const leftMs = plan?.leftMs ?? null
  const tasks = answer.calls.map((toolCall) => within(planTask(run, toolCall), leftMs))
  const step = { answer, tasks, ids: expansionIds(run.node.id, tasks.length), plan }
  const isDelegating = plan === undefined && tasks.some(({ delegates }) => delegates)
  const ready = isDelegating ? run.home.children.ready(run, step) : NO_CHILDREN
  return run.home.ledger.commit({
    kind: 'expand',
    rootId: run.node.rootId,
    plan: (draft) => {
      planExpand(draft, run.work.claim, step)
      for (const child of ready) child.start(draft)
    },
  })
}

const NO_CHILDREN: readonly ReadyChild[] = []

function within(task: PlannedTask, leftMs: number | null): PlannedTask {
  const { timeoutMs } = task.options
  if (leftMs === null || (timeoutMs !== null && timeoutMs <= leftMs)) return task
  return { ...task, options: { ...keptOptions(task.options), timeoutMs: Math.max(1, leftMs) } }
}

function planTask({ toolkit }: NodeRun, toolCall: PlannedTask['call']): PlannedTask {
  const found = toolkit.find(toolCall.name)
  const call = plainCall(toolCall)
  if (found === undefined) return { call, options: UNKNOWN_TOOL, delegates: false }
  return { call, options: found.options, delegates: found.delegates }
}

const UNKNOWN_TOOL: KeptOptions = { ...keptOptions(NEW_NODE), effect: 'pure' }

async function fail({ work, node, home }: NodeRun, failed: CallFailed): Promise<void> {
  if (work.stopCause === 'shutdown' || work.stopCause === 'lost') return
  const { ledger, settings } = home
  const { claim } = work
  const { cause } = failed
  if (cause instanceof AskFirst) {
    return ledger.commit({ kind: 'ask', rootId: node.rootId, plan: (draft) => planAsk(draft, claim, cause.ask) })
  }
  if (cause instanceof HeldBack && work.stopCause === null) {
    const { until, message: why } = cause
    const rootId = node.rootId
    await ledger.commit({ kind: 'retry', rootId, plan: (draft) => planHold(draft, claim, { until, why }) })
    return home.live.gate.stand(cause)
  }
  const isAsked = work.stopCause !== null && work.stopCause !== 'stalled'
  const delay = isAsked ? undefined : retryDelay(failed.cause, node.attempt + 1, home.ledger.scheduler.random)
  const pause = pauseAsked(cause)
  if (pause !== undefined && failed.partial.model !== '') {
    await home.live.gate.pause(failed.partial.model, ledger.clock.now() + Math.min(pause, LONGEST_PAUSE_MS))
  }
  const error = settings.causeOf(cause)
  const retry = { wakeAt: ledger.clock.now() + Math.round(delay ?? 0), error }
  const end = failedEnd(failed, error, work.stopCause === 'cancel')
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

/** A provider that asks for more is asked again before: nobody could end such a pause. */
const LONGEST_PAUSE_MS = 600_000

function failedEnd({ partial, cause }: CallFailed, message: string, isStopped: boolean): NodeEnd {
  const said = partial.content.length > 0 ? { output: { content: partial.content } } : {}
  const streamed = partial.streamed ?? null
  if (isStopped) {
    return { ...said, streamed, state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } }
  }
  return { ...said, streamed, state: 'errored', failure: { code: codeOf(cause), message } }
}

function codeOf(cause: unknown): string {
  if (cause instanceof ExtensionFailed) return 'extension'
  if (cause instanceof DayOver) return 'over_budget'
  if (DeniedError.isInstance(cause)) return 'denied'
  return isRefused(cause) ? MODEL_REFUSED : 'model'
}
