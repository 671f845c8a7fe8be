import type { Id, Run, Runtime } from '../../index.ts'
import { oneLine } from '../terminal/clean.ts'
import type { View } from '../watch/view.ts'
import { type Asker, approvalsIn } from './asker.ts'

export interface SayYesOptions {
  readonly runtime: Runtime
  readonly view: View
  readonly by: string
}

/** Allows what its runs ask for, as it was told when it was started; each answer is recorded. Questions stay open. */
export class SayYes implements Asker {
  readonly isPatient = false
  private readonly options: SayYesOptions
  private readonly answered: Set<Id> = new Set()

  constructor(options: SayYesOptions) {
    this.options = options
  }

  async look(runs: readonly Run[]): Promise<void> {
    const { runtime, view, by } = this.options
    for (const { nodeId, request } of await approvalsIn(runtime, runs)) {
      if (this.answered.has(nodeId)) continue
      this.answered.add(nodeId)
      try {
        await runtime.answer(nodeId, { allow: true, by: `${by} (--yes)` })
        view.say(`Allowed ${oneLine(request)}.\n`)
      } catch {
        // Somebody else was faster, or the store is locked for a moment.
        this.answered.delete(nodeId)
      }
    }
  }

  close(): void {
    this.answered.clear()
  }
}
