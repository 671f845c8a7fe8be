import type { WorkMeter } from './work-meter.ts'

/** Makes a pattern of a JSON Schema ready; the validator wants its source to be named. */
export interface PatternReader {
  (pattern: string): { test(text: string): boolean }
  code: string
}

/**
 * What reads the patterns of a schema; undefined where it has none. A pattern is compared with a text in linear time, so none can
 * run away. What cannot be done in linear time (lookahead, lookbehind, backreferences, counts above 1,000) is refused.
 */
export async function patternReaderFor(schema: unknown, meter: WorkMeter): Promise<PatternReader | undefined> {
  if (!JSON.stringify(schema).includes('"pattern')) return undefined
  const { RE2JS } = await import('re2js')
  const read = (pattern: string) => {
    try {
      const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
      return {
        test: (text: string) => {
          meter.read(text)
          return compiled.test(text)
        },
        toString: () => pattern,
      }
    } catch (error) {
      throw new Error(`the pattern ${JSON.stringify(pattern.slice(0, 100))} cannot be used. ${ADVICE}`, {
        cause: error,
      })
    }
  }
  return Object.assign(read, { code: 'readPattern' })
}

const ADVICE =
  'Write it without lookahead, lookbehind, backreferences and counts above 1000, or check the text with code: give a zod schema.'
