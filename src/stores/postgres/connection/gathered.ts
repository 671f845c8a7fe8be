import { isLegateError } from '../../../core/base/error.ts'

/**
 * Asks for everything that is wanted in one turn of the event loop with one question: each costs a round trip. Where that fails, each is
 * asked for alone, unless the database is away.
 */
export class Gathered<Asked, Answer> {
  private readonly askAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>
  private readonly most: number
  private waiting: Waiting<Asked, Answer>[] = []

  /** `askAll` answers at most `most` at once, in their order. */
  constructor(most: number, askAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>) {
    this.most = most
    this.askAll = askAll
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // After everything that the same event has set off.
      if (this.waiting.length === 0) process.nextTick(() => this.send())
      this.waiting.push({ asked, resolve, reject })
    })
  }

  private send(): void {
    const { waiting } = this
    this.waiting = []
    for (let from = 0; from < waiting.length; from += this.most) this.sendLot(waiting.slice(from, from + this.most))
  }

  private sendLot(lot: readonly Waiting<Asked, Answer>[]): void {
    this.askAll(lot.map(({ asked }) => asked)).then(
      (answers) => {
        for (const [at, { resolve }] of lot.entries()) resolve(answers[at] as Answer)
      },
      (error: unknown) => {
        if (lot.length === 1 || isLegateError(error, 'store_busy')) for (const { reject } of lot) reject(error)
        else for (const one of lot) this.sendLot([one])
      },
    )
  }
}

interface Waiting<Asked, Answer> {
  readonly asked: Asked
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}
