// A thread of AG-UI: the conversation that a principal has with an agent under the client's id.
//
// Owns:      what each request does: say something, or answer every interrupt; and the stream that follows.
// Called by: the routes of the server.
// Must stay true:
//   - It reaches rows only through the principal's runtime (I12). The same id of another principal is another conversation.
//   - A repeated request starts nothing twice. A client that leaves stops nothing.
//   - Approvals and questions reach the client only with the scope `approve`. Without it the run waits, and the stream with it.

import { parseJson } from '../../../core/base/json.ts'
import type { AgentInfo, TreeData } from '../../../doors/rows.ts'
import {
  ConflictError,
  DeniedError,
  type Id,
  InputError,
  isLegateError,
  type Json,
  NotFoundError,
  type Run,
  type RunEvent,
  type ScopedRuntime,
} from '../../../index.ts'
import { answersTo, interruptOf, refuseAnswer, requireNoResume, ThreadRefusal } from './pending.ts'
import type { RunInput } from './read.ts'
import { type AgUiPending, groupBy, isParked, pendingIn, threadMessages, turnAbove } from './rows.ts'
import { type AgUiEvent, AgUiWriter, type KnownSubagent } from './write.ts'

/** The version of the protocol. */
const PROTOCOL = '1.0'

/** The agent of a thread, and the client's ids. */
export interface ThreadPlace {
  readonly agent: string
  readonly threadId: string
  readonly runId: string
}

/** A run that is to be told: from its beginning, or from a place on. */
interface ToldRun {
  readonly run: Run
  /** The rows before it, for the messages of the thread; null for a new thread. */
  readonly before: TreeData | null
  readonly after: number | null
}

export class AgUiThread {
  private readonly runtime: ScopedRuntime
  private readonly place: ThreadPlace

  constructor(runtime: ScopedRuntime, place: ThreadPlace) {
    this.runtime = runtime
    this.place = place
  }

  /** Does what the client wants, and gives the stream that follows. Throws what no run could be started for. */
  async post(input: RunInput): Promise<AsyncGenerator<AgUiEvent>> {
    const id = await this.runtime.conversationIdFor(this.place.agent, this.place.threadId)
    const before = (await unlessMissing(this.runtime.treeData(id, { newest: true }))) ?? null
    try {
      const open = before === null ? [] : this.interruptsIn(before, id)
      if (before !== null && open.length > 0) return this.told(await this.answer({ before, open }, input))
      requireNoResume(input)
      if (input.said === null)
        throw new ThreadRefusal('nothing_said', 'The newest message is no message of a person, and nothing waits.')
      return this.told({ run: await this.say(input.said), before, after: null })
    } catch (error) {
      if (error instanceof ThreadRefusal) return this.refused(error)
      throw error
    }
  }

  private async say(said: NonNullable<RunInput['said']>): Promise<Run> {
    const { agent, threadId, runId } = this.place
    const key = JSON.stringify(['ag-ui', agent, threadId, runId])
    const run = this.runtime.run(agent, await this.inputOf(said), { conversationKey: threadId, key })
    await run.settled()
    await requireQuota(run)
    return run
  }

  /** A message to an agent that takes an object is the JSON of it. */
  private async inputOf(said: NonNullable<RunInput['said']>): Promise<unknown> {
    const found = (await this.runtime.agents()).find(({ name }) => name === this.place.agent)
    if (typeof said !== 'string' || found === undefined || found.input === null) return said
    const json = parseJson(said)
    return json.ok ? json.value : said
  }

  private interruptsIn(data: TreeData, conversationId: Id): AgUiPending[] {
    const sight = { principalId: this.runtime.principal.id, approves: this.runtime.may('approve') }
    return isParked(data) ? pendingIn(data, conversationId, sight) : []
  }

  /** Answers every open interrupt, or refuses. All answers are checked before the first one is given. */
  private async answer({ before, open }: PendingThread, input: RunInput): Promise<ToldRun> {
    const answers = answersTo(open, input)
    const run = await this.runtime.attach(turnAbove(before, open[0]?.runId ?? ''))
    const checked = answers.map(({ interrupt, word }) => this.runtime.checkAnswer(interrupt.nodeId, word))
    const says = await Promise.all(checked).catch((error: unknown) => refuseAnswer(error, 'Nothing was answered.'))
    for (const [given, say] of says.entries()) {
      await say().catch((error: unknown) => refuseAnswer(error, givenSoFar(open.slice(0, given))))
    }
    return { run, before, after: before.lastSeq }
  }

  private async *refused({ code, message }: ThreadRefusal): AsyncGenerator<AgUiEvent> {
    yield this.started()
    yield { type: 'RUN_ERROR', message, code }
  }

  private started(): AgUiEvent {
    const { threadId, runId } = this.place
    return { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL }
  }

  private async *told({ run, before, after }: ToldRun): AsyncGenerator<AgUiEvent> {
    yield this.started()
    if (before !== null) yield snapshot(before, run, after === null ? run.id : null)
    const writer = new AgUiWriter(run.id, before === null ? [] : subagentsIn(before))
    try {
      yield* this.follow(run, writer, after)
    } catch (error) {
      yield* writer.close()
      yield runError(error)
    }
  }

