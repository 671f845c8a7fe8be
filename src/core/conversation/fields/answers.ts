import type { CheckedSchema } from '../../base/schema/schema.ts'
import type { FieldEvent } from '../../fields/field-event.ts'
import { FieldParser } from '../../fields/field-parser.ts'
import { writtenText } from '../../graph/content.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { FieldBatch, FieldSource } from './run-field.ts'

/** Reads the answers of all runs whose events it receives. An event for which rows are missing changes nothing. */
export class AnswerReader {
  private readonly source: Pick<FieldSource, 'schemaOf'>
  private readonly tree: TreeReader
  private readonly runs: Map<Id, RunAnswers> = new Map()

  constructor(source: Pick<FieldSource, 'schemaOf'>, tree: TreeReader) {
    this.source = source
    this.tree = tree
  }

  take(event: RunEvent): FieldBatch | undefined {
    const known = this.runs.get(event.runId)
    const run = known ?? new RunAnswers(this.tree, this.source.schemaOf(this.tree, event.runId) ?? null)
    if (known === undefined) this.runs.set(event.runId, run)
    if (event.type === 'run-end') this.runs.delete(event.runId)
    return run.take(event)
  }
}

/** Reads the answers of one run, one after the other. */
class RunAnswers {
  private readonly tree: TreeReader
  private readonly schema: CheckedSchema | null
  private attempt = 1
  private nodeId: Id | null = null
  private reading: AnswerReading | null = null
  /** True when a field of this attempt, or of an earlier one, was reported. */
  private isTold = false
  private wasTold = false

  constructor(tree: TreeReader, schema: CheckedSchema | null) {
    this.tree = tree
    this.schema = schema
  }

  take(event: RunEvent): FieldBatch | undefined {
    switch (event.type) {
      case 'text-delta':
        return this.takeDelta(event)
      case 'message':
        return event.role === 'agent' ? this.close(event) : undefined
      case 'reset':
        this.drop(event)
        return undefined
      case 'retry':
      case 'node-state':
        return this.change(event)
      case 'run-end':
        return this.cut(event)
      default:
        return undefined
    }
  }

  private takeDelta(event: Extract<RunEvent, { type: 'text-delta' }>): FieldBatch | undefined {
    const reading = this.readingOf(event)
    if (reading === null) return undefined
    return this.batchOf(event, reading, reading.push(event.text, event.cumulative === true))
  }

  /** Completes the text from the message, because the stream may be known only in part, or not at all. */
  private close(event: Extract<RunEvent, { type: 'message' }>): FieldBatch | undefined {
    const isCall = event.calls.length > 0
    const reading = isCall ? this.current(event) : this.readingOf(event)
    this.nodeId = null
    this.reading = null
    if (reading === null || isCall) return undefined
    const text = writtenText(event.content)
    const whole = reading.isOf(text) ? reading : this.again()
    const events = [...whole.push(text, true), ...whole.parser.end()]
    return this.batchOf(event, whole, events)
  }

  /** Reads from the beginning, because the recorded text differs from the streamed one. */
  private again(): AnswerReading {
    this.begin()
    return new AnswerReading(this.schema)
  }

  /** A repeated call starts another attempt; a call that ended without a message is over. */
  private change(event: Extract<RunEvent, { type: 'retry' | 'node-state' }>): FieldBatch | undefined {
    const isAgain = event.type === 'retry' || event.to === 'pending'
    if (!isAgain) return this.cut(event)
    if (!this.isAnswer(event.nodeId)) return undefined
    this.drop(event)
    this.attempt++
    return undefined
  }

  private cut(event: RunEvent): FieldBatch | undefined {
    const { reading } = this
    if (reading === null || (event.nodeId !== null && event.nodeId !== this.nodeId)) return undefined
    const batch = this.batchOf(event, reading, reading.parser.end())
    this.reading = null
    return batch
  }

  private drop({ nodeId }: RunEvent): void {
    if (nodeId !== this.nodeId) return
    this.nodeId = null
    this.reading = null
  }

  private current({ nodeId }: RunEvent): AnswerReading | null {
    return nodeId === this.nodeId ? this.reading : null
  }

  private readingOf(event: RunEvent): AnswerReading | null {
    if (event.nodeId === this.nodeId) return this.reading
    if (!this.isAnswer(event.nodeId)) return null
    this.nodeId = event.nodeId
    this.begin()
    if (this.purposeOf(event.nodeId) === 'repair') this.attempt++
    this.reading = new AnswerReading(this.schema)
    return this.reading
  }

  private begin(): void {
    this.wasTold ||= this.isTold
    this.isTold = false
  }

  private batchOf(event: RunEvent, reading: AnswerReading, events: readonly FieldEvent[]): FieldBatch | undefined {
    if (events.length === 0) return undefined
    const isReset = this.wasTold
    this.wasTold = false
    this.isTold = true
    const place = { runId: event.runId, nodeId: event.nodeId ?? '', agentPath: event.path, attempt: this.attempt }
    return { event, place, parser: reading.parser, events, isReset }
  }

  /** Messages that plan, brief or summarise are no answers of the run. */
  private isAnswer(nodeId: Id | null): boolean {
    const purpose = this.purposeOf(nodeId)
    return purpose === 'answer' || purpose === 'repair' || purpose === null
  }

  private purposeOf(nodeId: Id | null) {
    const node = nodeId === null ? undefined : this.tree.node(nodeId)
    return node?.kind === 'task' ? undefined : node?.purpose
  }
}

/** One answer while it is read: its text so far, and the parser. */
export class AnswerReading {
  readonly parser: FieldParser
  private heard = ''

  constructor(schema: CheckedSchema | null) {
    this.parser = new FieldParser(schema, {})
  }

  /** Takes the next piece; where deltas repeat all text so far, only the new part of it. */
  push(text: string, isWhole: boolean): readonly FieldEvent[] {
    const piece = isWhole ? text.slice(this.heard.length) : text
    this.heard += piece
    return this.parser.push(piece)
  }

  /** True when the text begins with the part that was read. The stream may be known only in part. */
  isOf(text: string): boolean {
    return text.startsWith(this.heard)
  }
}
