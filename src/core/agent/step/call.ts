// The one way to a model (I8): decides the request, streams the answer, shows it live, and returns it whole.
// `agent/step` calls `call` for answers and `callUntil` for plans; nothing else may call `Model.stream`.
//
// Stays true:
// - The model is permitted before it is called. "ask" and "deny" fail the call, and nothing has happened.
// - One answer has bounds (parts, characters, calls): a model that never ends is hung up on (I10).
// - A call settles when its signal aborts, even if the model ignores it.
// - A failure carries the text and the usage so far (`CallFailed.partial`), so that neither is lost (I7).
// - Hooks see a part before the next one is read.

import { DeniedError, ModelError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { JSON_LIMITS, type Json, type JsonLimits, parseJson, sizeOf, toJson, truncateUtf8 } from '../../base/json.ts'
import { after } from '../../base/maybe.ts'
import type { LiveNode } from '../../conversation/live-node.ts'
import type { CallPlace } from '../../engine/call-gate.ts'
import { modelRequest, type Request, secretRequest, withPayload } from '../../grant/request.ts'
import { NO_USAGE, type ToolCall, type Usage } from '../../graph/content.ts'
import type { LiveBody } from '../../graph/event.ts'
import type { Model, ModelRequest, Part } from '../../model/model.ts'
import { costOf } from '../../model/named/prices.ts'
import { partsOf, readModelUsage } from '../../model/stream-parts.ts'
import type { ApprovalRequest } from '../../rules/turn/approval-of.ts'
import type { StepAnswer } from '../../rules/turn/expand.ts'
import { type Permission, type PersonsWords, permit, refuseStart } from '../../tool/permit.ts'
import { emitAfterEvent, emitStreamEnd, emitStreamStart, wrapModel } from '../hooks/model-hooks.ts'
import type { NodeRun } from '../hooks/node-run.ts'
import { estimateUsage } from '../request/build-request.ts'
import { AnswerContent, AnswerSize, CALLS_LIMIT, PIECE, pieceEnd } from './answer-content.ts'
import type { AnswerWatch } from './answer-watch.ts'
import { dayLimitsOf, NO_DAYS, requireWithinDay } from './within-day.ts'

/** Carries the text before the call failed or was stopped, so that it is not lost. */
export class CallFailed extends Error {
  readonly partial: StepAnswer

  constructor(partial: StepAnswer, cause: unknown) {
    super('the model call failed', { cause })
    this.partial = partial
  }
}

/** A person must allow the model first: it was not called. */
export class AskFirst extends Error {
  readonly ask: ApprovalRequest

  constructor(ask: ApprovalRequest) {
    super('a person must be asked first')
    this.ask = ask
  }
}

/** The one way to a model (I8). Readers see the stream live; the caller gets the whole answer. */
export function call(
  run: NodeRun,
  model: Model,
  request: ModelRequest,
  /** Receives the text while it comes, and may stop the call. */
  watch: AnswerWatch | undefined,
): Promise<StepAnswer> {
  const heard = new AnswerStream(run, model, watch)
  run.home.live.lastCall = heard
  return heard.answerTo(request)
}

/** Calls a model, and hangs up as soon as the answer suffices. Readers do not see it live. */
export function callUntil(
  run: NodeRun,
  model: Model,
  request: ModelRequest,
  /** True when the text is complete: the rest is not waited for. */
  isEnough: (text: string) => boolean,
): Promise<StepAnswer> {
  const heard = new AnswerStream(run, model, undefined)
  heard.isEnough = (text) => isEnough(text) && heard.leaveOff(request)
  return heard.answerTo(request)
}

/** The answer of a call that was never made. */
export const NOT_ASKED: StepAnswer = {
  content: '',
  reasoning: '',
  calls: [],
  droppedCalls: 0,
  usage: NO_USAGE,
  usageFault: null,
  model: '',
  usd: null,
  cutBy: null,
  streamed: null,
}

type Refusal = Exclude<Permission, { verdict: 'allow' }>

/**
 * Decides a call of a model. Where a definition or a call names the model, and the config file names its key, the key is decided
 * as a secret too. Undefined when it may be called.
 */
function refuseModel(run: NodeRun, model: Model): Refusal | undefined {
  const request = modelRequest(model.id)
  const key = run.agent.isModelOfFile ? keyRequest(run, model) : undefined
  if (key === undefined) {
    const permission = permit(run, request, null)
    return permission.verdict === 'allow' ? undefined : permission
  }
  const { url, secret } = key
  const input = { model: model.id, ...(url === null ? {} : { url }), secrets: [secret.name] }
  return refuseStart(run, { requests: [request, secret], input, words: NO_WORDS })
}

const NO_WORDS: PersonsWords = { isAllowed: () => false, heard: () => undefined }

function keyRequest({ agent, home }: NodeRun, model: Model): { secret: Request; url: string | null } | undefined {
  // A model of the application has the key that its code gives it.
  if (home.agents.hasModelNamed(agent.inline?.model ?? '')) return undefined
  const key = model.namedKey?.() ?? null
  if (key === null) return undefined
  const { variable, url } = key
  return { secret: withPayload(secretRequest(variable), { model: model.id, url }), url }
}

function deniedModel(model: Model, reason: string): DeniedError {
  return new DeniedError('denied', `The model ${model.id} is not allowed here: ${reason}.`)
}

/** The most parts of one answer. Each may become an event; empty parts do not count. */
const MOST_PARTS = 1_000_000

/** After so many parts at once, other work gets a turn. */
const PARTS_PER_TURN = 1_000

function tooMuch({ id }: Model, what: string): ModelError {
  return new ModelError('model', `The answer of ${id} ${what}: it was left off.`)
}

export function silenceError(model: Pick<Model, 'id'>, hasSpoken: boolean): ModelError {
  const when = hasSpoken ? 'in the middle of its answer' : 'before the first word of its answer'
  return new ModelError('model', `${model.id} was silent for too long ${when}.`, { isRetryable: true })
}

export function cutStreamError(model: Pick<Model, 'id'>): ModelError {
  return new ModelError('model', `The stream of ${model.id} ended before the answer was complete.`, {
    isRetryable: true,
  })
}

/** Collects the parts of one answer. It does not wait for a model that ignores its signal. */
class AnswerStream {
  private readonly run: NodeRun
  private readonly model: Model
  private readonly watch: AnswerWatch | undefined
  private resolve: (answer: StepAnswer) => void = ignore
  private reject: (failure: CallFailed) => void = ignore
  private parts: AsyncIterator<Part> | undefined
  private controller: AbortController | undefined
  /** Whoever waits has the answer, or the failure: whatever else comes is not heard. */
  private isOver = false
  private isFinished = false
  /** It has passed the gate, and must leave it. */
  private isInside = false
  private live: LiveNode | undefined
  private readonly said = new AnswerContent()
  private chunks = 0
  private readonly size = new AnswerSize()
  /** How many parts have come, empty ones included. */
  private partCount = 0
  private usage: Usage = NO_USAGE
  private usageFault: string | null = null
  private cutBy: StepAnswer['cutBy'] = null
  private calls: ToolCall[] | undefined
  /** Decides whether an answer may end here. */
  isEnough: ((text: string) => boolean) | undefined
  /** Hooks that still work on the last part; the next part waits for them. */
  private held: Promise<void> | undefined

  constructor(run: NodeRun, model: Model, watch: AnswerWatch | undefined) {
    this.run = run
    this.model = model
    this.watch = watch
  }

  answerTo(request: ModelRequest): Promise<StepAnswer> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      this.read(request).catch(this.run.home.live.report)
    })
  }

  /** Reads the answer from the first part to the last. Nothing is awaited before the model is asked, where nothing has to be. */
  private async read(request: ModelRequest): Promise<void> {
    try {
      const begun = this.begin()
      if (begun !== undefined) await begun
      if (this.isOver) return
      const parts = this.open(request)
      for (;;) {
        const { done, value } = await parts.next()
        if (this.isOver) return
        if (done === true) break
        if (isLong(value)) await this.takePieces(value)
        else this.take(value)
        this.checkBounds()
        if (this.held !== undefined) await this.heldHooks()
        if (this.partCount % PARTS_PER_TURN === PARTS_PER_TURN - 1) await this.nextTurn()
        if (this.isOver) return
      }
      const ended = this.end()
      if (ended !== undefined) await ended
    } catch (error) {
      this.fail(error)
    }
  }

  /** Decides the call, and tells those who may stop it how. Waits for hooks and limits where there are some. */
  private begin(): void | Promise<void> {
    const { node, work, home, layers } = this.run
    const refused = refuseModel(this.run, this.model)
    if (refused?.verdict === 'deny') throw deniedModel(this.model, refused.reason)
    if (refused?.verdict === 'ask') throw new AskFirst(refused.ask)
    if (node.epoch > 1) this.emit({ type: 'reset', attempt: node.attempt })
    if (this.watch !== undefined) this.watch.onStop = (reason) => this.fail(reason)
    work.onStop = () => this.fail(work.stopCause === 'stalled' ? this.silence() : work.signal.reason)
    if (work.stopCause !== null) return work.onStop()
    work.noteModelCall()
    const hooked = this.run.hooks === null ? undefined : emitStreamStart(this.run, (body) => this.show(body))
    const days = home.agents.limitsDays ? dayLimitsOf(layers) : NO_DAYS
    return hooked === undefined && days === NO_DAYS && home.live.gate.isOpen ? undefined : this.enter(hooked, days)
  }

  private silence(): ModelError {
    return silenceError(this.model, this.partCount > 0)
  }

  /** Waits until hooks have spoken and limits let it begin. */
  private async enter(hooked: void | Promise<void>, days: typeof NO_DAYS): Promise<void> {
    const { ledger, live } = this.run.home
    await hooked
    if (this.isOver || (live.gate.isOpen && days === NO_DAYS)) return
    await requireWithinDay(ledger, days, 'call')
    await live.gate.enter(this.place())
    this.isInside = true
    if (this.isOver) this.leaveGate()
  }

  private place(): CallPlace {
    const { tree, node, conversation } = this.run
    const root = conversation.id === node.rootId ? conversation : tree.conversation(node.rootId)
    return { owner: root?.owner ?? null, model: this.model.id, rootId: node.rootId, nodeId: node.id, epoch: node.epoch }
  }

  private leaveGate(): void {
    if (!this.isInside) return
    this.isInside = false
    this.run.home.live.gate.leave(this.place()).catch(this.run.home.live.report)
  }

  private open(request: ModelRequest): AsyncIterator<Part> {
    const { hooks } = this.run
    const stoppable = this.stoppable()
    const isWrapped = hooks?.has('wrapModel') === true
    const ask = (asked: ModelRequest) => this.ask(asked, stoppable)
    const stream = isWrapped ? wrapModel(this.run, ask)(request) : this.ask(request, stoppable)
    this.parts = partsOf(stream, this.model.id)
    return this.parts
  }

  private ask(request: ModelRequest, stoppable: { readonly signal: AbortSignal }): AsyncIterable<Part> {
    const { node, work, home } = this.run
    const { trace, tape } = home.live
    if (trace === null && tape === null) return this.model.stream(request, stoppable)
    const stream = () => this.model.stream(request, stoppable)
    const answer = trace === null ? stream : () => trace.ask(this.run, { model: this.model.id, request }, stream)
    if (tape === null) return answer()
    const secrets = async () => (await this.model.secrets?.()) ?? []
    return tape.ask({ node, work, model: this.model.id, request, signal: stoppable.signal, answer, secrets })
  }

  /** A watched call may be stopped although its node continues, so it has a signal of its own. */
  private stoppable(): { readonly signal: AbortSignal } {
    if (this.watch === undefined) return this.run.work
    this.controller = new AbortController()
    return this.controller
  }

  /** Gives other work a turn. */
  private nextTurn(): Promise<void> {
    return new Promise((resolve) => this.run.home.ledger.scheduler.defer(resolve))
  }

  private async heldHooks(): Promise<void> {
    const { held } = this
    this.held = undefined
    await held
  }

  /** Reads one long text as many short ones, so that other work gets a turn in between. */
  private async takePieces(part: LongPart): Promise<void> {
    for (let from = 0; from < part.text.length && this.size.excess === null; ) {
      if (from > 0) await this.nextTurn()
      if (this.isOver) return
      const to = pieceEnd(part.text, from)
      this.take({ ...part, text: part.text.slice(from, to) })
      from = to
    }
  }

  /** Throws where there is more than an answer can be. */
  private checkBounds(): void {
    const { excess } = this.size
    if (excess !== null) throw tooMuch(this.model, excess)
    if (++this.partCount > MOST_PARTS) throw tooMuch(this.model, `has more than ${MOST_PARTS} parts`)
  }

  private end(): void | Promise<void> {
    if (!this.isFinished) throw cutStreamError(this.model)
    if (this.run.hooks?.has('onStreamEnd') !== true) return this.finish()
    return after(
      emitStreamEnd(this.run, this.answer(), (body) => this.show(body)),
      () => this.finish(),
    )
  }

  private finish(): void {
    if (this.isOver) return
    this.leave()
    this.resolve(this.answer())
  }

  /** Ends an answer that suffices. Its cost is estimated, because the provider does not report it any more. */
  leaveOff(request: ModelRequest): boolean {
    if (this.isOver) return true
    if (this.usage === NO_USAGE) this.usage = estimateUsage(request, this.said.text)
    leaveOff(this.parts).catch(() => undefined)
    this.finish()
    return true
  }

  private fail(error: unknown): void {
    if (this.isOver) return
    this.leave()
    this.controller?.abort(error)
    leaveOff(this.parts).catch(() => undefined)
    this.reject(new CallFailed(this.answer(), error))
  }

  private leave(): void {
    this.isOver = true
    this.run.work.onStop = null
    this.leaveGate()
    if (this.live !== undefined) this.run.home.live.feeds.endLive(this.run.node)
  }

  private take(part: Part): void {
    if ('text' in part) {
      if (part.text === '') return
      this.size.addDelta(part)
    }
    switch (part.type) {
      case 'text-delta':
        this.said.addText(part.text)
        this.chunks++
        this.emit(part)
        this.isEnough?.(part.text)
        return this.watch?.push(part.text)
      case 'text-end':
        this.size.add(part)
        return this.said.closeText(part.providerMetadata)
      case 'reasoning-delta':
        this.said.think(part.text)
        return this.emit(part)
      case 'tool-input-delta':
        return this.emit({ type: 'tool-input-delta', ...shortNames(part), text: part.text })
      case 'tool-call':
        this.size.add(part)
        return this.addCall(part)
      case 'block':
        this.size.add(part.block)
        return this.said.addBlock(part.block)
      case 'finish':
        this.run.home.live.trace?.heard(this.run.node.id, part)
        this.isFinished = part.reason !== 'error'
        if (part.reason === 'length' || part.reason === 'content-filter') this.cutBy = part.reason
        return this.readUsage(part.usage)
    }
  }

  private addCall(part: Extract<Part, { type: 'tool-call' }>): void {
    const call = readCall(part)
    this.size.addCall(call, typeof part.input === 'string')
    if (this.calls === undefined) this.calls = [call]
    else this.calls.push(call)
  }

  private readUsage(told: unknown): void {
    const { usage, fault } = readModelUsage(told)
    this.usage = usage
    if (fault !== null) this.usageFault = `${nameOf(this.model)} says it used ${fault}: this is not counted.`
  }

  private answer(): StepAnswer {
    const { text, content, reasoning } = this.said
    return {
      content,
      reasoning,
      calls: this.calls ?? NO_CALLS,
      droppedCalls: 0,
      usage: this.usage,
      usageFault: this.usageFault,
      model: nameOf(this.model),
      usd: this.cost(),
      cutBy: this.cutBy,
      streamed: this.chunks < 2 ? null : { chunks: this.chunks, bytes: sizeOf(text), sha256: sha256(text) },
    }
  }

  /** Must not throw, because nobody would notice. An unknown cost is null. */
  private cost(): number | null {
    if (this.run.turn.spend === null) return null
    try {
      return costOf(this.usage, this.model.id)
    } catch {
      return null
    }
  }

  /** A node can stream from its first delta until its end. */
  private emit(body: LiveBody): void {
    this.run.work.noteOutput()
    if (this.isEnough !== undefined) return
    this.show(body)
    if (this.run.hooks?.has('onEvent') !== true) return
    const hooked = emitAfterEvent(this.run, body, (own) => this.show(own))
    if (hooked === undefined) return
    const held = this.held
    this.held = held === undefined ? hooked : held.then(() => hooked)
    this.held.catch(() => undefined)
  }

  private show(body: LiveBody): void {
    const { home } = this.run
    this.live ??= home.live.feeds.beginLive(this.run)
    this.live.emit(body, home.ledger.clock)
  }
}

