import type { LiveBody } from '../graph/event.ts'

/** Characters of one answer: what goes on beyond is not an answer. */
export const ANSWER_LIMIT = 16_000_000

/** How much a model has said in one answer: texts, thoughts, calls, files and all that stands beside them. */
export class AnswerSize {
  private size = 0
  /** Of that, what comes once more as a whole. */
  private announced = 0

  get isTooLarge(): boolean {
    return this.size > ANSWER_LIMIT
  }

  hear(body: LiveBody & { readonly text: string }): void {
    this.size += body.text.length
    if (body.type !== 'text-delta') this.announced += body.text.length
  }

  /** A call or a block. What its deltas said already is not counted again. */
  add(said: unknown): void {
    const size = sizeIn(said)
    const known = Math.min(size, this.announced)
    this.announced -= known
    this.size += size - known
  }
}

/** All texts and keys, and a few characters for each value. A model of one's own may give what never ends. */
function sizeIn(said: unknown): number {
  const open: unknown[] = [said]
  let size = 0
  for (let value = open.pop(); value !== undefined && size <= ANSWER_LIMIT; value = open.pop()) {
    size += typeof value === 'string' ? value.length + VALUE_SIZE : VALUE_SIZE
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Object.entries(value)) {
      size += key.length
      if (item !== undefined) open.push(item)
    }
  }
  return size
}

const VALUE_SIZE = 8
