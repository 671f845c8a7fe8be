const ENTER = /^[\r\n]$/
const BACKSPACE = /^[\b\u007f]$/

/** What a person types, key by key, until Enter. */
export class TypedLine {
  text = ''
  /** What is longer is no answer, or more than anybody types. */
  private readonly longest: number

  constructor(longest: number) {
    this.longest = longest
  }

  /** The line, when this key ends it. */
  take(key: string): string | undefined {
    if (ENTER.test(key)) {
      const line = this.text
      this.clear()
      return line
    }
    if (BACKSPACE.test(key)) this.text = this.text.slice(0, this.text.length - lastLength(this.text))
    else if (/^\P{Cc}$/u.test(key) && this.text.length < this.longest) this.text += key
    return undefined
  }

  clear(): void {
    this.text = ''
  }
}

/** Of the last character, in code units. */
function lastLength(text: string): number {
  return [...text.slice(-2)].at(-1)?.length ?? 0
}
