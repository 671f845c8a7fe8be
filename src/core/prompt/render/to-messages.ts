import type { Json } from '../../base/json.ts'
import { flag, type OptionRules, readOptions } from '../../base/options.ts'
import type { MessagePart } from '../slots/message.ts'
import { inLine } from '../slots/placeholder.ts'
import { isEmpty, itemsIn, type SlotLayer } from '../slots/slot.ts'
import {
  checkAsksSomething,
  dataText,
  emptyPrompt,
  joinBlocks,
  mainBlocks,
  slotBlock,
  type TitledBlock,
} from './blocks.ts'
import { RENDER, type Rendering, type RenderOptions, renderingOf, skippedPart } from './options.ts'
import { outputOf } from './output.ts'

export interface MessagesOptions extends RenderOptions {
  /**
   * True: contents are parts of any type. False: contents are texts, and other parts are left out. Default: true where
   * there is an attachment.
   */
  readonly rich?: boolean
  /** User and assistant take turns, as many providers want it. Default true. */
  readonly strictOrder?: boolean
  /** False: the model gets the tools as tools, not in the text. Default true. */
  readonly toolsInText?: boolean
}

const OPTIONS: OptionRules<MessagesOptions> = { ...RENDER, rich: flag, strictOrder: flag, toolsInText: flag }

/** Keeps further fields of a message of the history. */
export interface PromptMessage {
  readonly role: string
  readonly content: string | readonly MessagePart[]
  readonly [field: string]: Json | readonly MessagePart[]
}

/**
 * Renders the prompt as messages: system, developer, the history, and the current question. Throws EmptyPromptError.
 */
export function toMessages(view: SlotLayer, options: MessagesOptions = {}): PromptMessage[] {
  readOptions('toMessages()', options, OPTIONS)
  checkAsksSomething(view)
  const rendering = renderingOf(options)
  const attachment = itemsIn<MessagePart>(view, 'attachment')
  const isRich = options.rich ?? attachment.length > 0
  const form = isRich ? richForm : plainForm
  const asked = mainMessages(view, { rendering, attachment, form, withTools: options.toolsInText !== false })
  if (asked.length === 0) throw emptyPrompt('no part of it can be shown as text')
  return [
    ...standing(view, 'system', rendering),
    ...standing(view, 'developer', rendering),
    ...history(view, { rendering, form, isStrict: options.strictOrder !== false }),
    ...asked,
  ]
}

interface HistoryMessage {
  readonly role: string
  readonly content: Json
  readonly [field: string]: Json
}

interface Raw {
  readonly role: string
  readonly parts: readonly MessagePart[]
  readonly others: { readonly [field: string]: Json }
}

/** Writes a content: as it is, or as text. Undefined where nothing of it is left. */
type Form = (parts: readonly MessagePart[], rendering: Rendering) => string | readonly MessagePart[] | undefined

const richForm: Form = (parts) => (parts.length === 0 ? undefined : parts)

const plainForm: Form = (parts, { warn }) => {
  const texts: string[] = []
  for (const part of parts) {
    if (part.type === 'text') texts.push(String(part['text']))
    else warn(skippedPart(part.type, 'these messages are plain texts'))
  }
  return texts.length === 0 ? undefined : texts.join('\n\n')
}

function standing(view: SlotLayer, slot: 'system' | 'developer', { roleOf }: Rendering): PromptMessage[] {
  const value = view.get(slot) as Json | undefined
  return value === undefined || isEmpty(value) ? [] : [{ role: roleOf(slot), content: dataText(value) }]
}

interface HistoryParts {
  readonly rendering: Rendering
  readonly form: Form
  readonly isStrict: boolean
}

function history(view: SlotLayer, { rendering, form, isStrict }: HistoryParts): PromptMessage[] {
  const said = itemsIn<HistoryMessage>(view, 'chat_history').map(({ role, content, ...others }): Raw => {
    return { role: rendering.roleOf(role), parts: partsOf(content), others }
  })
  const ordered = isStrict ? inTurns(said, rendering) : said
  return ordered.flatMap(({ role, parts, others }) => {
    const content = form(parts, rendering)
    return content === undefined ? [] : [{ ...others, role, content }]
  })
}

