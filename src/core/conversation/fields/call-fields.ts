import type { FieldEvent } from '../../fields/field-event.ts'
import type { RunEvent } from '../../graph/event.ts'
import { AnswerReading } from './answers.ts'
import type { FieldBatch, FieldSource } from './run-field.ts'

/**
 * Reads the arguments of a tool's calls while a model writes them, each call separately. Arguments that were not
 * streamed, or calls that are already over, are reported at once.
 */
export async function* readCallFields(
  source: FieldSource,
  tool: string,
  isWanted: (event: RunEvent) => boolean,
): AsyncGenerator<FieldBatch, void> {
  const calls = new CallReadings()
  for await (const event of source.events()) {
    if (!isWanted(event)) continue
    const batch = calls.take(event, tool)
    if (batch !== undefined) yield batch
  }
}

/** The calls that are being written, by their runs and ids. */
class CallReadings {
  private readonly open: Map<string, AnswerReading> = new Map()
  private readonly attempts: Map<string, number> = new Map()
  /** Runs whose reported calls no longer count. */
  private readonly void: Set<string> = new Set()

  take(event: RunEvent, tool: string): FieldBatch | undefined {
    const isOf = (name: string) => tool === '*' || name === tool
    switch (event.type) {
      case 'tool-input-delta':
        return isOf(event.tool) ? this.takeDelta(event) : undefined
      case 'tool-call':
        return isOf(event.call.name) ? this.close(event) : undefined
      case 'reset':
        this.drop(event.runId)
        return undefined
      default:
        return undefined
    }
  }

  private takeDelta(event: Extract<RunEvent, { type: 'tool-input-delta' }>): FieldBatch | undefined {
    const key = `${event.runId} ${event.callId}`
    const reading = this.open.get(key) ?? new AnswerReading(null)
    this.open.set(key, reading)
    const events = reading.push(event.text, event.cumulative === true)
    return this.batchOf(event, reading, events, { id: event.callId, name: event.tool })
  }

  private close(event: Extract<RunEvent, { type: 'tool-call' }>): FieldBatch | undefined {
    const { call } = event
    const key = `${event.runId} ${call.id}`
    const known = this.open.get(key)
    this.open.delete(key)
    const reading = known ?? new AnswerReading(null)
    const rest = known === undefined ? reading.push(JSON.stringify(call.input), false) : []
    return this.batchOf(event, reading, [...rest, ...reading.parser.end()], call)
  }

  /** The model starts over. */
  private drop(turnId: string): void {
    const begun = [...this.open.keys()].filter((key) => key.startsWith(`${turnId} `))
    for (const key of begun) this.open.delete(key)
    if (begun.length === 0) return
    this.attempts.set(turnId, (this.attempts.get(turnId) ?? 1) + 1)
    this.void.add(turnId)
  }

  private batchOf(
    event: RunEvent,
    reading: AnswerReading,
    events: readonly FieldEvent[],
    call: { readonly id: string; readonly name: string },
  ): FieldBatch | undefined {
    if (events.length === 0) return undefined
    const { runId, nodeId, path } = event
    const isReset = this.void.delete(runId)
    const attempt = this.attempts.get(runId) ?? 1
    const place = {
      runId,
      nodeId: nodeId ?? '',
      agentPath: path,
      attempt,
      call: { id: call.id, tool: call.name },
    }
    return { event, place, parser: reading.parser, events, isReset }
  }
}
