/** The value of the one field of an object, taken out of its text while that comes. Any other text stays as it is. */
export class FieldText {
  private readonly field: string
  private state: 'before' | 'inside' | 'beside' | 'behind' = 'before'
  private held = ''
  private depth = 0
  private isString = false
  private isEscaped = false

  constructor(field: string) {
    this.field = field
  }

  /** What of this piece, and of those held back before it, is known to be said. */
  hear(text: string): string {
    if (this.state === 'beside') return text
    if (this.state !== 'before') return this.take(text)
    this.held += text
    const start = this.startIn(this.held)
    if (start === undefined) return ''
    const rest = this.held.slice(start)
    this.held = ''
    this.state = start === 0 ? 'beside' : 'inside'
    return start === 0 ? rest : this.take(rest)
  }

  /** What was held back of a text that ended before it was known what it is. The next text begins anew. */
  end(): string {
    const rest = this.held
    this.held = ''
    this.state = 'before'
    this.depth = 0
    this.isString = false
    return rest
  }

  /** Where the value begins; 0 where this is no such object, undefined while that is not known. */
  private startIn(text: string): number | undefined {
    const opening = `{"${this.field}":`
    let known = 0
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      if (/\s/.test(character)) continue
      if (known === opening.length) return at
      if (character !== opening[known++]) return 0
    }
    return text.length > MOST_HELD ? 0 : undefined
  }

  private take(text: string): string {
    if (this.state === 'behind') return ''
    for (let at = 0; at < text.length; at++) {
      if (!this.isEndAt(text.charAt(at))) continue
      this.state = 'behind'
      return text.slice(0, at)
    }
    return text
  }

  private isEndAt(character: string): boolean {
    if (this.isString) {
      if (this.isEscaped) this.isEscaped = false
      else if (character === '\\') this.isEscaped = true
      else if (character === '"') this.isString = false
      return false
    }
    if (character === '"') this.isString = true
    if (character === '{' || character === '[') this.depth++
    if (character === '}' || character === ']') this.depth--
    return this.depth < 0
  }
}

/** Nobody begins an object with so many spaces. */
const MOST_HELD = 1_000
