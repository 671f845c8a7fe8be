import { onAbort } from '../../core/base/abort.ts'
import { ModelError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import { anything, flag, list, number, type OptionRules, readOptions, record, text } from '../../core/base/options.ts'
import { type Block, NO_USAGE, type Usage } from '../../core/graph/content.ts'
import type { Model, ModelRequest, Part } from '../../core/model/model.ts'

/** The answer of the model to one call. A string is a text. */
export type ScriptedAnswer = string | ScriptedAnswerFields

export interface ScriptedAnswerFields {
  /** The words of the answer. */
  readonly text?: string
  /** The model's thoughts before the text. */
  readonly reasoning?: string
  /** Streams `text` in these pieces instead of at once. */
  readonly chunks?: readonly string[]
  /** Blocks instead of a text, such as pictures. */
  readonly blocks?: readonly Block[]
  /** The tools it calls. */
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly input: ScriptedInput }[]
  /** The tokens it reports. */
  readonly usage?: Partial<Usage>
  /** The wait before the answer begins. */
  readonly delayMs?: number
  /** Fails with this error, after `text` or `chunks` if there are any. */
  readonly error?: unknown
  /** Whether the stream ends before the answer is complete. */
  readonly cut?: boolean
}

/** JSON. Calls with different fields have types such as `{ k: number; m?: undefined }`: those fit too. */
export type ScriptedInput = Json | { readonly [key: string]: ScriptedInput | undefined } | readonly ScriptedInput[]

const ANSWER: OptionRules<ScriptedAnswerFields> = {
  text,
  reasoning: text,
  chunks: list,
  blocks: list,
  calls: list,
  usage: record,
  delayMs: number(),
  error: anything,
  cut: flag,
}

const answersOrCode = (script: unknown) =>
  Array.isArray(script) || typeof script === 'function' ? null : 'a list of answers, or a function of the request'

export type Script = (request: ModelRequest, call: number) => ScriptedAnswer | Promise<ScriptedAnswer>

export interface ScriptedModel extends Model {
  /** Every request so far, in order. */
  readonly requests: readonly ModelRequest[]
  /** Throws if answers of the script are left. */
  assertComplete(): void
}

/** Makes a model that follows a script: a list of answers, or a function of the request. */
export function scriptedModel(script: readonly ScriptedAnswer[] | Script, id = 'scripted/model'): ScriptedModel {
  readOptions('scriptedModel()', { script, id }, { script: answersOrCode, id: text })
  const requests: ModelRequest[] = []
  const read = (turn: ScriptedAnswer) =>
    typeof turn === 'string' ? { text: turn } : readOptions(`A turn of ${id}`, turn, ANSWER)
  if (typeof script !== 'function') for (const turn of script) read(turn)
  const next = async (request: ModelRequest): Promise<ScriptedAnswerFields> => {
    const call = requests.push(request) - 1
    const turn = typeof script === 'function' ? await script(request, call) : script[call]
    if (turn === undefined && typeof script === 'function') {
      throw new ModelError(
        'model',
        `The script of ${id} gave no answer to call ${call + 1}: return a text or an object.`,
      )
    }
    if (turn === undefined) {
      throw new ModelError('model', `The script of ${id} has ${script.length} answers; this is call ${call + 1}.`)
    }
    return read(turn)
  }
  return {
    id,
    requests,
    async *stream(request, { signal }) {
      const answer = await next(request)
      if (answer.delayMs !== undefined) await delay(answer.delayMs, signal)
      yield* partsOf(answer, requests.length)
    },
    assertComplete: () => {
      if (typeof script === 'function' || requests.length >= script.length) return
      throw new Error(`${script.length - requests.length} of ${script.length} answers of ${id} were not asked for.`)
    },
  }
}

function* partsOf(answer: ScriptedAnswerFields, call: number): Generator<Part> {
  if (answer.reasoning !== undefined) yield { type: 'reasoning-delta', text: answer.reasoning }
  for (const piece of answer.chunks ?? (answer.text === undefined ? [] : [answer.text]))
    yield { type: 'text-delta', text: piece }
  for (const block of answer.blocks ?? []) yield { type: 'block', block }
  if (answer.error !== undefined) throw answer.error
  for (const [at, { id = `call_${call}_${at}`, name, input }] of (answer.calls ?? []).entries()) {
    yield { type: 'tool-call', id, name, input: input as Json }
  }
  if (answer.cut === true) return
  const reason = (answer.calls ?? []).length > 0 ? 'tool-calls' : 'stop'
  yield { type: 'finish', reason, usage: { ...NO_USAGE, ...answer.usage } }
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget()
      resolve()
    }, ms)
    const forget = onAbort(signal, () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
