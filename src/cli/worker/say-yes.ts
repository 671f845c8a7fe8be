import type { PendingApproval, Run, Runtime } from '../../index.ts'
import { exactLine } from '../terminal/clean.ts'
import type { View } from '../watch/view.ts'
import { type Asker, approvalsIn, keyOf } from './asker.ts'

export interface SayYesOptions {
  readonly runtime: Runtime
  readonly view: View
  readonly by: string
}

/** Allows what its runs ask for, as it was told when it was started; each answer is recorded. Questions stay open. */
export class SayYes implements Asker {
  readonly isPatient = false
  private readonly options: SayYesOptions
  /** Answers that are on their way, by the key of what they answer. */
  private readonly answers: Map<string, Promise<void>> = new Map()

  constructor(options: SayYesOptions) {
    this.options = options
  }

  async look(runs: readonly Run[]): Promise<void> {
    for (const asked of await approvalsIn(this.options.runtime, runs)) {
      const key = keyOf(asked)
      if (this.answers.has(key)) continue
      this.answers.set(
        key,
        this.allow(asked).finally(() => this.answers.delete(key)),
      )
    }
    await this.settled()
  }

  async settled(): Promise<void> {
    await Promise.all(this.answers.values())
  }

  close(): void {}

  private async allow({ nodeId, request, digest }: PendingApproval): Promise<void> {
    const { runtime, view, by } = this.options
    try {
      await runtime.answer(nodeId, { allow: true, by: `${by} (--yes)`, digest })
      view.say(`Allowed ${exactLine(request)}.\n`)
    } catch {
      // Somebody else was faster, or the store is locked for a moment: the next look sees which.
    }
  }
}
