// One task of a remote agent, from the first message to its end, over any number of processes.
//
// Must stay true:
//   - The row says what is sent before it is sent, and the remote ids as soon as they are known: a restart goes on with the
//     same remote task.
//   - A cancelled run cancels the remote task. A process that only ends does not.

import type { ReplyContext } from '../../../../doors/background.ts'
import { isLegateError, type Json, ToolError } from '../../../../index.ts'
import { dataParts, textIn } from '../read.ts'
import { type A2aMessage, type A2aPart, type A2aStatus, type A2aTask, isTerminal } from '../wire.ts'
import { type CheckedCard, checkCard, pinnedHash, previousContext } from './card.ts'
import { callRemote, fetchCard, RemoteFlood, type RemotePlace, RemoteRefusal, streamRemote } from './connection.ts'
import { RemoteNonsense, type RemoteUpdate, readMessage, readTask, readUpdate } from './read.ts'
import { type RemoteQuestion, type RemoteState, readState, stateJson } from './state.ts'

/** A remote agent, and the answer that is being given through it. */
export interface RemoteParts {
  readonly name: string
  /** The hash that the card must have; null: that of the first use. */
  readonly pin: string | null
  readonly place: RemotePlace
  readonly context: ReplyContext
}

/** The parts that the remote agent answered with. */
export type RemoteAnswer = readonly A2aPart[]

const POLL_MS = 1_000
const CANCEL_MS = 3_000
const MOST_KEPT = 25_000

export class RemoteTask {
  private readonly parts: RemoteParts
  private state: RemoteState
  private card: CheckedCard | undefined
  /** The message of a status that was shown last: its id, or its words where it has none. */
  private shown = ''
  private readonly words = new ShownWords()
  /** Questions of an earlier try that were asked again so far. */
  private replayed = 0

  constructor(parts: RemoteParts) {
    this.parts = parts
    this.state = readState(parts.context.kept)
  }

  /** Yields the words of the remote agent while it works, and returns its answer. */
  async *run(message: A2aPart): AsyncGenerator<string, RemoteAnswer, void> {
    try {
      await this.openCard()
      if (this.state.taskId === null && this.state.message === null) await this.begin(message)
      if (this.state.message !== null) return messageParts(this.state.message)
      return yield* this.toEnd()
    } catch (error) {
      if (isCancelled(this.parts.context.signal)) await this.cancelRemote()
      throw error
    }
  }

  /** Reads the card, and asks a person where it is not the one that was used before. */
  private async openCard(): Promise<void> {
    const { place, pin, context, name } = this.parts
    this.card = checkCard(await fetchCard(place), place.url)
    const known = pin ?? this.state.card ?? pinnedHash(context)
    const { hash } = this.card
    if (known === null || known === hash) return this.keep({ card: hash })
    const text = `The card of ${name} at ${new URL(place.url).host} has changed since it was used here: it was ${known.slice(0, 12)}, it is ${hash.slice(0, 12)}. Go on with it? Answer yes or no.`
    if (!isYes(await this.ask(text)))
      throw new ToolError('tool', `The card of "${name}" has changed, and nobody allowed it.`)
    await this.note(this.replayed - 1, 'sent')
    await this.keep({ card: hash })
  }

  private keep(change: Partial<RemoteState>): Promise<void> {
    this.state = { ...this.state, ...change }
    return this.parts.context.keep(stateJson(this.state))
  }

  /**
   * Asks a person. Questions of an earlier try come again first, in their order, with the answers that they got: those that were
   * sent, and those that the remote agent does not ask any more.
   */
  private async ask(text: string): Promise<string | null> {
    const { context } = this.parts
    for (const known of this.state.asked.slice(this.replayed)) {
      if (known.state !== 'sent' && known.text === text) break
      this.replayed++
      await context.ask(known.text)
    }
    const isKnown = this.replayed < this.state.asked.length
    if (!isKnown) await this.keep({ asked: [...this.state.asked, { text, state: 'open' }] })
    this.replayed++
    return context.ask(text)
  }

