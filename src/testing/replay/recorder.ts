import { silenceError } from '../../core/agent/step/call.ts'
import { within } from '../../core/base/abort.ts'
import { DefinitionError, messageOf } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import { code, readOptions } from '../../core/base/options.ts'
import type { Conversation, Id, Node } from '../../core/graph/rows.ts'
import type { Part } from '../../core/model/model.ts'
import { retryDelay } from '../../core/model/retry.ts'
import { Runtime } from '../../core/runtime/runtime.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { TOO_LATE } from '../../core/tool/invoke.ts'
import type { OpenSource } from '../../core/tool/source.ts'
import type { CodeResult, Tape, TapedCode, TapedModelCall, TapedNode } from '../../core/tool/tape.ts'
import { type ReceivedPart, writeAnswer } from './answer-parts.ts'
import { addressOf, CallKeys, numbered, storeHere } from './call-keys.ts'
import { Cleaner, type Redact } from './clean.ts'
import { type Base, IdTokens, packRequest, plainRequest, unpackRequest } from './packed-request.ts'
import {
  type AnswerLine,
  type CodeLine,
  type Line,
  lastAgent,
  type ReadRecording,
  RecordingWriter,
  readIfThere,
  type StartedInside,
  sourceLine,
} from './recording-file.ts'

/** Records the answers of models and the results of code, each after it is complete and before it is used. */
class Recorder implements Tape {
  readonly isPlayed = false
  private readonly store: LocalStore
  private readonly writer: RecordingWriter
  private readonly ids: IdTokens
  private readonly cleaner: Cleaner
  private readonly keys: CallKeys
  private readonly roots: Map<Id, string> = new Map()
  private readonly bases: Map<string, Base> = new Map()
  private readonly sources: Map<string, string> = new Map()
  private readonly written: Set<string> = new Set()
  /** Full requests of an earlier process, by key. */
  private readonly earlier: Map<string, Base['request']> = new Map()
  /** Calls whose secrets are not known yet. */
  private readonly beginning: Set<Promise<void>> = new Set()
  /** The key of the last line. */
  private last: string | null = null

  constructor({
    store,
    writer,
    redact,
    known,
  }: {
    readonly store: LocalStore
    readonly writer: RecordingWriter
    readonly redact: Redact | undefined
    /** The contents of an existing file. */
    readonly known: ReadRecording | null
  }) {
    this.store = store
    this.writer = writer
    this.ids = new IdTokens(store)
    this.cleaner = new Cleaner(this.ids, redact)
    this.keys = new CallKeys(this.places)
    for (const { line } of known?.lines ?? []) this.remember(line)
  }

  ask(asking: TapedModelCall): AsyncIterable<Part> {
    return { [Symbol.asyncIterator]: () => this.listen(asking) }
  }

  async run({ node, name, input }: TapedNode, code: TapedCode): Promise<CodeResult> {
    const at = this.keyOf(node)
    const progress: { message: string; data: Json }[] = []
    const given = await code((message, data) => progress.push({ message, data }))
    if ('stopped' in given && given.stopped === 'lost') return given
    const result = this.cleaner.answer(given as unknown as Json) as unknown as CodeResult
    const own = this.ownTokens(node, given)
    const children = startedInside(this.store, node, (value) => this.cleaner.answer(value))
    this.write({
      at,
      tool: name,
      input: this.cleaner.request(input),
      ...(progress.length === 0 ? {} : { progress: this.cleaner.answer(progress) as unknown as typeof progress }),
      ...(children.length === 0 ? {} : { children }),
      result,
      ...(own === undefined ? {} : { own }),
    })
    return given
  }

  async source(name: string, start: () => Promise<OpenSource>): Promise<OpenSource> {
    const opened = await start().catch((error: unknown) => ({ failed: messageOf(error), error }))
    if (!('failed' in opened)) this.cleaner.learn(opened.secretValues ?? [])
    const line = this.cleaner.answer(sourceLine(name, opened) as unknown as Json)
    const text = JSON.stringify(line)
    if (this.sources.get(name) !== text) this.writer.write(line as unknown as Line)
    this.sources.set(name, text)
    if ('failed' in opened) throw opened.error
    return opened
  }

  left(nodeId: Id): void {
    this.keys.left(nodeId)
  }

  async close(): Promise<void> {
    await Promise.all(this.beginning)
    this.writer.close()
  }

