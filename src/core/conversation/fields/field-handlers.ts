import { canonicalJson, type Json } from '../../base/json.ts'
import type { PathPattern } from '../../fields/path-pattern.ts'
import { doneFields } from './read-fields.ts'
import { type FieldSource, RunField } from './run-field.ts'

/** The value that a handler returned for one field, or the error it threw. */
export type FieldResult =
  | { readonly path: string; readonly value: unknown; readonly status: 'fulfilled'; readonly result: unknown }
  | { readonly path: string; readonly value: unknown; readonly status: 'rejected'; readonly reason: unknown }

type Handler = (value: never, field: RunField<never>) => unknown

interface HandledField {
  readonly attempt: number
  /** How many values of the attempt were complete before. */
  readonly at: number
  readonly handler: number
  readonly result: Promise<FieldResult>
}

/**
 * The handlers of one run. Each is called as soon as a field is complete and fits, while the answer continues. An equal
 * value at the same place is handled only once, however often the model answers again.
 */
export class FieldHandlers {
  private readonly source: FieldSource
  private readonly report: (error: unknown) => void
  private readonly handled: HandledField[] = []
  private readonly reading: Promise<void>[] = []

  constructor(source: FieldSource, report: (error: unknown) => void) {
    this.source = source
    this.report = report
  }

  get count(): number {
    return this.reading.length
  }

  add(pattern: PathPattern, handler: Handler): void {
    const reading = this.read(pattern, handler, this.reading.length)
    reading.catch(() => undefined)
    this.reading.push(reading)
  }

  /**
   * Resolves when the run and all handlers have ended: their results, in the order in which the fields were complete.
   */
  async settled(): Promise<FieldResult[]> {
    await Promise.all(this.reading)
    const inOrder = this.handled.toSorted((a, b) => a.attempt - b.attempt || a.at - b.at || a.handler - b.handler)
    return Promise.all(inOrder.map(({ result }) => result))
  }

  private async read(pattern: PathPattern, handle: Handler, handler: number): Promise<void> {
    const known = new Set<string>()
    for await (const { event, parser, place, at } of doneFields(this.source)) {
      if (!event.isAt(pattern) || (await parser.check(event)).length > 0) continue
      const same = `${event.slash} ${canonicalJson(event.value as Json)}`
      if (known.has(same)) continue
      known.add(same)
      const result = this.call(handle, new RunField<never>(event, place))
      this.handled.push({ attempt: place.attempt, at, handler, result })
    }
  }

  private async call(handler: Handler, field: RunField<never>): Promise<FieldResult> {
    const { dot: path, value } = field
    try {
      return { path, value, status: 'fulfilled', result: await handler(value, field) }
    } catch (reason) {
      this.report(reason)
      return { path, value, status: 'rejected', reason }
    }
  }
}
