import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { flag, type OptionRules, readOptions, record } from '../base/options.ts'
import { type MessagesOptions, type PromptMessage, type TextOptions, toMessages, toText } from './render/to-messages.ts'
import { type PromptRequest, type RequestRenderOptions, toRequest } from './render/to-request.ts'
import { jsonPrompt, yamlPrompt } from './render/yaml-text.ts'
import type { OutputOf, OutputShape } from './shape/shape-schema.ts'
import { type LayerName, type Manner, NO_LAYERS, say, viewOf } from './slots/layer.ts'
import { frozen, type Mappings, readMappings } from './slots/placeholder.ts'
import { readSlot } from './slots/read-slot.ts'
import { type Layers, SchemaOutput, type Slot } from './slots/slot.ts'

export interface SayOptions {
  /** What stands for `${name}` in keys and texts. */
  readonly mappings?: Mappings | undefined
  /** Say it for every request of the agent, not only for this one. */
  readonly always?: boolean | undefined
}

const SAY: OptionRules<SayOptions> = { mappings: record, always: flag }

/** A slot, or a key of your own. */
export type SlotKey = Slot | (string & {})

/**
 * What a model is told, in two layers: the agent's, which every request shares, and the request's over it. Nothing
 * changes a prompt: every method gives a new one, so that requests that run at once cannot meet.
 */
export class Prompt<Out = unknown> {
  readonly layers: Layers
  /** Only for the compiler: what an answer is. */
  declare readonly answer?: Out

  constructor(layers: Layers = NO_LAYERS) {
    this.layers = layers
  }

  /** Merges: objects key by key, lists get what they do not have yet, all else is replaced. */
  set(slot: SlotKey, value: unknown, options: SayOptions = {}): this {
    return this.say(slot, value, { ...options, manner: 'set' })
  }

  /** Says this instead of what the layer said. */
  replace(slot: SlotKey, value: unknown, options: SayOptions = {}): this {
    return this.say(slot, value, { ...options, manner: 'replace' })
  }

  /** Puts more at the end of what the slot shows, as a list. */
  add(slot: SlotKey, value: unknown, options: SayOptions = {}): this {
    return this.say(slot, value, { ...options, manner: 'add' })
  }

  /** The slot says nothing, whatever the agent says; with `always` the agent says nothing. */
  remove(slot: SlotKey, options: Pick<SayOptions, 'always'> = {}): this {
    return this.say(slot, null, { ...options, manner: 'replace' })
  }

  system(value: unknown, options?: SayOptions): this {
    return this.set('system', value, options)
  }

  developer(value: unknown, options?: SayOptions): this {
    return this.set('developer', value, options)
  }

  /** A rule the model must keep: part of `system`, and pointed at in `instruct`. */
  rule(value: unknown, options?: SayOptions): this {
    return this.system({ rule: value }, options).add('instruct', 'Keep to the rules in {system.rule}.', options)
  }

  /** Who the model is: part of `system`, and pointed at in `instruct`. */
  role(value: unknown, options?: SayOptions): this {
    return this.system({ your_role: value }, options).add('instruct', 'Answer as {system.your_role}.', options)
  }

  /** Whom it talks to: part of `system`, and pointed at in `instruct`. */
  userInfo(value: unknown, options?: SayOptions): this {
    const pointer = 'Take into account who you talk to: {system.user_info}.'
    return this.system({ user_info: value }, options).add('instruct', pointer, options)
  }

  /** These messages and no others. */
  chatHistory(value: unknown, options?: SayOptions): this {
    return this.replace('chat_history', value, options)
  }

  addChatHistory(value: unknown, options?: SayOptions): this {
    return this.add('chat_history', value, options)
  }

  info(value: unknown, options?: SayOptions): this {
    return this.set('info', value, options)
  }

  tools(value: unknown, options?: SayOptions): this {
    return this.set('tools', value, options)
  }

  /** These results and no others, by what they were wanted for. */
  actionResults(value: unknown, options?: SayOptions): this {
    return this.replace('action_results', value, options)
  }

  addActionResults(value: unknown, options?: SayOptions): this {
    return this.set('action_results', value, options)
  }

