// Large answers: one of a principal at a time, until its last byte is taken.
//
// Stays true:
// - What waits for its turn is made when the turn has come, and holds nothing before.
// - What is read has a most. A request that did something is answered, however large the answer is.

import { jsonBytes } from '../../core/base/page/json-bytes.ts'
import { Problem } from '../http/problem/problem.ts'
import type { Answer } from '../http/table/route.ts'
import { Turns } from './turns.ts'

/** An answer and, where it is large, what ends its turn: called when all of it was taken, or nobody takes more. */
export interface SentAnswer extends Answer {
  readonly sent?: () => void
}

/** Answers larger than this take turns. */
const LARGE_BYTES = 1_000_000
/** A page has 8 MB; this is for what has no pages. */
const MOST_BYTES = 64_000_000

export interface AnswerRequest {
  /** Whose turn it is. */
  readonly key: string
  /** The path that was asked for, and by whom. */
  readonly address: string
  readonly signal: AbortSignal
  /** Reads only: it can be made again. */
  readonly readsOnly: boolean
}

export class LargeAnswers {
  private readonly turns: Turns = new Turns(1)
  /** Addresses whose last answer was large: it is not made before its turn. */
  private readonly known: Set<string> = new Set()

  /** Makes an answer, a large one when it is its turn. */
  async make(asked: AnswerRequest, make: () => Promise<Answer>): Promise<SentAnswer> {
    const { key, address, readsOnly } = asked
    const isBusy = this.turns.isBusy(key)
    if (isBusy && readsOnly && this.known.has(address)) return this.inTurn(asked, make)
    // Answers that were asked for together are not made in one go: others come in between.
    if (isBusy) await new Promise((resolve) => setImmediate(resolve))
    const answer = await make()
    if (!isLarge(answer)) return answer
    this.know(address)
    if (readsOnly && this.turns.isBusy(key)) return this.inTurn(asked, make)
    return this.inTurn(asked, async () => answer)
  }

  private async inTurn(
    { key, address, signal, readsOnly }: AnswerRequest,
    make: () => Promise<Answer>,
  ): Promise<SentAnswer> {
    const sent = await this.turns.enter(key, signal)
    try {
      const answer = await make()
      if (!isLarge(answer)) this.known.delete(address)
      if (readsOnly && bytesOf(answer, MOST_BYTES) > MOST_BYTES) throw tooLarge()
      return { ...answer, sent }
    } catch (error) {
      sent()
      throw error
    }
  }

  private know(address: string): void {
    if (this.known.size >= MOST_KNOWN) this.known.clear()
    this.known.add(address)
  }
}

const MOST_KNOWN = 10_000

/** Lines are sent as they are read, and a store may hold all that it reads. */
function isLarge(answer: Answer): boolean {
  return answer.lines !== undefined || bytesOf(answer, LARGE_BYTES) > LARGE_BYTES
}

function bytesOf({ json, text, bytes }: Answer, most: number): number {
  return bytes?.length ?? (text === undefined ? jsonBytes(json, most) : text.length)
}

function tooLarge(): Problem {
  const detail = `The answer has more than ${MOST_BYTES / 1_000_000} MB. Read its parts: runs, nodes and results have pages of their own.`
  return new Problem('too_large', detail)
}