  /** Notes what became of the answers from a place on. */
  private note(from: number, state: RemoteQuestion['state']): Promise<void> {
    const { replayed } = this
    return this.keep({
      asked: this.state.asked.map((one, at) => (at >= from && at < replayed ? { ...one, state } : one)),
    })
  }

  private get messageId(): string {
    return `legate-${this.parts.context.node.id}`
  }

  private async begin(part: A2aPart): Promise<void> {
    if (this.state.isSending && this.card?.isIdempotent !== true && (await this.findSent())) return
    await this.keep({ isSending: true })
    const contextId = previousContext(this.parts.context)
    const answer = await this.call('SendMessage', {
      message: { ...this.messageOf([part], this.messageId), ...(contextId === null ? {} : { contextId }) },
      configuration: { returnImmediately: true },
    })
    const { task, message } = Object(answer) as { readonly task?: unknown; readonly message?: unknown }
    if (task !== undefined) return this.keepTask(readTask(task, null))
    if (message === undefined)
      throw new ToolError('tool', 'The remote agent answered with neither a task nor a message.')
    const kept = { ...this.state, message: readMessage(message) as unknown as Json }
    // A longer one is not kept: after a crash it is looked up, or asked for again.
    if (JSON.stringify(kept).length < MOST_KEPT) await this.keep(kept)
    else this.state = kept
  }

  private keepTask({ id, contextId }: A2aTask): Promise<void> {
    return this.keep({ taskId: id, contextId })
  }

  /** The process died while it sent the message: did the remote agent get it? Throws where that cannot be known. */
  private async findSent(): Promise<boolean> {
    const unknown = 'The process ended while it sent the message: nobody knows whether the remote agent has it.'
    const page = await this.call('ListTasks', { pageSize: 100, historyLength: 10 }).catch((error: unknown) => {
      throw error instanceof RemoteRefusal ? new ToolError('tool', unknown) : error
    })
    const { tasks: listed } = Object(page) as { readonly tasks?: unknown }
    const tasks = Array.isArray(listed) ? listed.map((task) => readTask(task, null)) : []
    const found = tasks.find(({ history = [] }) => history.some(({ messageId }) => messageId === this.messageId))
    if (found !== undefined) await this.keepTask(found)
    const tells = tasks.length === 0 || tasks.some(({ history = [] }) => history.length > 0)
    if (found === undefined && !tells) throw new ToolError('tool', unknown)
    return found !== undefined
  }

  private messageOf(parts: readonly A2aPart[], messageId: string): { readonly [key: string]: Json } {
    const { traceparent } = this.parts.context
    return {
      messageId,
      role: 'ROLE_USER',
      parts: parts.map((part) => ({ ...part })),
      ...(traceparent === null ? {} : { metadata: { traceparent } }),
    }
  }

  private call(method: string, params: Json): Promise<Json> {
    return callRemote(this.rpcPlace(), method, params)
  }

  private rpcPlace(): RemotePlace {
    const { place } = this.parts
    return { ...place, url: this.card?.url ?? place.url }
  }

  /** Follows the task, and puts its questions to a person, until it is over. */
  private async *toEnd(): AsyncGenerator<string, RemoteAnswer, void> {
    for (;;) {
      const task = yield* this.followed()
      const { state, message } = task.status
      if (state === 'TASK_STATE_COMPLETED') return answerOf(task)
      if (isTerminal(state)) throw new ToolError('tool', endText(task))
      if (state !== 'TASK_STATE_INPUT_REQUIRED') {
        await this.cancelRemote()
        throw new ToolError(
          'tool',
          `The remote agent wants a login, which is not offered: ${textIn({ parts: message?.parts ?? [] })}`,
        )
      }
      await this.answer(task.status)
    }
  }

  /** The task when it is over or waits. Streams that tell nothing of that are opened as often as others are asked. */
  private async *followed(): AsyncGenerator<string, A2aTask, void> {
    for (let round = 0; ; round++) {
      const task = await this.read()
      if (!isAtWork(task.status)) return task
      const isStreaming = this.card?.isStreaming === true
      if (!isStreaming || round > 0) await pause(POLL_MS, this.parts.context.signal)
      if (isStreaming) yield* this.watch()
    }
  }