  instruct(value: unknown, options?: SayOptions): this {
    return this.set('instruct', value, options)
  }

  examples(value: unknown, options?: SayOptions): this {
    return this.set('examples', value, options)
  }

  input(value: unknown, options?: SayOptions): this {
    return this.set('input', value, options)
  }

  attachment(value: unknown, options?: SayOptions): this {
    return this.set('attachment', value, options)
  }

  /** What the answer must be: a schema of zod and the like, or a shape, `{ reply: 'str' }`. */
  output<const S extends OutputShape>(shape: S, options?: SayOptions): Prompt<OutputOf<S>> {
    return this.set('output', shape, options) as unknown as Prompt<OutputOf<S>>
  }

  outputFormat(format: string, options?: SayOptions): this {
    return this.set('output_format', format, options)
  }

  /** Options of the model call: `model`, `temperature`, and what its provider knows. */
  options(value: { readonly [option: string]: unknown }, options?: Pick<SayOptions, 'always'>): this {
    return this.set('options', value, options)
  }

  /** What the slot shows, or what one layer says in it; undefined where nothing was said. Frozen. */
  get(slot: SlotKey, layer?: LayerName): Json | undefined {
    const value = (layer === undefined ? viewOf(this.layers) : this.layers[layer]).get(slot)
    if (value instanceof SchemaOutput) return { $schema: value.checked.jsonSchema as { [key: string]: Json } }
    return value === undefined ? undefined : frozen(value)
  }

  /** As one text. Throws EmptyPromptError where nothing is asked. */
  toText(options?: TextOptions): string {
    return toText(viewOf(this.layers), options)
  }

  /** As messages of a chat. Throws EmptyPromptError where nothing is asked. */
  toMessages(options?: MessagesOptions): PromptMessage[] {
    return toMessages(viewOf(this.layers), options)
  }

  /** As a request of a model: messages, tools, output schema, settings. Throws EmptyPromptError where nothing is asked. */
  toRequest(options?: RequestRenderOptions): PromptRequest<Out> {
    return toRequest<Out>(viewOf(this.layers), options)
  }

  /** As a prompt file. What it loads to renders the same. */
  toYamlPrompt(): string {
    return yamlPrompt(this.layers)
  }

  /** As a prompt file. What it loads to renders the same. */
  toJsonPrompt(): string {
    return jsonPrompt(this.layers)
  }

  /** A prompt of the same kind over other layers: for subclasses that are more than their layers. */
  protected withLayers(layers: Layers): this {
    return new Prompt<Out>(layers) as this
  }

  private say(slot: string, given: unknown, options: SayOptions & { readonly manner: Manner }): this {
    const { manner, ...said } = options
    const { mappings, always = false } = readOptions<SayOptions>(`prompt.${manner}(slot, value, options)`, said, SAY)
    if (slot === '') throw new DefinitionError('definition', 'prompt: a key needs a name.')
    const value = given === undefined ? null : readSlot(slot, given, readMappings(mappings))
    return this.withLayers(say(this.layers, { layer: always ? 'agent' : 'request', slot, value, manner }))
  }
}

/** A prompt that says this for every request, by slot: `prompt({ system: 'You are brief.' }).input('Hello')`. */
export function prompt(always: { readonly [slot in SlotKey]?: unknown } = {}): Prompt {
  return Object.entries(always).reduce(
    (made, [slot, value]) => (value === undefined ? made : made.set(slot, value, { always: true })),
    new Prompt(),
  )
}

/** What a prompt shows, as plain data: a schema of a library is its JSON Schema. */
export function slotsOf(prompt: Prompt): { readonly [slot: string]: Json } {
  const entries = [...viewOf(prompt.layers)].map(([slot, value]): [string, Json] => {
    if (!(value instanceof SchemaOutput)) return [slot, value]
    return [slot, { $schema: value.checked.jsonSchema as { [key: string]: Json } }]
  })
  return Object.fromEntries(entries)
}

/** A prompt that shows this. */
export function promptOf(slots: { readonly [slot: string]: Json }): Prompt {
  return Object.entries(slots).reduce((made, [slot, value]) => made.replace(slot, value), new Prompt())
}
