/**
 * Where `}}` and `%}` close what begins at each place of a text: strings are passed over, and braces inside an expression.
 * One pass from the end to the beginning finds it for all places.
 */
export class ClosingTable {
  private readonly never: number
  private readonly variables: readonly number[]
  private readonly tags: readonly number[]

  constructor(text: string) {
    const { length } = text
    this.never = length + 1
    const table = () => new Array<number>(length + 3).fill(this.never)
    const [double, single, braces, variables, tags] = [table(), table(), table(), table(), table()]
    let after = 0
    for (let at = length - 1; at >= 0; at--) {
      const code = text.charCodeAt(at)
      const step = code === BACKSLASH ? at + 2 : at + 1
      double[at] = code === DOUBLE ? at + 1 : (double[step] as number)
      single[at] = code === SINGLE ? at + 1 : (single[step] as number)
      const next = this.nextOf(code, at, { double, single, braces })
      braces[at] = code === CLOSE ? at + 1 : (braces[next] as number)
      variables[at] = code === CLOSE && after === CLOSE ? at + 2 : (variables[next] as number)
      tags[at] = code === PERCENT && after === CLOSE ? at + 2 : (tags[next] as number)
      after = code
    }
    this.variables = variables
    this.tags = tags
  }

  /** The place behind the `}}` that closes a variable whose inside begins here. */
  endOfVariable(from: number): number | undefined {
    return this.known(this.variables[from])
  }

  /** The place behind the `%}` that closes a tag whose inside begins here. */
  endOfTag(from: number): number | undefined {
    return this.known(this.tags[from])
  }

  private known(end: number | undefined): number | undefined {
    return end === this.never ? undefined : end
  }

  /** The place behind the character, the string or the braces that begin here. */
  private nextOf(code: number, at: number, { double, single, braces }: Inner): number {
    if (code === DOUBLE) return double[at + 1] as number
    if (code === SINGLE) return single[at + 1] as number
    return code === OPEN ? (braces[at + 1] as number) : at + 1
  }
}

/** Where a string or a pair of braces ends, of which this place is inside. */
interface Inner {
  readonly double: readonly number[]
  readonly single: readonly number[]
  readonly braces: readonly number[]
}

const DOUBLE = 34
const PERCENT = 37
const SINGLE = 39
const BACKSLASH = 92
const OPEN = 123
const CLOSE = 125
