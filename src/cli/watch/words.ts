import type { Content, Json } from '../../index.ts'
import { exactLine, oneLine } from '../terminal/clean.ts'
import { cut } from '../terminal/width.ts'

/** What was said, for people: text as it is, other blocks by their kind. */
export function wordsOf(content: Content): string {
  if (typeof content === 'string') return content
  return content
    .map((block) => {
      if (block.type === 'text') return block.text
      if (block.type === 'json') return JSON.stringify(block.value)
      return block.type === 'reasoning' ? '' : `[${block.type}: ${block.mediaType}]`
    })
    .filter((text) => text !== '')
    .join('\n')
}

/** All of a value on one line, to the letter. */
export function whole(value: Json): string {
  return exactLine(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Any value on one line of at most so many columns. */
export function preview(value: Json, columns: number): string {
  const text = typeof value === 'string' ? value.slice(0, columns * 4) : JSON.stringify(value).slice(0, columns * 4)
  return cut(oneLine(text), columns)
}
