/**
 * When the table was last compared with the providers' published prices. Prices change: `prices` of the config file
 * win.
 */
export const PRICES_AS_OF = '2026-11-15'

export interface TableRow {
  readonly contextWindow: number | null
  /** US dollars per million tokens; null where no single price fits all calls. */
  readonly input: number | null
  readonly output: number | null
  /** Default: the price of input. */
  readonly cacheRead?: number
  readonly cacheWrite?: number
  /** For calls whose input is longer than `above`. */
  readonly long?: {
    readonly above: number
    readonly input: number
    readonly output: number
    readonly cacheRead: number
  }
}

const MILLION = 1_000_000
const GEMINI_WINDOW = 1_048_576

/** Keys are `provider/model`, without dates of versions. */
export const PRICE_TABLE: Readonly<Record<string, TableRow>> = {
  'openai/gpt-5.5': { contextWindow: MILLION, input: 5, output: 30, cacheRead: 0.5 },
  'openai/gpt-5.5-pro': { contextWindow: MILLION, input: 30, output: 180 },
  'openai/gpt-5.4': { contextWindow: MILLION, input: 2.5, output: 15, cacheRead: 0.25 },
  'openai/gpt-5.4-mini': { contextWindow: null, input: 0.75, output: 4.5, cacheRead: 0.075 },
  'openai/gpt-5.4-nano': { contextWindow: null, input: 0.2, output: 1.25, cacheRead: 0.02 },
  'openai/gpt-5.2': { contextWindow: 400_000, input: 1.75, output: 14, cacheRead: 0.175 },
  'openai/gpt-5.1': { contextWindow: 400_000, input: 1.25, output: 10, cacheRead: 0.125 },
  'openai/gpt-5': { contextWindow: 400_000, input: 1.25, output: 10, cacheRead: 0.125 },
  'openai/gpt-5-mini': { contextWindow: 400_000, input: 0.25, output: 2, cacheRead: 0.025 },
  'openai/gpt-5-nano': { contextWindow: 400_000, input: 0.05, output: 0.4, cacheRead: 0.005 },
  'openai/gpt-4.1': { contextWindow: 1_047_576, input: 2, output: 8, cacheRead: 0.5 },
  'openai/gpt-4.1-mini': { contextWindow: 1_047_576, input: 0.4, output: 1.6, cacheRead: 0.1 },
  'openai/gpt-4.1-nano': { contextWindow: 1_047_576, input: 0.1, output: 0.4, cacheRead: 0.025 },
  'openai/gpt-4o': { contextWindow: 128_000, input: 2.5, output: 10, cacheRead: 1.25 },
  'openai/gpt-4o-mini': { contextWindow: 128_000, input: 0.15, output: 0.6, cacheRead: 0.075 },
  'openai/o3': { contextWindow: 200_000, input: 2, output: 8, cacheRead: 0.5 },
  'openai/o4-mini': { contextWindow: 200_000, input: 1.1, output: 4.4, cacheRead: 0.275 },

  'anthropic/claude-fable-5-1': claude(10, 50, MILLION),
  'anthropic/claude-fable-5': claude(10, 50, MILLION),
  'anthropic/claude-opus-5-5': claude(4, 20, MILLION),
  'anthropic/claude-opus-5': claude(5, 25, MILLION),
  'anthropic/claude-opus-4-8': claude(5, 25, MILLION),
  'anthropic/claude-opus-4-7': claude(5, 25, MILLION),
  'anthropic/claude-opus-4-6': claude(5, 25, MILLION),
  'anthropic/claude-opus-4-5': claude(5, 25, 200_000),
  'anthropic/claude-opus-4-1': claude(15, 75, 200_000),
  'anthropic/claude-sonnet-5-5': claude(2, 10, MILLION),
  'anthropic/claude-sonnet-5': claude(2, 10, MILLION),
  'anthropic/claude-sonnet-4-6': claude(3, 15, MILLION),
  'anthropic/claude-sonnet-4-5': claude(3, 15, 200_000),
  'anthropic/claude-haiku-5-5': { contextWindow: MILLION, input: null, output: null },
  'anthropic/claude-haiku-4-5': claude(1, 5, 200_000),

  'google/gemini-3.5-flash': { contextWindow: GEMINI_WINDOW, input: 1.5, output: 9, cacheRead: 0.15 },
  'google/gemini-3.1-pro-preview': {
    contextWindow: GEMINI_WINDOW,
    input: 2,
    output: 12,
    cacheRead: 0.2,
    long: { above: 200_000, input: 4, output: 18, cacheRead: 0.4 },
  },
  'google/gemini-2.5-pro': {
    contextWindow: GEMINI_WINDOW,
    input: 1.25,
    output: 10,
    cacheRead: 0.125,
    long: { above: 200_000, input: 2.5, output: 15, cacheRead: 0.25 },
  },
  'google/gemini-2.5-flash': { contextWindow: GEMINI_WINDOW, input: 0.3, output: 2.5, cacheRead: 0.03 },
  'google/gemini-2.5-flash-lite': { contextWindow: GEMINI_WINDOW, input: 0.1, output: 0.4, cacheRead: 0.01 },
}

/** Reading Claude's cache costs a tenth of the input, writing it for five minutes a quarter more. */
function claude(input: number, output: number, contextWindow: number): TableRow {
  return { contextWindow, input, output, cacheRead: input / 10, cacheWrite: input * 1.25 }
}
