/** The words of artifacts that were shown, so that a stream which is opened again repeats none of them. */
export class ShownWords {
  private readonly shown: Map<string, string> = new Map()
  /** How far in them the stream of now is. */
  private readonly at: Map<string, number> = new Map()

  /** A stream begins: it may tell all of it once more. */
  begin(): void {
    for (const id of this.shown.keys()) this.at.set(id, 0)
  }

  /** The new words of an artifact. `isMore`: they follow those that came before; else they are all that it has. */
  rest(id: string, words: string, isMore: boolean): string {
    const shown = this.shown.get(id) ?? ''
    const at = isMore ? (this.at.get(id) ?? shown.length) : 0
    const ahead = shown.slice(at)
    const isRepeat = ahead.startsWith(words)
    if (!isRepeat) this.shown.set(id, shown.slice(0, at) + words)
    this.at.set(id, at + words.length)
    if (isRepeat) return ''
    return words.startsWith(ahead) ? words.slice(ahead.length) : words
  }
}
