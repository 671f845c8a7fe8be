const ENTER = /^[\r\n]$/
const BACKSPACE = /^[\b\u007f]$/
/** Enough to see that it is no answer. */
const LONGEST = 12

/** What a person types, key by key, until Enter. */
export class TypedLine {
  text = ''

  /** The line, when this key ends it. */
  take(key: string): string | undefined {
    if (ENTER.test(key)) {
      const line = this.text
      this.clear()
      return line
    }
    if (BACKSPACE.test(key)) this.text = this.text.slice(0, -1)
    else if (/^[ -~]$/.test(key) && this.text.length < LONGEST) this.text += key
    return undefined
  }

  clear(): void {
    this.text = ''
  }
}
