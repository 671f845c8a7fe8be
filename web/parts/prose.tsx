// What a model says, as text with a little form: paragraphs, lists, code, bold.
//
// Stays true: the words of a model become elements of React and nothing else. No HTML, no image, no link that leads away: an
// address stays text.

import { Fragment, memo, type ReactNode } from 'react'
import { calm } from '../words/exact.ts'
import { LongText } from './long-text.tsx'

/** A part of a text: lines that belong together. */
export type ProseBlock =
  | { readonly kind: 'paragraph' | 'heading' | 'quote'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'list'; readonly isNumbered: boolean; readonly items: readonly string[] }

/** Longer texts are shown as they are, and in part: nobody reads them for their form. */
const MOST_FORMED = 60_000

const BULLET = /^\s{0,3}[-*+]\s+(.*)$/
const NUMBER = /^\s{0,3}\d{1,4}[.)]\s+(.*)$/
const HEADING = /^#{1,6}\s+(.*)$/
const FENCE = /^\s{0,3}(`{3,}|~{3,})/

/** Splits a text into its blocks, in one pass over its lines. */
export function readProse(text: string): ProseBlock[] {
  const reader = new ProseReader()
  for (const line of text.split('\n')) reader.take(line)
  return reader.end()
}

class ProseReader {
  private readonly blocks: ProseBlock[] = []
  private lines: string[] = []
  private list: { readonly isNumbered: boolean; readonly items: string[] } | null = null
  private fence: string | null = null

  take(line: string): void {
    if (this.fence !== null) return this.takeCode(line)
    const [, fence] = FENCE.exec(line) ?? []
    if (fence !== undefined) {
      this.close()
      this.fence = fence
      return
    }
    const heading = HEADING.exec(line)?.[1]
    if (heading !== undefined) {
      this.close()
      this.blocks.push({ kind: 'heading', text: heading })
      return
    }
    this.takeLine(line)
  }

  end(): ProseBlock[] {
    if (this.fence !== null) this.closeCode()
    this.close()
    return this.blocks
  }

  private takeCode(line: string): void {
    if (line.trim().startsWith(this.fence ?? '') && line.trim().replaceAll(this.fence?.[0] ?? '`', '') === '')
      return this.closeCode()
    this.lines.push(line)
  }

  private takeLine(line: string): void {
    const bullet = BULLET.exec(line)?.[1]
    const item = bullet ?? NUMBER.exec(line)?.[1]
    if (item !== undefined) return this.takeItem(item, bullet === undefined)
    if (line.trim() === '') return this.close()
    if (this.list !== null && /^\s+/.test(line)) {
      this.list.items.push(`${this.list.items.pop() ?? ''}\n${line.trim()}`)
      return
    }
    if (this.list !== null) this.close()
    this.lines.push(line)
  }

  private takeItem(item: string, isNumbered: boolean): void {
    if (this.list?.isNumbered !== isNumbered) this.close()
    this.list ??= { isNumbered, items: [] }
    this.list.items.push(item)
  }

  private close(): void {
    if (this.list !== null) this.blocks.push({ kind: 'list', ...this.list })
    if (this.lines.length > 0) this.blocks.push(paragraphOf(this.lines))
    this.list = null
    this.lines = []
  }

  private closeCode(): void {
    this.blocks.push({ kind: 'code', text: this.lines.join('\n') })
    this.lines = []
    this.fence = null
  }
}

function paragraphOf(lines: readonly string[]): ProseBlock {
  const isQuote = lines.every((line) => line.startsWith('>'))
  return isQuote
    ? { kind: 'quote', text: lines.map((line) => line.replace(/^>\s?/, '')).join('\n') }
    : { kind: 'paragraph', text: lines.join('\n') }
}

/** A piece of a line: plain, `code` or **bold**. */
export interface Styled {
  readonly kind: 'plain' | 'code' | 'bold'
  readonly text: string
}

const PIECES = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/g

export function readPieces(text: string): Styled[] {
  const pieces: Styled[] = []
  let at = 0
  for (const found of text.matchAll(PIECES)) {
    if (found.index > at) pieces.push({ kind: 'plain', text: text.slice(at, found.index) })
    const [whole, code, bold = ''] = found
    pieces.push(code === undefined ? { kind: 'bold', text: bold } : { kind: 'code', text: code })
    at = found.index + whole.length
  }
  if (at < text.length) pieces.push({ kind: 'plain', text: text.slice(at) })
  return pieces
}

interface ProseProps {
  readonly text: string
  /** Stands right behind the last word: the caret of text that still comes. */
  readonly end?: ReactNode
}

export const Prose = memo(function Prose({ text, end = null }: ProseProps): ReactNode {
  if (text.length > MOST_FORMED) {
    return (
      <div className="prose prose-plain">
        <LongText text={text} end={end} />
      </div>
    )
  }
  const blocks = readProse(calm(text))
  return (
    <div className="prose">
      {blocks.map((block, at) => (
        <Block key={`${at} ${block.kind}`} block={block} end={at === blocks.length - 1 ? end : null} />
      ))}
      {blocks.length === 0 ? end : null}
    </div>
  )
})

function Block({ block, end }: { readonly block: ProseBlock; readonly end: ReactNode }): ReactNode {
  switch (block.kind) {
    case 'code':
      return (
        <pre className="prose-code">
          {block.text}
          {end}
        </pre>
      )
    case 'list': {
      const List = block.isNumbered ? 'ol' : 'ul'
      return (
        <List>
          {block.items.map((item, at) => (
            <li key={`${at} ${item}`}>
              <Pieces text={item} />
              {at === block.items.length - 1 ? end : null}
            </li>
          ))}
        </List>
      )
    }
    case 'heading':
      return (
        <p className="prose-h">
          <Pieces text={block.text} />
          {end}
        </p>
      )
    case 'quote':
      return (
        <blockquote>
          <Pieces text={block.text} />
          {end}
        </blockquote>
      )
    default:
      return (
        <p>
          <Pieces text={block.text} />
          {end}
        </p>
      )
  }
}

function Pieces({ text }: { readonly text: string }): ReactNode {
  return readPieces(text).map(({ kind, text: words }, at) => {
    const key = `${at} ${words}`
    if (kind === 'code') return <code key={key}>{words}</code>
    return kind === 'bold' ? <b key={key}>{words}</b> : <Fragment key={key}>{words}</Fragment>
  })
}
