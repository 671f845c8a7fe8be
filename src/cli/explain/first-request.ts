import type { ExtensionCore } from '../../doors/hooks.ts'
import { type Model, type ModelRequest, modelInfo } from '../../doors/models.ts'
import { type RecipeParameter, readDefinition } from '../../doors/recipe.ts'
import { lookWith, type Turn } from '../../doors/rows.ts'
import { diskFiles } from '../../doors/tools.ts'
import { type AnyAgent, createRuntime, type Json } from '../../index.ts'
import { type Call, isSet } from '../command/command.ts'
import { missingOf, parametersOf } from '../definition/input.ts'
import { definitionFile } from '../definition/load.ts'
import { asUsageError } from '../definition/notices.ts'
import { money } from '../terminal/amounts.ts'
import { canAsk } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { write } from '../terminal/output.ts'

/** The first request an agent's model would get, and the limits of the run. */
export interface FirstRequest {
  /** The request; null if the run would end before the model call. */
  readonly request: ModelRequest | null
  readonly limits: Turn['limits']
  readonly spend: Turn['spend']
  /** The reason why the run would end early, if it would. */
  readonly trouble: string | null
}

/** Stands in for a missing model. It is never called. */
const NO_MODEL: Model = { id: 'none/none', stream: () => NOTHING }
const NOTHING: AsyncIterable<never> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
}

const quiet = () => undefined
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/** Starts a real run in memory and stops it at the model call, so that it shows exactly what would be sent. */
export async function firstRequest(agent: AnyAgent, input: Json): Promise<FirstRequest> {
  const listener = new Listener()
  const runtime = createRuntime({
    model: NO_MODEL,
    files: diskFiles({ workspace: process.cwd() }),
    extensions: [listener.extension],
    // An error is shown among the troubles of the request.
    logger: SILENT,
  })
  try {
    const run = runtime.run(agent, input as never)
    const outcome = await Promise.race([listener.heard, run.result])
    const turn = await lookWith(runtime.store, run.id, (tree) => tree.turn(run.id))
    if (turn === undefined) throw new Error('the run was not recorded')
    const { limits, spend } = turn
    if ('messages' in outcome) {
      await run.cancel()
      return { request: outcome, limits, spend, trouble: null }
    }
    return { request: null, limits, spend, trouble: outcome.error?.message ?? outcome.status }
  } finally {
    await runtime.close()
  }
}

/** Replaces an agent's model: records the first request and sends nothing. */
class Listener {
  private hear: (request: ModelRequest) => void = () => undefined
  readonly heard: Promise<ModelRequest> = new Promise((resolve) => {
    this.hear = resolve
  })
  readonly extension: ExtensionCore = {
    name: 'explain',
    onError: 'fail',
    hooks: {
      wrapModel: (request, _, { signal }) => {
        this.hear(request)
        return new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('')))
      },
    },
  }
}

export interface CostBound {
  /** US dollars; null if unknown. */
  readonly usd: number | null
  /** How the bound was computed, or why it is unknown. */
  readonly how: string
}

/**
 * Computes the most that a run can cost without its subagents: every call fills the model's window at its highest
 * price.
 */
export function costBound(model: string | null, { limits, spend }: Pick<Turn, 'limits' | 'spend'>): CostBound {
  const limit = spend?.limit.usd ?? null
  const byCalls = boundOfCalls(model, { calls: limits.modelCalls, tokens: spend?.limit.tokens ?? null })
  if (limit === null || (byCalls.usd !== null && byCalls.usd < limit)) return byCalls
  return { usd: limit, how: 'the budget, which binds its subagents too' }
}

interface Calls {
  readonly calls: number
  readonly tokens: number | null
}

function boundOfCalls(model: string | null, { calls, tokens }: Calls): CostBound {
  if (model === null) return { usd: null, how: 'no model is named' }
  const { price, contextWindow } = modelInfo(model)
  if (price === null) return { usd: null, how: `the price of ${model} is not known` }
  const dearest = Math.max(price.input, price.output, price.cacheRead, price.cacheWrite)
  if (tokens !== null) return { usd: (tokens * dearest) / 1_000_000, how: `a budget of ${tokens} tokens` }
  if (contextWindow === null) return { usd: null, how: `the context window of ${model} is not known` }
  const usd = (calls * contextWindow * dearest) / 1_000_000
  const usual = (USUAL.calls * (USUAL.input * price.input + USUAL.output * price.output)) / 1_000_000
  const typical = `${USUAL.calls} calls with ${USUAL.input} tokens in and ${USUAL.output} out cost about ${money(usual)}`
  return {
    usd,
    how: `${calls} calls that each fill ${contextWindow} tokens; subagents come on top. As a measure: ${typical}`,
  }
}

/** A short run with tools. The most that a run may cost says little about what it costs. */
const USUAL = { calls: 5, input: 8_000, output: 800 } as const

/** Shows the description and the parameters of a file before it is refused for a missing value. */
export async function showParameters(call: Call): Promise<void> {
  if (canAsk() || isSet(call, 'json')) return
  const file = await definitionFile(call.words[0] ?? '', call.env)
  const definition = await readDefinition(file).catch((error: unknown) => {
    throw asUsageError(error)
  })
  const { name, title, description, parameters } = definition
  if (missingOf(parametersOf(call), parameters).length === 0) return
  await write(
    `${oneLine(title ?? name)}\n  ${oneLine(description)}\n\nParameters\n${parameters.map(lineOf).join('')}\n`,
  )
}

function lineOf({ key, inputType, requirement, description, options, default: fallback }: RecipeParameter): string {
  const choice = inputType === 'select' ? ` of ${options.map(oneLine).join(' | ')}` : ''
  const preset = fallback === null ? '' : `, else ${JSON.stringify(oneLine(fallback))}`
  return `  ${oneLine(key).padEnd(16)} ${inputType}${choice}, ${requirement}${preset}: ${oneLine(description)}\n`
}
