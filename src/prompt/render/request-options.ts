import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { JsonRecord } from '../slots/slot.ts'

export interface RequestOptions {
  /** `options.model`: the model of this request; null where the agent's own is meant. */
  readonly model: string | null
  readonly settings: RequestSettings
  /** Options that no setting is known for, for the provider's own request. */
  readonly providerOptions: { readonly [option: string]: Json }
}

export interface RequestSettings {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly maxOutputTokens?: number
  readonly stopSequences?: readonly string[]
  readonly seed?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
}

/** The options of a prompt by the names of our settings; those of chat APIs mean the same. */
export function requestOptionsOf({ model = null, ...options }: JsonRecord): RequestOptions {
  if (model !== null && typeof model !== 'string') refuse('model', 'a text, such as "openai/gpt-5"', model)
  const settings: Record<string, Json> = {}
  const others: [string, Json][] = []
  for (const [name, value] of Object.entries(options)) {
    const setting = SETTINGS.get(name)
    if (setting === undefined) others.push([name, value])
    else settings[setting] = setting === 'stopSequences' ? textsOf(name, value) : numberOf(name, value)
  }
  return { model: model as string | null, settings, providerOptions: Object.fromEntries(others) }
}

const SETTINGS: ReadonlyMap<string, string> = new Map([
  ['temperature', 'temperature'],
  ['topP', 'topP'],
  ['top_p', 'topP'],
  ['topK', 'topK'],
  ['top_k', 'topK'],
  ['maxOutputTokens', 'maxOutputTokens'],
  ['max_tokens', 'maxOutputTokens'],
  ['max_completion_tokens', 'maxOutputTokens'],
  ['stopSequences', 'stopSequences'],
  ['stop', 'stopSequences'],
  ['seed', 'seed'],
  ['presencePenalty', 'presencePenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['frequencyPenalty', 'frequencyPenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
])

function numberOf(name: string, value: Json): number {
  return typeof value === 'number' ? value : refuse(name, 'a number', value)
}

function textsOf(name: string, value: Json): string[] {
  const texts = Array.isArray(value) ? value : [value]
  return texts.map((text) => (typeof text === 'string' ? text : refuse(name, 'a text or a list of texts', value)))
}

function refuse(name: string, what: string, value: Json): never {
  throw new DefinitionError('definition', `prompt: options.${name} is ${what}, not ${JSON.stringify(value)}.`)
}
