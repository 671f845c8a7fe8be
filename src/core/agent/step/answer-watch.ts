import type { Issue } from '../../base/schema/schema.ts'
import type { FieldEvent } from '../../fields/field-event.ts'
import { FieldParser } from '../../fields/field-parser.ts'
import type { EagerWork, NodeRun } from '../hooks/node-run.ts'

/** Thrown when the answer can no longer fit, because a complete field does not. */
export class DoomedAnswer extends Error {
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    super('the answer does not fit')
    this.issues = issues
  }
}

/** Reads an answer while it streams, for work that starts before it ends. */
export async function watchAnswer(run: NodeRun): Promise<AnswerWatch> {
  const { agent, home } = run
  const eager = agent.eager === null ? null : await home.children.eager(run)
  return new AnswerWatch(new FieldParser(agent.output, {}), eager, agent.repair?.failFast === true)
}

/** Checks fields in order, one after the other, while more text comes. */
export class AnswerWatch {
  readonly eager: EagerWork | null
  /** Called when the call should stop. */
  onStop: ((reason: unknown) => void) | null = null
  private readonly parser: FieldParser
  private readonly isStrict: boolean
  private looking: Promise<void>
  private failure: { readonly reason: unknown } | null = null

  constructor(parser: FieldParser, eager: EagerWork | null, isStrict: boolean) {
    this.parser = parser
    this.eager = eager
    this.isStrict = isStrict
    // Prepares while the model begins to answer.
    this.looking = parser.prepare(eager?.patterns ?? [])
  }

  push(text: string): void {
    const { eager } = this
    const events = this.parser.push(text).filter((event) => {
      return event.kind === 'done' && (this.isStrict || eager?.wants(event) === true)
    })
    if (events.length > 0) this.looking = this.looking.then(() => this.look(events))
  }

  /** Resolves when everything so far has been checked. Rejects with the error, unless the answer itself is at fault. */
  async settled(): Promise<void> {
    await this.looking
    if (this.failure !== null && !(this.failure.reason instanceof DoomedAnswer)) throw this.failure.reason
  }

  private async look(events: readonly FieldEvent[]): Promise<void> {
    try {
      for (const event of events) {
        if (this.failure !== null) return
        await this.lookAt(event)
      }
    } catch (reason) {
      this.stop(reason)
    }
  }

  private async lookAt(event: FieldEvent): Promise<void> {
    const issues = await this.parser.check(event)
    if (issues.length === 0) {
      if (this.eager?.wants(event)) await this.eager.start(event)
    } else if (this.isStrict) this.stop(new DoomedAnswer(issues))
  }

  private stop(reason: unknown): void {
    this.failure ??= { reason }
    this.onStop?.(reason)
  }
}
