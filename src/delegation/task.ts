import type { AgentCore, AnyAgent } from '../agent/definition.ts'
import { isAgent } from '../agent/definition.ts'
import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { Feeds } from '../conversation/feeds.ts'
import type { Work } from '../engine/engine.ts'
import type { Budget } from '../grant/budget.ts'
import type { Layer } from '../grant/grant.ts'
import { fold } from '../graph/fold.ts'
import { type Outcome, withWords } from '../graph/outcome.ts'
import { planResult } from '../graph/result.ts'
import type { Conversation, Id, Node, Turn } from '../graph/rows.ts'
import { childIds, planDeliver } from '../graph/spawn.ts'
import type { Ledger } from '../store/ledger.ts'
import { asCurrentCall, type CurrentCall, type StartedChild } from '../tool/current.ts'
import { invoke } from '../tool/invoke.ts'
import type { ToolEnd } from '../tool/result.ts'
import type { Logger, ToolContext } from '../tool/tool.ts'
import type { Toolkit } from '../tool/toolkit.ts'
import { type SpawnOptions, type SpawnResult, spawn } from './spawn.ts'
import { isSubagentEntry, type SubagentEntry } from './subagent.ts'

/** Everything one task needs to run. */
export interface TaskRun {
  readonly task: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly agent: AgentCore
  readonly toolkit: Toolkit
  readonly layers: readonly Layer[]
  readonly budget: Budget | undefined
  readonly work: Work
  readonly ledger: Ledger
  readonly feeds: Feeds
  readonly logger: Logger
  readonly runtime: object
  readonly hasModel: (agent: AgentCore) => boolean
  /** Makes the code of a started child known to this process. */
  readonly settleChild: (conversationId: Id, agent: AgentCore) => void
  readonly waitFor: (runId: Id) => Promise<Outcome>
}

/** One task: a child is started and the task waits as a row, or the tool runs and its result is committed. */
export async function runTask(run: TaskRun): Promise<void> {
  const entry = run.toolkit.find(run.task.input.call?.name ?? '')
  if (entry !== undefined && isSubagentEntry(entry)) return delegateTask(run, entry)
  const children = new CalledChildren(run)
  const end = await invoke({
    task: run.task,
    tool: entry?.tool ?? undefined,
    known: run.toolkit.names,
    layers: run.layers,
    work: run.work,
    call: children.call,
    context: children.context(),
  })
  children.end()
  if (end !== undefined) await commitEnd(run, end)
}

async function delegateTask(run: TaskRun, entry: SubagentEntry): Promise<void> {
  const call = run.task.input.call
  if (call?.invalid !== undefined) {
    const content = `The arguments of ${call.name} are not JSON: ${call.invalid}`
    return commitEnd(run, { state: 'finished', output: { content, isError: true }, body: null })
  }
  const spawned = await spawn({
    ...spawnBase(run),
    take: entry.take,
    input: call?.input,
    inputSchema: entry.input,
    contract: entry.contract,
    toolName: entry.name,
    briefing: entry.briefing,
    budget: entry.budget,
    onParentClose: entry.onParentClose,
    mode: 'parked',
    ordinal: 0,
  })
  if (!('refused' in spawned)) return
  const facts = {
    contract: entry.contract,
    agentName: spawned.agentName,
    hostName: run.agent.name,
    delegationContext: { input_payload: call?.input ?? null },
    childConversationId: '',
  }
  const { content, metadata } = fold(facts, withWords(spawned.refused, {}))
  await commitEnd(run, { state: 'finished', output: { content, isError: true }, metadata, body: null })
}

function spawnBase(run: TaskRun) {
  return {
    ledger: run.ledger,
    claim: run.work.claim,
    task: run.task,
    turn: run.turn,
    conversation: run.conversation,
    host: run.agent,
    layers: run.layers,
    ceilingBudget: run.budget,
    hasModel: run.hasModel,
    settleChild: run.settleChild,
  } satisfies Partial<SpawnOptions>
}

async function commitEnd(run: TaskRun, { body, ...end }: ToolEnd): Promise<void> {
  await run.ledger.commit({
    kind: 'result',
    rootId: run.task.rootId,
    plan: (draft) => {
      if (body !== null) draft.addBody(body)
      return planResult(draft, run.work.claim, { metadata: run.task.metadata, ...end })
    },
  })
}

/** The children a node's code starts while it runs, in the order it starts them: on a rerun the same order finds them. */
export class CalledChildren {
  readonly call: CurrentCall
  private readonly run: TaskRun
  private started = 0
  private live: ReturnType<Feeds['beginLive']> | undefined

  constructor(run: TaskRun) {
    this.run = run
    this.call = { runtime: run.runtime, delegate: (agent, input) => this.start(agent, input).outcome, children: this }
  }

  /** What the code gets to know and may do. */
  context(): ToolContext {
    const { task, work, logger } = this.run
    return {
      idempotencyKey: task.idempotencyKey ?? task.id,
      node: { id: task.id, conversationId: task.conversationId, turnId: task.turnId, attempt: task.attempt },
      progress: (message, data = null) => this.progress(message, data),
      delegate: this.call.delegate,
      logger,
      get signal() {
        return work.signal
      },
    }
  }

  /** Runs code as this node: agents it starts are the node's children. */
  inside<T>(run: () => T): T {
    return asCurrentCall(this.call, run)
  }

  start(agent: object, input: unknown): StartedChild {
    if (!isAgent(agent)) throw new DefinitionError('definition', 'delegate(agent, input): make the agent with agent().')
    const ordinal = this.started++
    const ids = childIds(this.run.task.id, ordinal)
    const started = this.begin(agent, input, ordinal)
    const outcome = this.run.work.lend(started.then((spawned) => this.finish(spawned)))
    outcome.catch(() => undefined)
    return { runId: ids.turn, conversationId: ids.conversation, started, outcome }
  }

  private progress(message: string, data: Json): void {
    this.live ??= this.run.feeds.beginLive(this.run.task, this.run.conversation)
    this.live.emit({ type: 'progress', message, data }, this.run.ledger.clock.now())
  }

  end(): void {
    if (this.live !== undefined) this.run.feeds.endLive(this.run.task)
  }

  private begin(agent: AnyAgent, input: unknown, ordinal: number): Promise<SpawnResult> {
    const { run } = this
    return spawn({
      ...spawnBase(run),
      take: () => agent,
      input,
      inputSchema: agent.input,
      contract: 'typed',
      toolName: run.task.input.call?.name ?? '',
      briefing: 'none',
      budget: undefined,
      onParentClose: 'cancel',
      mode: 'called',
      ordinal,
    })
  }

  private async finish(spawned: SpawnResult): Promise<Outcome> {
    const { run } = this
    if ('lost' in spawned) throw run.work.signal.reason
    if ('refused' in spawned) return withWords(spawned.refused, {})
    const outcome = await run.waitFor(spawned.link.id)
    await run.ledger.commit({
      kind: 'deliver',
      rootId: run.task.rootId,
      plan: (draft) => planDeliver(draft, spawned.link.id),
    })
    return outcome
  }
}
