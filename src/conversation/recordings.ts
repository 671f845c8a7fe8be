import type { Id } from '../graph/rows.ts'

/** Runs that were started here and are not in the rows yet. Their ids are known from the start, so they are found by them. */
export class Recordings {
  private readonly open: Map<Id, Recording> = new Map()

  add(recording: Recording): void {
    const { runId, started } = recording
    this.open.set(runId, recording)
    const done = () => this.open.delete(runId)
    started.then(done, done)
  }

  get isEmpty(): boolean {
    return this.open.size === 0
  }

  ofRun(runId: Id): Recording | undefined {
    return this.open.get(runId)
  }

  /** Settles when all of it that was started before is in the rows, or refused: also where it is the id of a conversation. */
  async settled(id?: Id): Promise<void> {
    const meant = [...this.open.values()].filter(
      ({ runId, conversationId }) => id === undefined || id === runId || id === conversationId,
    )
    await Promise.allSettled(meant.map(({ started }) => started))
  }
}

/** A run that may still be on its way to the rows. */
export interface Begun {
  readonly conversationId: Id
  readonly started?: Promise<unknown>
}

interface Recording extends Required<Begun> {
  readonly runId: Id
}
