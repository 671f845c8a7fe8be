import { type Json, parseOwnJson } from '../../core/base/json.ts'
import type { Usage } from '../../core/graph/content.ts'
import type { Part } from '../../core/model/model.ts'
import type { Cleaner } from './clean.ts'
import type { IdTokens } from './packed-request.ts'
import type { RecordedPart } from './recording-file.ts'

/** A part as it arrived, or the fact that it arrived after another line. */
export type ReceivedPart = Part | { readonly after: string }

/** Converts an answer for a recording. Secrets are removed even if they arrived in pieces. */
export function writeAnswer(heard: readonly ReceivedPart[], cleaner: Cleaner): RecordedPart[] {
  const pieces = cleanPieces(heard, cleaner)
  return heard.map((part, at) => writePart(part, pieces[at] ?? '', cleaner))
}

/** Reads a part of a recording; undefined for an entry that only says when the next part arrived. */
export function readPart(said: RecordedPart, ids: IdTokens): Part | undefined {
  if (typeof said === 'string') return { type: 'text-delta', text: ids.show(said) }
  if (Array.isArray(said)) return { type: 'reasoning-delta', text: ids.show(String(said[0])) }
  if ('after' in said) return undefined
  if ('finish' in said) return { type: 'finish', reason: said.finish, usage: said.usage as unknown as Usage }
  return withRunIds(said, ids) as Part
}

/** Replaces the ids in a recorded value by those of this run. */
export function withRunIds<T>(value: T, ids: IdTokens): T {
  const text = JSON.stringify(value)
  return text.includes('<id:') ? (parseOwnJson(ids.show(text)) as T) : value
}

function writePart(part: ReceivedPart, piece: string, cleaner: Cleaner): RecordedPart {
  if ('after' in part) return part
  switch (part.type) {
    case 'text-delta':
      return piece
    case 'reasoning-delta':
      return [piece]
    case 'tool-input-delta':
      return { ...part, text: piece }
    case 'finish':
      return { finish: part.reason, usage: part.usage as unknown as Json }
    default:
      return cleaner.answer(part as unknown as Json) as unknown as RecordedPart
  }
}

/** Returns the part of each delta that may be kept. */
function cleanPieces(heard: readonly ReceivedPart[], cleaner: Cleaner): string[] {
  const pieces: string[] = []
  const streams = new Map<string, { readonly places: number[]; readonly texts: string[] }>()
  for (const [at, part] of heard.entries()) {
    const name = 'after' in part ? undefined : streamOf(part)
    if (name === undefined || !('text' in part)) continue
    const stream = streams.get(name) ?? { places: [], texts: [] }
    stream.places.push(at)
    stream.texts.push(part.text)
    streams.set(name, stream)
  }
  for (const { places, texts } of streams.values()) {
    const clean = realign(texts, cleaner.text(texts.join('')))
    for (const [at, place] of places.entries()) pieces[place] = clean[at] ?? ''
  }
  return pieces
}

function streamOf(part: Part): string | undefined {
  if (part.type === 'tool-input-delta') return `input ${part.id}`
  return part.type === 'text-delta' || part.type === 'reasoning-delta' ? part.type : undefined
}

const TOKEN = /(<id:\d+>|\*\*\*)/

/** Cuts a cleaned text where its pieces were cut; a replacement goes to the piece in which the secret began. */
export function realign(pieces: readonly string[], clean: string): string[] {
  const text = pieces.join('')
  if (text === clean) return [...pieces]
  const spans = spansOf(text, clean)
  if (spans === undefined) return pieces.map((_, at) => (at === 0 ? clean : ''))
  let end = 0
  let from = 0
  let span = 0
  return pieces.map((piece, at) => {
    end += piece.length
    while (span < spans.length - 1 && end > (spans[span]?.to ?? 0)) span++
    const to = at === pieces.length - 1 ? clean.length : placeIn(spans[span], end)
    const cut = clean.slice(from, to)
    from = to
    return cut
  })
}

/** A stretch of text that is equal in both forms, or that was replaced. */
interface Span {
  readonly from: number
  readonly to: number
  readonly cleanFrom: number
  readonly cleanTo: number
  readonly isReplaced: boolean
}

/** Aligns a text with its cleaned form; undefined if that is not possible. */
function spansOf(text: string, clean: string): Span[] | undefined {
  const segments = clean.split(TOKEN)
  const spans: Span[] = []
  let from = 0
  let cleanFrom = 0
  for (const [index, segment] of segments.entries()) {
    const isToken = index % 2 === 1
    const to = isToken
      ? endOfReplaced(text, from, segments[index + 1] ?? '', index + 2 >= segments.length)
      : from + segment.length
    if (to === -1 || (!isToken && !text.startsWith(segment, from))) return undefined
    const cleanTo = cleanFrom + segment.length
    spans.push({ from, to, cleanFrom, cleanTo, isReplaced: isToken })
    from = to
    cleanFrom = cleanTo
  }
  return spans
}

/** Maps a place; one inside a replaced stretch maps to the end of its replacement. */
function placeIn(span: Span | undefined, place: number): number {
  if (span === undefined || place > span.to) return Number.POSITIVE_INFINITY
  const { from, cleanFrom, cleanTo, isReplaced } = span
  return isReplaced && place > from ? cleanTo : cleanFrom + place - from
}

/** Finds where the text after a replaced stretch begins. */
function endOfReplaced(text: string, from: number, next: string, isLast: boolean): number {
  if (!isLast) return text.indexOf(next, from)
  const end = text.length - next.length
  return end >= from ? end : -1
}