  private async read(): Promise<A2aTask> {
    const { taskId } = this.state
    return readTask(await this.call('GetTask', { id: taskId }), taskId)
  }

  /** Shows what happens, until the task is over or waits, or the stream ends. */
  private async *watch(): AsyncGenerator<string, void, void> {
    const { context } = this.parts
    try {
      this.words.begin()
      for await (const update of this.updates()) {
        const { task, status = task?.status } = update
        yield* this.newWords(update)
        if (status !== undefined && !this.isShown(status)) return
      }
    } catch (error) {
      // It ended meanwhile, or the stream broke: the task says what there is.
      const isFinal = error instanceof RemoteFlood || error instanceof RemoteNonsense
      if (context.signal.aborted || isFinal) throw error
      await pause(error instanceof RemoteRefusal ? 0 : POLL_MS, context.signal)
    }
  }

  private *newWords({ task, artifact, isMore }: RemoteUpdate): Generator<string, void, void> {
    for (const { artifactId, parts } of artifact === undefined ? (task?.artifacts ?? []) : [artifact]) {
      const words = this.words.rest(artifactId, textIn({ parts }), isMore)
      if (words !== '') yield words
    }
  }

  /** The updates of the stream that are about the task. */
  private async *updates(): AsyncGenerator<RemoteUpdate, void, void> {
    const { taskId } = this.state
    for await (const item of streamRemote(this.rpcPlace(), 'SubscribeToTask', { id: taskId })) {
      const update = readUpdate(item, taskId)
      if (update !== undefined) yield update
    }
  }

  /** Shows the words of a status. False where the task is over or waits. */
  private isShown(status: A2aStatus): boolean {
    const { parts = [], messageId = '' } = status.message ?? {}
    const said = textIn({ parts })
    const name = messageId === '' ? said : messageId
    const isNew = said !== '' && name !== this.shown
    this.shown = name
    if (isNew && isAtWork(status)) this.parts.context.progress(said)
    return isAtWork(status)
  }

  /** Puts what the remote agent asks to a person, and sends the answers. */
  private async answer({ message: asked, timestamp }: A2aStatus): Promise<void> {
    const words: A2aPart[] = []
    let from: number | undefined
    for (const { text, toPart } of asksIn(asked)) {
      const said = await this.ask(text)
      from ??= this.replayed - 1
      if (said === null) {
        await this.cancelRemote()
        throw new ToolError('tool', 'Nobody answered what the remote agent asked.')
      }
      words.push(toPart(said))
    }
    const place = from ?? this.replayed
    await this.note(place, 'sending')
    const message = {
      ...this.messageOf(words, `${this.messageId}-${place}-${timestamp ?? ''}`),
      taskId: this.state.taskId ?? '',
    }
    await this.call('SendMessage', { message, configuration: { returnImmediately: true } }).catch(
      async (error: unknown) => {
        // Somebody there has answered first: what it asks now is put to a person anew.
        const isOther =
          error instanceof RemoteRefusal && (await this.read()).status.message?.messageId !== asked?.messageId
        if (!isOther) throw error
      },
    )
    await this.note(place, 'sent')
  }

  /** Tells the remote agent to stop. It has a moment to say so. */
  private async cancelRemote(): Promise<void> {
    if (this.state.taskId === null) return
    const stop = new AbortController()
    const timer = setTimeout(() => stop.abort(new Error('The remote agent does not stop.')), CANCEL_MS)
    const place = { ...this.rpcPlace(), signal: stop.signal }
    await callRemote(place, 'CancelTask', { id: this.state.taskId }).catch(() => undefined)
    clearTimeout(timer)
  }
}

interface RemoteAsk {
  readonly text: string
  readonly toPart: (said: string) => A2aPart
}