  private async *follow(run: Run, writer: AgUiWriter, after: number | null): AsyncGenerator<AgUiEvent> {
    const events: AsyncIterable<RunEvent> = after === null ? run : run.events({ after })
    for await (const event of events) {
      yield* writer.write(event)
      if (event.type === 'run-end' && event.runId === run.id) return yield* this.ended(event, writer)
      const open = MAY_PARK.has(event.type) && writer.asked.size > 0 ? await this.parkedIn(run) : null
      if (open !== null) return yield* this.interrupted(run, writer, open)
    }
  }

  /** The interrupts of a run that does nothing else any more; null where it does, or nobody here can answer. */
  private async parkedIn(run: Run): Promise<ParkedThread | null> {
    const data = await this.runtime.treeData(run.conversationId, { newest: true })
    const interrupts = this.interruptsIn(data, run.conversationId)
    return interrupts.length === 0 ? null : { data, interrupts }
  }

  private *interrupted(run: Run, writer: AgUiWriter, { data, interrupts }: ParkedThread): Generator<AgUiEvent> {
    const below = groupBy(interrupts, ({ subagentRunId }) => subagentRunId ?? '')
    yield* writer.close(new Map([...below].map(([runId, list]) => [runId, list.map(({ id }) => id)])))
    yield snapshot(data, run, null)
    const outcome = { type: 'interrupt', interrupts: interrupts.map(interruptOf) }
    yield this.finished(writer, { outcome })
  }

  private *ended({ outcome }: Extract<RunEvent, { type: 'run-end' }>, writer: AgUiWriter): Generator<AgUiEvent> {
    yield* writer.close()
    const { status, error } = outcome
    if (status === 'completed') yield this.finished(writer, { outcome: { type: 'success' } })
    else if (status === 'cancelled') yield this.finished(writer, { outcome: { type: 'cancelled' } })
    else yield { type: 'RUN_ERROR', message: error?.message ?? status, code: status, usage: writer.usage() }
  }

  private finished(writer: AgUiWriter, how: { readonly outcome: Json }): AgUiEvent {
    const { threadId, runId } = this.place
    return { type: 'RUN_FINISHED', threadId, runId, ...how, usage: writer.usage() }
  }
}

/** Events after which a run may do nothing but wait. */
const MAY_PARK: ReadonlySet<string> = new Set([
  'approval-request',
  'question',
  'tool-result',
  'delegation-end',
  'message',
])

interface PendingThread {
  readonly before: TreeData
  readonly open: readonly AgUiPending[]
}

interface ParkedThread {
  readonly data: TreeData
  readonly interrupts: readonly AgUiPending[]
}

/** Somebody else may have answered one since all were checked: then the client must know which of its own count. */
function givenSoFar(given: readonly AgUiPending[]): string {
  if (given.length === 0) return 'Nothing was answered.'
  return `Answered before that: ${given.map(({ id }) => id).join(', ')}.`
}

/** A run that a limit of the day refuses is the server's to answer: the client waits and comes back. */
async function requireQuota(run: Run): Promise<void> {
  const events = run[Symbol.asyncIterator]()
  await events.next().catch((error: unknown) => {
    if (isLegateError(error) && error.code === 'over_quota') throw error
  })
  await events.return?.()
}

/** The message may not fit the input of the agent. Other trouble is for the log of the server. */
function runError(error: unknown): AgUiEvent {
  const code = isLegateError(error) ? error.code : 'internal'
  return { type: 'RUN_ERROR', message: errorText(error), code }
}

/** Why nothing was started. Errors inside of the server tell nothing but that there was one. */
function errorText(error: unknown): string {
  if (error instanceof InputError)
    return `${error.message} An agent with \`input\` takes a message that is the JSON of it.`
  const isRefusal = error instanceof DeniedError || error instanceof ConflictError || error instanceof NotFoundError
  return isRefusal ? error.message : 'The stream broke off.'
}

function snapshot(data: TreeData, { conversationId }: Run, without: Id | null): AgUiEvent {
  return { type: 'MESSAGES_SNAPSHOT', messages: threadMessages(data, conversationId, without) }
}

function subagentsIn({ links }: TreeData): KnownSubagent[] {
  return links.map(({ id, agentName, taskId, hostTurnId }) => {
    return { runId: id, agent: agentName, taskId, hostRunId: hostTurnId }
  })
}

async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    if (error instanceof NotFoundError) return undefined
    throw error
  }
}

/** The abilities of an agent, as AG-UI says them. Who may not approve is not asked. */
export function capabilitiesOf({ name, description, subagents, output }: AgentInfo, approves: boolean): Json {
  return {
    identity: { name, description, provider: 'legate' },
    transport: { streaming: true },
    tools: { supported: true },
    output: { structuredOutput: output !== null },
    state: { snapshots: false, deltas: false },
    multiAgent: {
      supported: true,
      delegation: subagents.length > 0,
      subagents: subagents.map((one) => ({ name: one })),
    },
    reasoning: { supported: true, streaming: true },
    humanInTheLoop: { supported: approves, approvals: approves, interrupts: true, approveWithEdits: approves },
  }
}