  private get places() {
    return {
      store: this.store,
      nameOf: (root: Conversation) => this.nameOf(root),
      clean: (item: Json) => this.cleaner.answer(item),
    }
  }

  /** Finds ids of the node that its own code knows and may mention. */
  private ownTokens(node: Node, given: CodeResult): readonly string[] | undefined {
    const said = JSON.stringify(given)
    const own = [node.id, node.turnId, node.conversationId]
    return own.some((id) => said.includes(id)) ? own.map((id) => this.ids.tokenOf(id) ?? '') : undefined
  }

  private keyOf(node: Node): string {
    const key = this.keys.next(node)
    this.noteUnheard(node)
    return key
  }

  /** Passes on each part as it arrives; writes the line when no more will come. */
  private listen(asking: TapedModelCall): AsyncIterator<Part> {
    const { node, model, signal, work } = asking
    const heard: ReceivedPart[] = []
    let at = ''
    let seen: string | null = null
    let isWritten = false
    let parts: AsyncIterator<Part> | undefined
    const write = (failure: Pick<AnswerLine, 'error' | 'stopped'>) => {
      if (isWritten || work.stopCause === 'shutdown' || work.stopCause === 'lost') return
      isWritten = true
      this.writeAnswer(asking, at, heard, failure)
    }
    const stopped = () =>
      write(
        work.stopCause === 'stalled'
          ? { error: { message: silenceError({ id: model }, heard.length > 0).message, retryable: true } }
          : { stopped: true },
      )
    const over = () => signal.removeEventListener('abort', stopped)
    // Nothing is written before the secrets are known.
    const begun = this.begin(asking, () => {
      at = this.keyOf(node)
      seen = this.last
      signal.addEventListener('abort', stopped, { once: true })
      if (signal.aborted) stopped()
    })
    return {
      next: async () => {
        await begun
        try {
          parts ??= asking.answer()[Symbol.asyncIterator]()
          const result = await parts.next()
          if (result.done === true) {
            over()
            write({})
          } else {
            if (this.last !== seen && this.last !== null) heard.push({ after: this.last })
            seen = this.last
            heard.push(result.value)
          }
          return result
        } catch (error) {
          over()
          const retryable = retryDelay(error, 2) !== undefined
          write({ error: { message: this.cleaner.text(messageOf(error)), retryable } })
          throw error
        }
      },
      return: async () => {
        await begun
        over()
        write(signal.aborted ? { stopped: true } : {})
        await parts?.return?.()
        return { done: true, value: undefined }
      },
    }
  }

  private begin(asking: TapedModelCall, start: () => void): Promise<void> {
    const begun = within(asking.secrets(), SECRETS_MS)
      .catch(() => [])
      .then((values) => {
        this.cleaner.learn(values ?? [])
        start()
      })
      .finally(() => this.beginning.delete(begun))
    this.beginning.add(begun)
    return begun
  }

  private writeAnswer(
    { model, request }: TapedModelCall,
    at: string,
    heard: readonly ReceivedPart[],
    failure: Pick<AnswerLine, 'error' | 'stopped'>,
  ): void {
    const plain = plainRequest(request, (value) => this.cleaner.request(value))
    const base = this.bases.get(turnOf(at)) ?? this.bases.get(lastAgent(at))
    const packed = packRequest(plain, base)
    this.keepBase({ at, request: plain })
    this.write({ at, model, request: packed, answer: writeAnswer(heard, this.cleaner), ...failure })
  }

  private keepBase(base: Base): void {
    this.bases.set(turnOf(base.at), base)
    this.bases.set(lastAgent(base.at), base)
  }

  /** Records code that was lost with its process or came too late to begin: the end of its node is its result. */
  private noteUnheard({ turnId }: Node): void {
    for (const node of this.store.nodesOf(turnId)) {
      const result = unheardEnd(node)
      const { call } = node.input
      if (result === undefined || call === undefined) continue
      const at = addressOf(this.places, node)
      if (!this.written.has(at)) this.write({ at, tool: call.name, input: this.cleaner.request(call.input), result })
    }
  }

  private write(line: AnswerLine | CodeLine): void {
    const ids = this.ids.takeFresh()
    this.writer.write(ids === undefined ? line : { ...line, ids })
    this.written.add(line.at)
    this.last = line.at
  }