/** One question for each thing that a server like ours names; else the words of the status. */
function asksIn(message: A2aMessage | undefined): readonly RemoteAsk[] {
  const parts = message?.parts ?? []
  const named = dataParts({ parts }).flatMap((data): RemoteAsk[] => {
    const { kind, nodeId, text, request, reason, input, seen = null } = Object(data) as Readonly<Record<string, Json>>
    if (typeof nodeId !== 'string') return []
    const about = { nodeId, ...(seen === null ? {} : { seen }) }
    if (kind === 'question') return [{ text: String(text), toPart: (said) => ({ data: { ...about, text: said } }) }]
    // With the hash in the question, an answer to an earlier request is never sent for a later one that reads the same.
    const name = typeof seen === 'string' ? ` (request ${seen})` : ''
    const what = `The remote agent wants to do ${String(request)}: ${String(reason)}\n${JSON.stringify(input)}`
    if (what.length <= LONGEST_SHOWN) {
      const shown = `${what}\nAnswer yes or no${name}.`
      return [{ text: shown, toPart: (said) => ({ data: { ...about, allow: isYes(said), reason: said } }) }]
    }
    const shown = `${what.slice(0, LONGEST_SHOWN)}... (${what.length} characters)\n${NOT_WHOLE}${name}`
    return [{ text: shown, toPart: (said) => ({ data: { ...about, allow: false, reason: said } }) }]
  })
  if (named.length > 0) return named
  const text = textIn({ parts }).trim()
  if (text.length <= LONGEST_SHOWN) {
    return [{ text: text === '' ? 'The remote agent needs input.' : text, toPart: (said) => ({ text: said }) }]
  }
  const shown = `${text.slice(0, LONGEST_SHOWN)}... (${text.length} characters)\n${NOT_WHOLE}`
  return [{ text: shown, toPart: () => ({ text: 'No. The question was too long to be shown whole to a person.' }) }]
}

/** A question to a person has at most 8,000 characters, its last sentence included. */
const LONGEST_SHOWN = 7_500
const NOT_WHOLE =
  'It is too long to be shown whole here, so any answer here denies it: allow it at the remote server, in `legate approvals` or on its page, before you answer.'

function isYes(said: string | null): boolean {
  return /^\s*(?:yes|y|allow|ok)\b/i.test(said ?? '')
}

function isAtWork({ state }: A2aStatus): boolean {
  return state === 'TASK_STATE_WORKING' || state === 'TASK_STATE_SUBMITTED'
}

function answerOf({ artifacts, status }: A2aTask): RemoteAnswer {
  const parts = artifacts.flatMap((artifact) => artifact.parts)
  return parts.length > 0 ? parts : (status.message?.parts ?? [])
}

function messageParts(message: Json): RemoteAnswer {
  return (message as unknown as A2aMessage).parts ?? []
}

function endText({ status }: A2aTask): string {
  const why = textIn({ parts: status.message?.parts ?? [] })
  return `The remote task ended ${status.state}${why === '' ? '.' : `: ${why}`}`
}

/** Was the run asked to stop, and not the process? */
function isCancelled(signal: AbortSignal): boolean {
  if (!signal.aborted || !isLegateError(signal.reason)) return false
  const { cause } = signal.reason.details as { readonly cause?: unknown }
  return cause === 'cancel' || cause === 'timeout'
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

/** The words of artifacts that were shown, so that a stream which is opened again repeats none of them. */
class ShownWords {
  private readonly shown: Map<string, string> = new Map()
  /** How far in them the stream of now is. */
  private readonly at: Map<string, number> = new Map()

  /** A stream begins: it may tell all of it once more. */
  begin(): void {
    for (const id of this.shown.keys()) this.at.set(id, 0)
  }

  /** The new words of an artifact. `isMore`: they follow those that came before; else they are all that it has. */
  rest(id: string, words: string, isMore: boolean): string {
    const shown = this.shown.get(id) ?? ''
    const at = isMore ? (this.at.get(id) ?? shown.length) : 0
    const ahead = shown.slice(at)
    const isRepeat = ahead.startsWith(words)
    if (!isRepeat) this.shown.set(id, shown.slice(0, at) + words)
    this.at.set(id, at + words.length)
    if (isRepeat) return ''
    return words.startsWith(ahead) ? words.slice(ahead.length) : words
  }
}
