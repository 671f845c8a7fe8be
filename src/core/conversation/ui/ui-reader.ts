import type { RunEvent } from '../../graph/event.ts'
import type { Node } from '../../graph/rows.ts'
import { approvalOf } from '../../rules/turn/approval-of.ts'
import { questionHash, questionOf } from '../../rules/turn/question-of.ts'
import type { Run } from '../run.ts'
import { RunHandle } from '../run-handle.ts'
import type { UiMessageChunk7 } from './ui-chunk.ts'
import type { UiStreamOptions } from './ui-options.ts'
import { untoldEvents } from './ui-untold.ts'
import { UiWriter } from './ui-writer.ts'

/** The events after which a run may do nothing but wait. */
const WAITS: ReadonlySet<string> = new Set(['approval-request', 'question', 'tool-result'])

/** Reads the events of a run as chunks, from its beginning or from where a page waited for a person. */
export class UiReader {
  isOver = false
  private readonly run: Run
  private readonly events: AsyncIterator<RunEvent>
  private readonly writer: UiWriter
  /** Whether the page answers approvals, and the principal whose results it sends. */
  private readonly page: { readonly approves: boolean; readonly executes: string | null }
  private readonly after: readonly string[]
  /** True while it reads what the page has already. */
  private isBehind: boolean
  private first: Promise<IteratorResult<RunEvent>> | undefined
  private hasFirst = false

  constructor(run: Run, { ui = 6, approvals = 'ask', executes, after = [] }: UiStreamOptions) {
    this.run = run
    this.events = run[Symbol.asyncIterator]()
    this.writer = new UiWriter(run.id, { ui, asks: approvals !== 'show' })
    this.page = { approves: approvals === 'end', executes: executes ?? null }
    this.after = after
    this.isBehind = after.length > 0
  }

  start(): UiMessageChunk7 {
    return this.writer.start()
  }

  /** The chunks of the next event that has some. */
  async next(): Promise<readonly UiMessageChunk7[]> {
    if (this.first === undefined) {
      // Asked for before anything is awaited: live events are gone once their node has ended.
      this.first = this.events.next()
      this.first.catch(() => undefined)
      const kept = await this.begin()
      if (kept.length > 0) return kept
    }
    while (!this.isOver) {
      const { done, value } = await this.nextEvent()
      if (done === true) break
      const chunks = await this.read(value)
      if (chunks.length > 0) return chunks
    }
    this.isOver = true
    return []
  }

  async close(): Promise<void> {
    await this.events.return?.()
  }

  private nextEvent(): Promise<IteratorResult<RunEvent>> {
    const next = this.hasFirst ? undefined : this.first
    this.hasFirst = true
    return next ?? this.events.next()
  }

  /** The parts of an answer that were kept when it was made anew: no event tells of them. */
  private async begin(): Promise<readonly UiMessageChunk7[]> {
    const { run, writer } = this
    if (!(run instanceof RunHandle)) return []
    const events = await run.look((tree) => {
      const row = tree.conversation(run.conversationId)
      return row === undefined ? [] : untoldEvents(tree.nodesOf(run.id), row)
    })
    const chunks = events.flatMap((event) => writer.write(event))
    return this.isBehind ? [] : chunks
  }

  private async read(event: RunEvent): Promise<readonly UiMessageChunk7[]> {
    const { writer } = this
    const chunks = writer.write(event)
    const isEnd = event.type === 'run-end' && event.runId === this.run.id
    if (this.isBehind && !isEnd) {
      this.isBehind = !(writer.isWaiting && writer.hasAsked(this.after))
      return []
    }
    const { approves, executes } = this.page
    const mayEnd = (approves || executes !== null) && writer.isWaiting && WAITS.has(event.type)
    if (!mayEnd || !(await this.waitsForPage())) return chunks
    this.isOver = true
    return [...chunks, writer.pause()]
  }

  /** False where the page cannot answer, or something was answered since it was asked: these events are of the past. */
  private async waitsForPage(): Promise<boolean> {
    const { run, writer } = this
    if (!(run instanceof RunHandle)) return this.page.approves
    return run.look((tree) => {
      const owner = tree.conversation(tree.conversation(run.conversationId)?.rootId ?? '')?.owner ?? null
      return [...writer.waitingFor].every(([nodeId, seen]) => this.isForPage(tree.node(nodeId), seen, owner))
    })
  }

  private isForPage(node: Node | undefined, seen: string, owner: string | null): boolean {
    const { approves, executes } = this.page
    if (node?.state === 'awaiting_approval') return approves && approvalOf(node).digest === seen
    const question = node?.state === 'waiting' && node.wait?.on === 'question' ? questionOf(node) : undefined
    if (question?.outside === undefined || questionHash(question) !== seen) return false
    return executes !== null && (question.outside.by ?? owner) === executes
  }
}