/** Joins neighbours of one role into one message; the first is the user's and the last the assistant's. */
function inTurns(said: readonly Raw[], { roleOf, titles }: Rendering): Raw[] {
  const turns: (Raw & { readonly parts: MessagePart[] })[] = []
  for (const message of said) {
    const last = turns.at(-1)
    if (last?.role !== message.role) turns.push({ ...message, parts: [...message.parts] })
    else for (const part of message.parts) last.parts.push(part)
  }
  const [user, assistant] = [roleOf('user'), roleOf('assistant')]
  const filler = (role: string, text: string) => ({ role, parts: [{ type: 'text', text }], others: {} })
  if (turns.length === 0) return turns
  if (turns[0]?.role !== user) turns.unshift(filler(user, `[${titles.chat_history}]`))
  if (turns.at(-1)?.role !== assistant) turns.push(filler(assistant, '[User continue input]'))
  return turns
}

function mainMessages(
  view: SlotLayer,
  parts: {
    readonly rendering: Rendering
    readonly attachment: readonly MessagePart[]
    readonly form: Form
    readonly withTools: boolean
  },
): PromptMessage[] {
  const { rendering, attachment, form, withTools } = parts
  const role = rendering.roleOf('user')
  const blocks = mainBlocks(view, { output: outputOf(view), rendering, withTools })
  const say = (content: string | readonly MessagePart[] | undefined) =>
    content === undefined ? [] : [{ role, content }]
  const text = mainText(view, blocks, rendering)
  if (attachment.length === 0) return say(text)
  const asked: readonly MessagePart[] = text === undefined ? [] : [{ type: 'text', text }]
  if (form === richForm) return say([...asked, ...attachment])
  return [...attachment.flatMap((part) => say(form([part], rendering))), ...say(text)]
}

/** An input alone is sent without a title. */
function mainText(view: SlotLayer, blocks: readonly TitledBlock[], { titles }: Rendering): string | undefined {
  const input = view.get('input') as Json | undefined
  if (blocks.length === 0) return undefined
  if (blocks.length > 1 || input === undefined || isEmpty(input)) return joinBlocks(blocks, titles.output)
  return inLine(input)
}

export interface TextOptions extends RenderOptions {
  /** False: omits the first and the last line, which show whose turn it is. */
  readonly roleLines?: boolean
}

/** Renders the whole prompt as one text. Throws EmptyPromptError. */
export function toText(view: SlotLayer, options: TextOptions = {}): string {
  readOptions('toText()', options, { ...RENDER, roleLines: flag })
  checkAsksSomething(view)
  const rendering = renderingOf(options)
  const { titles, roleOf } = rendering
  const blocks = [
    ...slotBlock(view, 'system', titles.system),
    ...slotBlock(view, 'developer', titles.developer),
    ...historyBlock(view, rendering),
    ...mainBlocks(view, { output: outputOf(view), rendering, withTools: true }),
  ]
  const [user, assistant] = [roleOf('user'), roleOf('assistant')]
  const text = joinBlocks(blocks, titles.output, [user, assistant])
  return options.roleLines === false ? text : `${user}:\n${text}\n${assistant}:`
}

function historyBlock(view: SlotLayer, { titles, roleOf, warn }: Rendering): TitledBlock[] {
  const lines: string[] = []
  for (const { role, content } of itemsIn<{ role: string; content: Json }>(view, 'chat_history')) {
    for (const part of partsOf(content)) {
      if (part.type === 'text') lines.push(`[${roleOf(role)}]:${oneSpeaker(String(part['text']))}`)
      else warn(skippedPart(part.type, 'a text has no place for it'))
    }
  }
  return lines.length === 0 ? [] : [{ title: titles.chat_history, text: lines.join('\n') }]
}

/** Escapes lines that look like another role's turn, so that a text cannot speak for that role. */
function oneSpeaker(text: string): string {
  return text.replace(/(?<=[\n\r\u2028\u2029])[ \t]{0,20}(?=\[[^\]\n]{1,60}\]:)/g, '$&\\')
}

/** The content of a message as parts. */
function partsOf(content: Json): readonly MessagePart[] {
  return Array.isArray(content) ? (content as MessagePart[]) : [{ type: 'text', text: content }]
}