function ignore(): void {}

/** Must not throw either. */
function nameOf(model: Model): string {
  try {
    return model.id
  } catch {
    return 'unknown'
  }
}

/** A custom model may do anything here. */
async function leaveOff(parts: AsyncIterator<Part> | undefined): Promise<void> {
  await parts?.return?.()
}

const NO_CALLS: readonly ToolCall[] = []

/** Keeps arguments that are not JSON as a text, marked: the task tells the model what is wrong. */
export function readCall(part: Extract<Part, { type: 'tool-call' }>): ToolCall {
  const { input, providerMetadata } = part
  const { callId, tool } = shortNames(part)
  const call = readInput(callId, tool, input)
  return providerMetadata === undefined ? call : { ...call, providerMetadata }
}

/** Shortens the id and the tool of a call. No tool has a longer name; ids that differ stay different. */
function shortNames({ id, name }: { readonly id: string; readonly name: string }): CallNames {
  return { callId: shortened(String(id), LONGEST_ID), tool: shortened(String(name), LONGEST_NAME) }
}

interface CallNames {
  readonly callId: string
  readonly tool: string
}

const LONGEST_NAME = 256
/** Some servers keep more in it than an id. */
const LONGEST_ID = 4_096
const SHOWN = 100
/** How much of invalid arguments the model sees. */
const SHOWN_BYTES = 10_000

function shortened(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, SHOWN).toWellFormed()}…${sha256(text)}`
}

const LIMITS: Required<JsonLimits> = { ...JSON_LIMITS, maxBytes: CALLS_LIMIT }

function readInput(id: string, name: string, input: Json): ToolCall {
  if (typeof input !== 'string') return readValue(id, name, input)
  if (input.trim() === '') return { id, name, input: {} }
  const parsed = parseJson(input, LIMITS)
  if (parsed.ok) return { id, name, input: parsed.value }
  return { id, name, input: truncateUtf8(input, SHOWN_BYTES), invalid: parsed.error }
}

/** A custom model may return anything; JSON that cannot be stored is refused. */
function readValue(id: string, name: string, input: Exclude<Json, string>): ToolCall {
  const json = toJson(input, LIMITS)
  return json.ok ? { id, name, input: json.value } : { id, name, input: null, invalid: json.error }
}

type LongPart = Extract<Part, { readonly text: string }>

/** True for a part that must be read piece by piece, so that other work gets a turn in between. */
function isLong(part: Part): part is LongPart {
  return 'text' in part && typeof part.text === 'string' && part.text.length > PIECE
}