  private nameOf({ id, rootId, agent }: Conversation): string {
    const known = this.roots.get(rootId)
    if (known !== undefined) return known
    const [turn] = this.store.turnsOf(id, { last: 0, limit: 1 })
    const input = this.cleaner.request(turn?.input ?? null)
    const run = numbered(
      agent.name,
      [...this.roots.values()].filter((name) => lastAgent(name) === agent.name).length + 1,
    )
    this.roots.set(rootId, run)
    this.writer.write({ run, agent: agent.name, input, id: rootId })
    return run
  }

  /** Continues where an earlier process stopped. */
  private remember(line: Line): void {
    if ('run' in line) {
      this.roots.set(line.id, line.run)
      return
    }
    if ('source' in line) {
      this.sources.set(line.source, JSON.stringify(line))
      return
    }
    for (const [token, id] of Object.entries(line.ids ?? {})) this.ids.bind(token, id)
    this.written.add(line.at)
    this.last = line.at
    if (!('request' in line)) return
    const { after } = line.request
    const request = unpackRequest(line.request, after === undefined ? undefined : this.earlier.get(after))
    this.earlier.set(line.at, request)
    this.keepBase({ at: line.at, request })
  }
}

/** How long a model may take to name its secrets. */
const SECRETS_MS = 1_000

function unheardEnd({ state, input, output, failure }: Node): CodeResult | undefined {
  if (input.delegates === true) return undefined
  if (state === 'uncertain') return { interrupted: failure?.message ?? '' }
  return output.content === TOO_LATE ? { error: TOO_LATE } : undefined
}

/** The address of a turn: that of one of its nodes without the place. */
function turnOf(at: string): string {
  return at.slice(0, at.lastIndexOf('.'))
}

/** Lists the agents that a node's code started, from its rows and events. */
function startedInside(store: LocalStore, node: Node, clean: (input: Json) => Json): StartedInside[] {
  const links = store.linksOf(node.turnId).filter(({ taskId, attempt }) => taskId === node.id && attempt === 1)
  if (links.length === 0) return []
  const story = childTimeline(store, node)
  return links.map((link, at) => {
    const before = story.slice(0, story.indexOf(`delegation-start ${link.id}`))
    const ended = links
      .slice(0, at)
      .flatMap(({ id }, place) => (before.includes(`delegation-end ${id}`) ? [place] : []))
    return {
      agent: link.agentName,
      input: clean(store.turn(link.id)?.input ?? null),
      mode: link.mode === 'background' ? 'background' : 'called',
      ...(link.wake === null ? {} : { wake: link.wake }),
      ...(ended.length === 0 ? {} : { after: ended }),
    }
  })
}

const PAGE = 1_000

/** Lists when children of a node began and ended, in order. */
function childTimeline(store: LocalStore, { id, turnId, rootId }: Node): string[] {
  const story: string[] = []
  for (let after: number | undefined = store.turn(turnId)?.afterSeq ?? 0; after !== undefined; ) {
    const page = store.events(rootId, after, PAGE)
    for (const { nodeId, body } of page) {
      if (nodeId !== id || (body.type !== 'delegation-start' && body.type !== 'delegation-end')) continue
      story.push(`${body.type} ${body.childRunId satisfies Id}`)
    }
    after = page.length < PAGE ? undefined : page.at(-1)?.seq
  }
  return story
}

export interface RecordOptions {
  /** Removes further text from the recording, beside what is always removed. */
  readonly redact?: Redact
}

/**
 * Records every model answer and every tool result of this runtime's runs in a file, for `replay`. A file whose runs
 * are in the runtime's store is continued, as after a crash; any other recording is overwritten with the first answer.
 * Returns the runtime; closing it closes the file.
 */
export function record(runtime: Runtime, file: string, options: RecordOptions = {}): Runtime {
  if (!(runtime instanceof Runtime)) {
    throw new DefinitionError('definition', 'record(runtime, file): make the runtime with createRuntime().')
  }
  readOptions('record(runtime, file, options)', options, { redact: code })
  const store = storeHere(runtime, 'record(runtime, file)')
  const known = readIfThere(file)
  const isOurs = known?.lines.some(({ line }) => 'run' in line && store.conversation(line.id) !== undefined) === true
  const writer = new RecordingWriter(file, isOurs ? (known?.size ?? 0) : null)
  runtime.useTape(new Recorder({ store, writer, redact: options.redact, known: isOurs ? known : NONE }))
  return runtime
}

const NONE: ReadRecording | null = null
