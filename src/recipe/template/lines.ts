/** The lines of a text, counted from 1. Offsets may be asked for in any order and as often as one likes. */
export class Lines {
  private readonly text: string
  private starts: number[] | undefined

  constructor(text: string) {
    this.text = text
  }

  at(offset: number): number {
    this.starts ??= startsIn(this.text)
    let [low, high] = [0, this.starts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.starts[middle] ?? 0) <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}

function startsIn(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}
