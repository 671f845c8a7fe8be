import { expect, test } from 'vitest'
import { Chance } from './chance.ts'
import { watchWork } from './pace.ts'

export interface Reader {
  /** Reads a text. What it gives or throws does not matter. */
  readonly read: (text: string) => unknown
  /** The words of its language, and what people write by mistake. */
  readonly tokens: readonly string[]
  /** The most characters that it takes. */
  readonly most: number
  /** What stands around the tokens, as in `(body) => '{{ ' + body + ' }}'`. */
  readonly around?: (body: string) => string
  /** It is read piece by piece as it comes, and others get their turn in between: all of it may take longer than a second. */
  readonly isStreamed?: boolean
}

const isFull = process.env['LEGATE_FULL'] === '1'
/** How many seeded mixtures of tokens, and which part of the longest text is read. */
const { SEEDS, PART } = isFull ? { SEEDS: 60, PART: 1 } : { SEEDS: 3, PART: 32 }
const FEWEST_MS = 20
const MOST_GROWTH = 6
const MOST_MS = 1_000
const TIMES = 5
/** So often it is tried once more, later each time, before a reader is called slow: the machine may be busy for a while. */
const LATER_TIMES = 8
const PAUSE_MS = 250

/**
 * Four times the text takes at most six times the time, whatever is in it; the longest takes at most a second. The tokens of the
 * language are read one by one, each again and again, and then in mixtures.
 */
export function testGrowth(name: string, reader: Reader): void {
  test(`${name}: reading it takes time in proportion to its length`, { timeout: 3_600_000 }, async () => {
    const chance = new Chance(name.length)
    const mixtures = Array.from({ length: SEEDS }, () => mixture(chance, reader.tokens))
    for (const text of [...reader.tokens.map(repeated), ...mixtures]) expect(await findGrowth(reader, text)).toBe('')
  })
}

type TextMaker = (length: number) => string

/** What is wrong; '' where nothing is. */
async function findGrowth(reader: Reader, makeText: TextMaker): Promise<string> {
  let shorter: Measure | undefined
  for (const part of [256, 64, 16, 4, 1]) {
    const longer = new Measure(reader, makeText(Math.ceil(reader.most / PART / part)))
    await longer.again()
    const found =
      shorter === undefined
        ? ''
        : await compare(shorter, longer, reader.isStreamed ? Number.POSITIVE_INFINITY : MOST_MS)
    if (found !== '') return found
    shorter = longer
  }
  return ''
}

class Measure {
  readonly text: string
  /** Of all times that it was read. */
  leastMs = Number.POSITIVE_INFINITY
  private readonly read: Reader['read']

  constructor({ read, around = (body) => body }: Reader, text: string) {
    this.read = read
    this.text = around(text)
  }

  async again(): Promise<void> {
    const work = watchWork()
    try {
      await this.read(this.text)
    } catch {
      // An answer too.
    }
    this.leastMs = Math.min(this.leastMs, work())
  }

  toString(): string {
    return `${this.leastMs.toFixed(1)} ms for ${this.text.length} characters`
  }
}

/** Both are read again, in turns, as long as they look wrong: another program may have been in the way. */
async function compare(shorter: Measure, longer: Measure, most: number): Promise<string> {
  const isFine = () => longer.leastMs <= Math.min(most, Math.max(shorter.leastMs, FEWEST_MS) * MOST_GROWTH)
  for (let time = 1; time < TIMES + LATER_TIMES && !isFine(); time++) {
    if (time >= TIMES) await pause((time - TIMES + 1) * PAUSE_MS)
    await shorter.again()
    await longer.again()
  }
  return isFine() ? '' : `${JSON.stringify(longer.text.slice(0, 100))}...: ${shorter}, ${longer}`
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function repeated(unit: string): TextMaker {
  return (length) => unit.repeat(Math.ceil(length / unit.length))
}

/** A few tokens in turns; one half of these and one of those; or a long jumble. */
function mixture(chance: Chance, tokens: readonly string[]): TextMaker {
  const some = (least: number, most: number) =>
    Array.from({ length: least + chance.below(most - least + 1) }, () => chance.pick(tokens)).join('')
  const kind = chance.below(3)
  if (kind === 0) return repeated(some(2, 4))
  if (kind === 1) return repeated(some(500, 1_000))
  const [first, second] = [repeated(some(1, 2)), repeated(some(1, 2))]
  return (length) => first(length / 2) + second(length / 2)
}
