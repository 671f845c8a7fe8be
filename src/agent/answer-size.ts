import { JSON_LIMITS } from '../base/json.ts'
import type { LiveBody } from '../graph/event.ts'

/** Characters of one answer: what goes on beyond is not an answer. */
export const ANSWER_LIMIT: number = JSON_LIMITS.maxBytes

/** How much a model has said in one answer: texts, thoughts, calls, files and all that stands beside them. */
export class AnswerSize {
  private size = 0
  /** Of that, what comes once more as a whole. */
  private announced = 0
  private values = 0

  /** What is too much of it; null where nothing is. */
  get excess(): string | null {
    if (this.size > ANSWER_LIMIT) return `is longer than ${ANSWER_LIMIT / 1e6} MB`
    return this.values > JSON_LIMITS.maxValues ? `has more than ${JSON_LIMITS.maxValues} values` : null
  }

  hear(body: LiveBody & { readonly text: string }): void {
    this.size += body.text.length
    if (body.type !== 'text-delta') this.announced += body.text.length
  }

  /** A call or a block. What its deltas said already is not counted again. */
  add(said: unknown): void {
    const { size, values } = sizeIn(said)
    this.values += values
    const known = Math.min(size, this.announced)
    this.announced -= known
    this.size += size - known
  }

  /** Arguments that came as text, read: their characters are counted already. */
  addValues(input: unknown): void {
    this.values += sizeIn(input).values
  }
}

/** All texts and keys, and a few characters for each value. A model of one's own may give what never ends. */
function sizeIn(said: unknown): { readonly size: number; readonly values: number } {
  const open: unknown[] = [said]
  let size = 0
  let values = 0
  for (let value = open.pop(); value !== undefined && size <= ANSWER_LIMIT; value = open.pop()) {
    values++
    size += typeof value === 'string' ? value.length + VALUE_SIZE : VALUE_SIZE
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Object.entries(value)) {
      size += key.length
      if (item !== undefined) open.push(item)
    }
  }
  return { size, values }
}

const VALUE_SIZE = 8
