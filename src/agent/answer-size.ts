import { JSON_LIMITS } from '../base/json.ts'
import type { ToolCall } from '../graph/content.ts'
import type { LiveBody } from '../graph/event.ts'

/** Characters of one answer: what goes on beyond is not an answer. */
export const ANSWER_LIMIT: number = JSON_LIMITS.maxBytes

/** Of that, what calls of tools may have together: it is stored with the answer, with each call and with what it starts. */
export const CALLS_LIMIT = 4_000_000

/** How much a model has said in one answer: texts, thoughts, calls, files and all that stands beside them. */
export class AnswerSize {
  private size = 0
  /** Of that, what comes once more as a whole. */
  private announced = 0
  private calls = 0
  private values = 0

  /** What is too much of it; null where nothing is. */
  get excess(): string | null {
    if (this.size > ANSWER_LIMIT) return `is longer than ${ANSWER_LIMIT / 1e6} MB`
    if (this.calls > CALLS_LIMIT) return `has calls of more than ${CALLS_LIMIT / 1e6} MB`
    return this.values > JSON_LIMITS.maxValues ? `has more than ${JSON_LIMITS.maxValues} values` : null
  }

  hear(body: LiveBody & { readonly text: string }): void {
    const length = writtenLength(body.text)
    this.size += length
    if (body.type !== 'text-delta') this.announced += length
  }

  /** A call or a block. What its deltas said already is not counted again. */
  add(said: unknown): void {
    const { size, values } = sizeIn(said)
    this.values += values
    const known = Math.min(size, this.announced)
    this.announced -= known
    this.size += size - known
  }

  /** A call that was read. The characters and values of its part are counted already, but not values in a text. */
  addCall(call: ToolCall, isText: boolean): void {
    const { size, values } = sizeIn(call.input)
    this.calls += size + call.id.length + call.name.length
    if (isText) this.values += values
  }
}

/** All texts and keys, and a few characters for each value. A model of one's own may give what never ends. */
function sizeIn(said: unknown): { readonly size: number; readonly values: number } {
  const open: unknown[] = [said]
  let size = 0
  let values = 0
  for (let value = open.pop(); value !== undefined && size <= ANSWER_LIMIT; value = open.pop()) {
    values++
    size += typeof value === 'string' ? writtenLength(value) + VALUE_SIZE : VALUE_SIZE
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Object.entries(value)) {
      size += writtenLength(key)
      if (item !== undefined) open.push(item)
    }
  }
  return { size, values }
}

const VALUE_SIZE = 8

/** Characters in JSON: most control characters, and halves of a character, are written with six. */
function writtenLength(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x20 && (code & 0xf800) !== 0xd800) continue
    const isPair = code < 0xdc00 && code >= 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (isPair) at++
    else if (code !== LINE_FEED) length += ESCAPED - 1
  }
  return length
}

const ESCAPED = 6
const LINE_FEED = 10
