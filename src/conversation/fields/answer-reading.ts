import type { CheckedSchema } from '../../base/schema.ts'
import type { FieldEvent } from '../../output/field-event.ts'
import { FieldParser } from '../../output/field-parser.ts'

/** One answer while it is read: what was heard of its text, and the parser of it. */
export class AnswerReading {
  readonly parser: FieldParser
  private heard = ''

  constructor(schema: CheckedSchema | null) {
    this.parser = new FieldParser(schema, {})
  }

  /** The next piece; where deltas say all so far, what is new in it. */
  hear(text: string, isWhole: boolean): readonly FieldEvent[] {
    const piece = isWhole ? text.slice(this.heard.length) : text
    this.heard += piece
    return this.parser.push(piece)
  }

  /** Did the text begin with what was heard? What was streamed may be known only in part. */
  isOf(text: string): boolean {
    return text.startsWith(this.heard)
  }
}
