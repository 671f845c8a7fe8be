import type { Json } from '../../base/json.ts'
import { flag, readOptions } from '../../base/options.ts'
import type { Part } from '../slots/message.ts'
import { itemsIn, type Layer } from '../slots/slot.ts'
import { type Block, mainBlocks, slotBlock } from './blocks.ts'
import { checkAsksSomething } from './empty.ts'
import { joinBlocks } from './join-blocks.ts'
import { RENDER, type Rendering, type RenderOptions, renderingOf, skippedPart } from './options.ts'
import { outputOf } from './output.ts'

export interface TextOptions extends RenderOptions {
  /** False: without the first and the last line, which say whose turn it is. */
  readonly roleLines?: boolean
}

/** The whole prompt as one text. Throws EmptyPromptError. */
export function toText(view: Layer, options: TextOptions = {}): string {
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

function historyBlock(view: Layer, { titles, roleOf, warn }: Rendering): Block[] {
  const lines: string[] = []
  for (const { role, content } of itemsIn<{ role: string; content: Json }>(view, 'chat_history')) {
    for (const part of partsOf(content)) {
      if (part.type === 'text') lines.push(`[${roleOf(role)}]:${oneSpeaker(String(part['text']))}`)
      else warn(skippedPart(part.type, 'a text has no place for it'))
    }
  }
  return lines.length === 0 ? [] : [{ title: titles.chat_history, text: lines.join('\n') }]
}

/** A text of several lines cannot speak for another role. */
function oneSpeaker(text: string): string {
  return text.replace(/(?<=[\n\r\u2028\u2029])[ \t]{0,20}(?=\[[^\]\n]{1,60}\]:)/g, '$&\\')
}

/** The content of a message as parts. */
export function partsOf(content: Json): readonly Part[] {
  return Array.isArray(content) ? (content as Part[]) : [{ type: 'text', text: content }]
}
