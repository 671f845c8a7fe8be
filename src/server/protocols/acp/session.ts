// One session of an editor: a conversation, or a child's conversation to read.
//
// Owns:      what a prompt does, how a run is shown, and what is asked on the way.
// Must stay true:
//   - It reaches rows only through the principal's runtime (I12). A waiting permission is a row: if the editor goes away nothing
//     is lost, and loading the session asks again.
//   - A permission that is cancelled answers nothing.

import { shortId } from '../../../core/base/id.ts'
import { MODES, type Mode } from '../../../doors/recipe.ts'
import {
  type AnyAgent,
  type Grant,
  type Id,
  InputError,
  isLegateError,
  type PendingQuestion,
  type Run,
  type RunEvent,
  type RunOutcome,
  type ScopedRuntime,
} from '../../../index.ts'
import {
  type AcpApproval,
  type AcpQuestion,
  type FormReply,
  formAnswer,
  formOf,
  permissionOf,
  wordOf,
} from './pending.ts'
import { contentOf } from './read.ts'
import { type Update, UpdateWriter, type WriterOptions } from './write.ts'

/** The editor, as a session talks to it. */
export interface Editor {
  update(sessionId: string, update: Update): Promise<void>
  /** Asks the person. `signal` takes the request back. */
  permission(
    params: ReturnType<typeof permissionOf>,
    signal: AbortSignal,
  ): Promise<{ readonly outcome: string; readonly optionId?: string }>
  /** Shows a form; null where the editor has none: then a question is said, and the next prompt answers it. */
  readonly form: ((params: ReturnType<typeof formOf>, signal: AbortSignal) => Promise<FormReply>) | null
}

export interface EditorSessionParts {
  readonly id: Id
  /** The agent of its conversation, by its name or itself: with the servers of the editor it is another one. */
  readonly agent: AnyAgent | string
  /** The folder of the editor. */
  readonly folder: string
  readonly runtime: ScopedRuntime
  readonly editor: Editor
  readonly figures: Pick<WriterOptions, 'windowOf' | 'costOf'>
  /** The text that its conversation is begun under; null where it exists. */
  readonly key: string | null
  /** True: the conversation of a child, which only its host talks to. */
  readonly isChild: boolean
  /** Completes the commands in texts for the person. */
  readonly commands?: ((text: string) => string) | undefined
}

const MOST_TURNS = 10_000
const PAGE = 1_000
const RETRY = 'retry'

/** The commands that a person may type. */
export const COMMANDS: readonly { readonly name: string; readonly description: string }[] = [
  { name: RETRY, description: 'Answers the last message again.' },
]

export class Session {
  readonly id: Id
  mode: Mode = 'auto'
  private readonly parts: EditorSessionParts
  private key: string | null
  /** Requests for permission and forms that the editor shows, by node and what it asks: it may ask for something else next. */
  private readonly open: Map<string, AbortController> = new Map()
  /** The questions that the session has told the person of, by node, with the hash of each. */
  private readonly said: Map<string, string> = new Map()
  private closing: AbortController = new AbortController()
  private isCancelled = false

  constructor(parts: EditorSessionParts) {
    this.parts = parts
    this.id = parts.id
    this.key = parts.key
  }

  /** Says something, and shows what follows, until the run has ended or asks the person something. */
  async prompt(blocks: Parameters<typeof contentOf>[0]): Promise<RunOutcome | 'asks'> {
    this.isCancelled = false
    if (this.parts.isChild)
      throw new InputError('invalid_input', 'This is the conversation of a subagent: you can read it.')
    const content = contentOf(blocks)
    const waiting = await this.answered(content)
    if (waiting !== undefined) return this.follow(waiting.run, waiting.after)
    const run = content === `/${RETRY}` ? await this.again() : this.begin(content)
    return this.follow(run, 0)
  }

  private begin(content: ReturnType<typeof contentOf>): Run {
    const { runtime, agent, folder } = this.parts
    const place = this.key === null ? { conversationId: this.id } : { conversationKey: this.key }
    return runtime.run(agent, content, { ...place, ...this.narrowed, attributes: { [SESSION_FOLDER]: folder } })
  }

  /** The grant that narrows the agent to the mode. */
  private get narrowed(): { readonly grant?: Grant } {
    return this.mode === 'auto' ? {} : { grant: MODES[this.mode] }
  }

