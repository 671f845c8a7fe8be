import type { AnyAgent } from '../../core/agent/definition/agent.ts'
import { cutStreamError } from '../../core/agent/step/call.ts'
import { DefinitionError, ModelError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import type { Work } from '../../core/engine/engine.ts'
import type { Conversation, Id, Node } from '../../core/graph/rows.ts'
import type { Model, Part } from '../../core/model/model.ts'
import { checkOptions, type RuntimeOptions, warningLogger } from '../../core/runtime/options.ts'
import { createRuntime, type Runtime } from '../../core/runtime/runtime.ts'
import type { LocalStore } from '../../core/store/store.ts'
import type { CurrentCall } from '../../core/tool/current.ts'
import type { OpenSource } from '../../core/tool/source.ts'
import type { CodeResult, Tape, TapedModelCall, TapedNode } from '../../core/tool/tape.ts'
import { readPart, withRunIds } from './answer-parts.ts'
import { CallKeys, numbered, storeHere } from './call-keys.ts'
import { Cleaner } from './clean.ts'
import { differences, differenceText } from './differences.ts'
import { IdTokens, plainRequest } from './packed-request.ts'
import { PlayingOrder, type RecordedEntry, type RecordedScript, recordedScript } from './recorded-script.ts'
import {
  type CodeLine,
  type RecordedPart,
  readRecording,
  recordedSource,
  type StartedInside,
} from './recording-file.ts'

export interface PlayerParts {
  readonly file: string
  readonly script: RecordedScript
  readonly store: LocalStore
  /** Agents by name. */
  readonly agents: ReadonlyMap<string, object>
  /** Receives lines that were recorded and never asked for. */
  report(message: string): void
}

/** Plays recorded answers of models and results of code. Neither is called. */
class Player implements Tape {
  readonly isPlayed = true
  private readonly parts: PlayerParts
  private readonly ids: IdTokens
  private readonly keys: CallKeys
  private readonly order: PlayingOrder
  private readonly entries: ReadonlyMap<string, RecordedEntry>
  private readonly roots: Map<Id, string> = new Map()
  private readonly asked: Map<Id, RecordedEntry[]> = new Map()
  /** The first deviation from the recording: nothing after it can be relied on. */
  private broken: ModelError | undefined
  private isChecked = false

  constructor(parts: PlayerParts) {
    this.parts = parts
    const { script, store } = parts
    this.ids = new IdTokens(store)
    const cleaner = new Cleaner(this.ids)
    const nameOf = (root: Conversation) => this.nameOf(root)
    this.keys = new CallKeys({ store, nameOf, clean: (item) => cleaner.answer(item) })
    this.order = new PlayingOrder(script.entries)
    this.entries = new Map(script.entries.map((entry) => [entry.at, entry]))
    for (const { line } of script.entries) {
      for (const [token, id] of Object.entries(line.ids ?? {})) this.ids.recall(token, id)
    }
  }

  async *ask({ node, request, signal }: TapedModelCall): AsyncGenerator<Part> {
    const plain = plainRequest(request, (value) => value)
    const entry = this.take(node, (found) =>
      this.check(found, 'request', [found.request as unknown as Json, plain as never]),
    )
    const { line } = entry
    if (!('answer' in line)) throw this.fail(entry.at, 'a model is asked where a tool was called when it was recorded.')
    await aMoment()
    for (const said of line.answer) {
      if (typeof said === 'object' && 'after' in said) await this.order.after(said.after, signal)
      if (typeof said === 'object' && 'finish' in said) await this.order.turnOf(entry, signal)
      const part = readPart(said, this.ids)
      if (part !== undefined) yield part
    }
    if (line.stopped === true) throw await untilAborted(signal)
    await this.order.turnOf(entry, signal)
    if (line.error !== undefined) throw recordedError(line.error)
    if (!line.answer.some(isFinish))
      throw recordedError({ message: cutStreamError({ id: line.model }).message, retryable: true })
  }

  async run(running: TapedNode): Promise<CodeResult> {
    try {
      return await this.play(running)
    } catch (error) {
      const { stopCause } = running.work
      if (stopCause === 'cancel' || stopCause === 'shutdown' || stopCause === 'lost') {
        return { stopped: stopCause === 'cancel' ? 'cancel' : 'lost' }
      }
      return { error: `Error: ${error instanceof Error ? error.message : String(error)}` }
    }
  }

  async source(name: string): Promise<OpenSource> {
    const next = this.parts.script.entries.find(({ isOver }) => !isOver)?.number ?? Number.POSITIVE_INFINITY
    const lines = this.parts.script.sources.filter(({ line }) => line.source === name)
    const found = lines.findLast(({ number }) => number < next) ?? lines[0]
    if (found === undefined) throw this.fail(name, 'this source of tools was not started when it was recorded.')
    return recordedSource(withRunIds(found.line, this.ids))
  }

  left(nodeId: Id): void {
    this.keys.left(nodeId)
    for (const entry of this.asked.get(nodeId) ?? []) this.order.over(entry)
    this.asked.delete(nodeId)
  }

  close(): void {
    const wrong = this.isChecked ? undefined : this.wrong()
    if (wrong !== undefined) this.parts.report(wrong)
  }

  /** Throws if anything deviated from the recording, or a recorded line was not asked for. */
  assertComplete(): void {
    this.isChecked = true
    const wrong = this.wrong()
    if (wrong !== undefined) throw this.broken ?? new ModelError('model', wrong)
  }

  private wrong(): string | undefined {
    if (this.broken !== undefined) return this.broken.message
    const left = this.parts.script.entries.filter(({ isAsked, isOpenEnded }) => !isAsked && !isOpenEnded)
    if (left.length === 0) return undefined
    const shownOnes = left.slice(0, MOST_SHOWN).map(({ at, number }) => `  ${at} (line ${number})`)
    const more = left.length > MOST_SHOWN ? [`  and ${left.length - MOST_SHOWN} more`] : []
    const heading = `${left.length} of ${this.entries.size} recorded answers of ${this.parts.file} were not asked for:`
    return [heading, ...shownOnes, ...more].join('\n')
  }

  private async play(running: TapedNode): Promise<CodeResult> {
    const { node, name, input, current, work } = running
    const now = { tool: name, input }
    const entry = this.take(node, ({ line }) => {
      if ('result' in line) this.check({ line, at: line.at }, 'call', [{ tool: line.tool, input: line.input }, now])
    })
    const { line } = entry
    if (!('result' in line)) throw this.fail(entry.at, 'a tool is called where a model was asked when it was recorded.')
    this.bindOwn(node, line)
    for (const { message, data } of withRunIds(line.progress ?? [], this.ids)) {
      current?.inside((context) => context.progress(message, data))
    }
    const find = (agent: string) => running.agentNamed?.(agent) ?? this.parts.agents.get(agent)
    if (current !== null) await startAgain(withRunIds(line.children ?? [], this.ids), current, find)
    await aMoment()
    const { result } = line
    const signal = stopSignal(work)
    if ('stopped' in result && result.stopped === 'cancel') throw await untilAborted(signal)
    await this.order.turnOf(entry, signal)
    return withRunIds(result, this.ids)
  }

  private bindOwn({ id, turnId, conversationId }: Node, { own }: CodeLine): void {
    for (const [at, actual] of [id, turnId, conversationId].entries()) {
      const token = own?.[at] ?? ''
      if (token !== '') this.ids.bind(token, actual)
    }
  }

  /** Takes the recorded line of a node's next call, if it is the same call. */
  private take(node: Node, check: (entry: RecordedEntry) => void): RecordedEntry {
    const at = this.keys.next(node)
    if (this.broken !== undefined) throw this.broken
    const entry = this.entries.get(at)
    if (entry === undefined) {
      throw this.fail(at, 'nothing was recorded for it: this run asks for more than the one that was recorded.')
    }
    const before = this.asked.get(node.id) ?? []
    for (const earlier of before) this.order.over(earlier)
    this.asked.set(node.id, [...before, entry])
    entry.isAsked = true
    check(entry)
    return entry
  }

  private check(
    { at, line }: Pick<RecordedEntry, 'at' | 'line'>,
    what: string,
    [recorded, now]: readonly [Json, Json],
  ): void {
    const found = differences(recorded, now, (token, id) => this.isSame(token, id))
    if (found.length === 0) return
    const number = this.entries.get(line.at)?.number
    throw this.fail(at, `the ${what} is not the one that was recorded (line ${number}):\n${differenceText(found)}`)
  }

  private isSame(token: string, id: Id): boolean {
    const known = this.ids.idOf(token)
    if (known === undefined) this.ids.bind(token, id)
    return known === undefined || known === id
  }

  private fail(at: string, what: string): ModelError {
    const message = `Replay of ${this.parts.file}, at ${at}: ${what}\nIf the change is meant, record it again.`
    this.broken ??= new ModelError('model', message)
    return this.broken
  }

  /**
   * Finds the recorded run of the same agent and input; otherwise the next one of that agent, so that the difference is
   * shown.
   */
  private nameOf({ id, rootId, agent }: Conversation): string {
    const known = this.roots.get(rootId)
    if (known !== undefined) return known
    const { script, store } = this.parts
    const used = new Set(this.roots.values())
    const free = script.runs.filter((one) => one.agent === agent.name && !used.has(one.run))
    const input = store.turnsOf(id, { last: 0, limit: 1 })[0]?.input ?? null
    const same = free.find((one) => differences(one.input, input, () => true).length === 0) ?? free[0]
    const run = same?.run ?? numbered(agent.name, used.size + script.runs.length + 1)
    this.roots.set(rootId, run)
    this.order.expect(run)
    return run
  }
}

const MOST_SHOWN = 10

function isFinish(said: RecordedPart): boolean {
  return typeof said === 'object' && 'finish' in said
}

/** Lets a recorded answer take at least as long as code that waits for nobody. */
function aMoment(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Restores a recorded error; its retry happens at once. */
function recordedError({ message, retryable }: { readonly message: string; readonly retryable: boolean }): ModelError {
  const error = new ModelError('model', message, { isRetryable: retryable })
  return Object.assign(error, { retryAfterMs: 0 })
}

/** Aborts when the call is stopped, but not at its time limit: the recording says how long it took. */
function stopSignal(work: Work): AbortSignal {
  const controller = new AbortController()
  const stop = () => {
    if (work.stopCause !== 'timeout') controller.abort(work.signal.reason)
  }
  work.signal.addEventListener('abort', stop, { once: true })
  if (work.signal.aborted) stop()
  return controller.signal
}

/** Finds an agent by name. */
type FindAgent = (name: string) => object | undefined

/** Starts the agents that recorded code had started, in its place, and waits for those it waited for. */
async function startAgain(children: readonly StartedInside[], current: CurrentCall, find: FindAgent): Promise<void> {
  const outcomes: Promise<unknown>[] = []
  for (const child of children) {
    await Promise.all((child.after ?? []).map((place) => outcomes[place]))
    outcomes.push(start(child, current, find))
  }
  await Promise.all(outcomes)
}

async function start(child: StartedInside, current: CurrentCall, find: FindAgent): Promise<void> {
  const agent = find(child.agent)
  if (agent === undefined) {
    const message = `The recorded call has started the agent "${child.agent}". Its code does not run in a replay, so name the agent: replay(file, { agents: [...] }).`
    throw new DefinitionError('definition', message)
  }
  if (child.mode === 'called') await current.start(agent, child.input).outcome
  else await current.spawn(agent, child.input, { wake: child.wake ?? 'auto', sessionId: null })
}

/** How long a call that was stopped in the recording waits to be stopped again. */
const LONGEST_MS = 10_000

/** Resolves with the reason of the stop, or reports that nobody stops it now. */
function untilAborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve(new Error('This call was stopped before its end when it was recorded, and nobody stops it now.'))
    }, LONGEST_MS)
    const stop = () => {
      clearTimeout(timer)
      resolve(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}

export interface Replay extends Runtime {
  /** Throws if anything deviated from the recording, with the difference, or a recorded line was not asked for. */
  assertComplete(): void
}

/**
 * Makes a runtime in which models and tools repeat what a file recorded. Neither is called, and nothing leaves the
 * process. `options` are those of the runtime; `agents` must include agents that a tool starts from inside.
 */
export function replay(file: string, options: RuntimeOptions = {}): Replay {
  checkOptions(options)
  const script = recordedScript(readRecording(file))
  const runtime = createRuntime({ model: standIn(script), ...options })
  const agents = new Map((options.agents ?? []).map((agent: AnyAgent) => [agent.name, agent]))
  const logger = options.logger ?? warningLogger
  const store = storeHere(runtime, 'replay(file, options)')
  const player = new Player({ file, script, store, agents, report: (message) => logger.error(message) })
  runtime.useTape(player)
  return Object.assign(runtime, { assertComplete: () => player.assertComplete() })
}

/** Stands in for the model of agents that name none, so that none is looked up. */
function standIn({ entries }: RecordedScript): Model {
  const [first] = entries.flatMap(({ line }) => ('model' in line ? [line.model] : []))
  return {
    id: first ?? 'recorded/model',
    stream: () => {
      throw new ModelError('model', 'A model of a recording can only be replayed.')
    },
  }
}
