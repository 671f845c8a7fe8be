import type { TreeNode } from 'legate/client'
import { calm } from './exact.ts'
import { jsonText } from './json-text.ts'

type Content = NonNullable<TreeNode['content']>

/** The words of a message; values as JSON, media by their names. */
export function textOf(content: Content | null): string {
  if (content === null) return ''
  if (typeof content === 'string') return content
  return content.map(blockText).filter(Boolean).join('\n\n')
}

function blockText(block: Exclude<Content, string>[number]): string {
  if (block.type === 'text') return block.text
  if (block.type === 'reasoning') return ''
  if (block.type === 'json') return `\`\`\`\n${jsonText(block.value)}\n\`\`\``
  return `(${block.type}, ${block.mediaType})`
}

/** A text as a value where it is the JSON of one; else undefined. */
export function jsonIn(text: string): unknown {
  const first = text.trimStart()[0]
  if (first !== '{' && first !== '[') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Longer texts keep the form that they have. */
const MOST_FORMED = 500_000

/** JSON in a form for people; other texts as they are. */
export function pretty(text: string): string {
  const value = text.length > MOST_FORMED ? undefined : jsonIn(text)
  return value === undefined ? text : jsonText(value)
}

/** The first line of a text that says something. */
export function firstLine(text: string): string {
  return calm(text.slice(0, 400).trim().split('\n', 1)[0] ?? '')
}

const SESSION = /^session_id: \S+\s+/

/** The answer of a subagent, without the id of its session, which stands first for the model that asked. */
export function answerOf(content: Content): string {
  return textOf(content).replace(SESSION, '')
}