  /** An editor has one line for an answer: a terminal takes one for each. */
  private several(questions: readonly PendingQuestion[]): string {
    const lines = questions.map(({ nodeId, text }) => `${text}\nlegate answer ${shortId(nodeId)} TEXT`)
    const told = `Several questions wait. Answer each in a terminal:\n${lines.join('\n')}`
    return this.parts.commands?.(told) ?? told
  }

  private async again(): Promise<Run> {
    const conversation = await this.parts.runtime.conversation(this.id, this.narrowed)
    const { transcript } = await conversation.transcriptPage({ limitTurns: 1 })
    const last = transcript.findLast(({ role }) => role === 'agent')
    if (last === undefined) throw new InputError('invalid_input', 'There is no answer yet.')
    const { history } = conversation
    return last.state === 'finished' ? history.rerun(last.nodeId) : history.retry(last.nodeId)
  }

  /** Where a question waits, the prompt is its answer: gives the run that goes on, and where it stood. */
  private async answered(content: ReturnType<typeof contentOf>): Promise<{ run: Run; after: number } | undefined> {
    const { runtime } = this.parts
    const newest = await this.newest()
    if (newest === undefined || newest.state === 'ended' || typeof content !== 'string') return undefined
    const questions = await runtime.questions({ runId: newest.runId })
    const [question] = questions
    if (question === undefined) return undefined
    // The answer names the question that the session has shown. If only one question waits, the answer is for that one.
    const said =
      questions.find(({ nodeId }) => this.said.has(nodeId)) ?? (questions.length === 1 ? question : undefined)
    if (said === undefined) throw new InputError('invalid_input', this.several(questions))
    const seen = this.said.get(said.nodeId)
    const { lastSeq } = await runtime.look(newest.runId)
    await runtime.answer(said.nodeId, { text: content, ...(seen === undefined ? {} : { seen }) })
    return { run: await runtime.attach(newest.runId), after: lastSeq }
  }

  /** Sends everything that was said and done, and goes on with what is open, without anybody waiting for it. */
  async replay(): Promise<void> {
    const { runtime } = this.parts
    const { runs } = await runtime.tree(this.id, { limitTurns: MOST_TURNS })
    const writer = this.writer(true)
    let last = 0
    for (const { runId } of runs) last = await this.replayRun(runId, writer)
    const newest = runs.at(-1)
    if (newest !== undefined && newest.state !== 'ended') this.goOn(newest.runId, last)
  }

  private async replayRun(runId: Id, writer: UpdateWriter): Promise<number> {
    let after = 0
    for (;;) {
      const { events, next } = await this.parts.runtime.eventPage(runId, { after, limit: PAGE })
      for (const event of events) {
        this.note(event)
        await this.send(writer.write(event))
      }
      after = events.at(-1)?.seq ?? after
      if (next === null) return after
      after = next
    }
  }

  /** Goes on with a run that was open when the session was opened: what waits is asked again. */
  goOn(runId: Id, after: number): void {
    const work = async () => {
      const { runtime } = this.parts
      const run = await runtime.attach(runId)
      for (const asked of await runtime.approvals({ runId })) this.ask(asked)
      for (const asked of await runtime.questions({ runId })) this.question(asked)
      await this.follow(run, after)
    }
    work().catch(() => undefined)
  }

  /** Goes on with the newest run, where it is open; sends nothing of what was before. */
  async resume(): Promise<void> {
    const newest = await this.newest()
    if (newest === undefined || newest.state === 'ended') return
    this.goOn(newest.runId, (await this.parts.runtime.look(newest.runId)).lastSeq)
  }

  private async newest() {
    if (this.key !== null) return undefined
    const { runs } = await this.parts.runtime.tree(this.id, { limitTurns: 1 })
    return runs.at(-1)
  }

  private writer(isReplay: boolean): UpdateWriter {
    return new UpdateWriter({ folder: this.parts.folder, isReplay, ...this.parts.figures })
  }

  private async follow(run: Run, after: number): Promise<RunOutcome | 'asks'> {
    const { signal } = this.closing
    const writer = this.writer(false)
    const events = run.events(after === 0 ? {} : { after, live: true })[Symbol.asyncIterator]()
    const leave = () => events.return?.().catch(() => undefined)
    signal.addEventListener('abort', leave, { once: true })
    try {
      for (;;) {
        const { done, value } = await events.next()
        this.key = null
        if (done === true) return await run.result
        if (signal.aborted) return 'asks'
        this.note(value)
        await this.send(writer.write(value))
        if (await this.handle(value, run)) return 'asks'
      }
    } finally {
      signal.removeEventListener('abort', leave)
      await leave()
    }
  }

  /** Keeps what the person is told of questions. */
  private note(event: RunEvent): void {
    if (event.type === 'question' && event.to === 'person') this.said.set(event.nodeId ?? '', event.seen)
    if (event.type === 'answer') this.said.delete(event.nodeId ?? '')
  }

  /** True where the person must say something before it goes on. */
  private async handle(event: RunEvent, run: Run): Promise<boolean> {
    if (event.type === 'approval-request') this.ask(askedIn(event))
    if (event.type === 'approval-answer' || event.type === 'answer') this.takeBack(event.nodeId ?? '')
    if (event.type !== 'question' || event.to !== 'person') return false
    const { nodeId, text, seen } = event
    if (this.question({ nodeId: nodeId ?? '', text, seen })) return false
    return (await this.parts.runtime.questions({ runId: run.id })).length > 0
  }

  /** Puts a request to the person, and takes his word. */
  private ask(asked: AcpApproval): void {
    this.show(asked, async (signal) => {
      const { editor, folder } = this.parts
      return wordOf(await editor.permission(permissionOf(this.id, asked, folder), signal), asked.seen)
    })
  }

  /** Puts a question to the person with a form. False where the editor has none. */
  private question(asked: AcpQuestion): boolean {
    const { form } = this.parts.editor
    if (form === null) return false
    this.show(asked, async (signal) => {
      return { text: formAnswer(await form(formOf(this.id, asked), signal)), seen: asked.seen }
    })
    return true
  }

  /** Takes back what the editor shows of a node: somebody has answered. */
  private takeBack(nodeId: string): void {
    for (const [key, taken] of this.open) if (key.startsWith(`${nodeId} `)) taken.abort()
  }

  /** Shows something to the person, once, and says what the person says. */
  private show({ nodeId, seen }: PendingRequest, put: (signal: AbortSignal) => Promise<AnyAnswer | undefined>): void {
    const key = `${nodeId} ${seen}`
    if (this.open.has(key) || this.isCancelled) return
    const taken = new AbortController()
    this.open.set(key, taken)
    const work = async () => {
      const word = await put(taken.signal)
      if (word === undefined || taken.signal.aborted || this.isCancelled) return
      await this.parts.runtime.answer(nodeId, word)
    }
    // Where the editor went away the node waits, and somebody may have been faster.
    work()
      .catch(() => undefined)
      .finally(() => this.open.delete(key))
  }

  private async send(updates: readonly Update[]): Promise<void> {
    for (const update of updates) await this.parts.editor.update(this.id, update)
  }

  /** Stops what goes on. Permissions that wait are taken back, and answer nothing. */
  async cancel(): Promise<void> {
    this.isCancelled = true
    for (const taken of this.open.values()) taken.abort()
    const newest = await this.newest()
    if (newest === undefined || newest.state === 'ended') return
    await this.parts.runtime.cancel(newest.runId, 'The person stopped it.').catch((error: unknown) => {
      if (!isLegateError(error, 'not_found')) throw error
    })
  }

  /** Stops showing it. */
  leave(): void {
    this.closing.abort()
    this.closing = new AbortController()
  }
}

type AnyAnswer = Parameters<ScopedRuntime['answer']>[1]

/** The request of a node that waits for a person. */
type PendingRequest = Pick<AcpApproval, 'nodeId' | 'seen'>

function askedIn(event: Extract<RunEvent, { type: 'approval-request' }>): AcpApproval {
  const { nodeId, path, request, call, input, seen, reason } = event
  return { nodeId: nodeId ?? '', path, request, tool: call?.name ?? null, input, seen, reason }
}

/**
 * The attribute of every run of a session that names the folder of its editor. Processes that share a store leave a session to
 * those that work in its folder.
 */
export const SESSION_FOLDER = 'legate.folder'
